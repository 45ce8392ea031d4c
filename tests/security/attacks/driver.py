"""Runs attempts in the jail, each in a process of its own, and prints what each came to."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from security.attacks import files, metadata, privileges, processes, sockets
from security.attacks.calls import Aim

PROGRAMS: dict[str, dict[str, Callable[[Aim], object]]] = {
    "files": files.ATTEMPTS | metadata.OWNERS_AND_ATTRIBUTES | metadata.MODES_AND_TIMES,
    "sockets": sockets.ATTEMPTS,
    "processes": processes.SIGNALS | processes.OF_PROCESSES,
    "privileges": privileges.ATTEMPTS
    | {name: lambda _, n=name: privileges.never_outside(n) for name in privileges.NEVER_OUTSIDE},
}
COMMANDS = {
    "files": files.COMMANDS
    | metadata.COMMANDS_OF_MODES_AND_TIMES
    | metadata.COMMANDS_OF_OWNERS_AND_ATTRIBUTES,
    "sockets": sockets.COMMANDS,
    "processes": processes.COMMANDS,
}
_AT_MOST_S = 5
_WORKERS = 4


def _attempt(kind: str, name: str, aim: Aim) -> str:
    if name in PROGRAMS[kind]:
        return str(PROGRAMS[kind][name](aim) or "")
    told = {"T": aim.outside, "W": aim.inside, "PORT": str(aim.port), "PID": str(aim.pid)}
    command = COMMANDS[kind][name]
    os.execve("/bin/bash", ["bash", "-c", command], dict(os.environ) | told)


def _apart(kind: str, name: str, aim: Aim) -> str:
    """Make an attempt in a process that may do anything to itself; return what it said."""
    read_end, write_end = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            signal.alarm(_AT_MOST_S)
            said = _attempt(kind, name, aim)
        except BaseException as error:
            said = f"! {error!r}"
        os.write(write_end, said.encode()[:2000])
        os._exit(0)
    os.close(write_end)
    os.waitpid(pid, 0)
    os.set_blocking(read_end, False)
    try:
        return os.read(read_end, 4000).decode(errors="replace")
    except BlockingIOError:
        return ""  # something that it left behind holds the pipe
    finally:
        os.close(read_end)


def main() -> None:
    """Make the attempts that a file lists."""
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # it is a file
    report = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    os.set_inheritable(report, False)
    plan = json.loads(Path(sys.argv[1]).read_text())
    workers = []
    for number in range(_WORKERS):
        if (pid := os.fork()) == 0:
            for kind, name, aim in plan[number::_WORKERS]:
                # Short enough to be written at once, whoever else writes.
                said = _apart(kind, name, Aim(**aim))[:500]
                os.write(report, json.dumps([kind, name, said]).encode() + b"\n")
            os._exit(0)
        workers.append(pid)
    for pid in workers:
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
