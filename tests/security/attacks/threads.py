"""Everything that can be tried on the threads of the host, for as long as the test goes on."""

# The calls themselves are what is tried.
# ruff: noqa: PTH115, PTH208

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from security.attacks.calls import Aim, call
from security.attacks.processes import (
    INFO,
    SIGNALS,
    USR1,
    done,
    pidfd,
    read,
    read_by_call,
    read_memory,
    trace,
)

_PIDFD_THREAD = 0o200

OF_THREADS: dict[str, Callable[[Aim], object]] = {
    **SIGNALS,
    "tgkill": lambda a: call("tgkill", a.group, a.pid, USR1),
    "rt_tgsigqueueinfo": lambda a: call("rt_tgsigqueueinfo", a.group, a.pid, USR1, INFO),
    "pidfd of a thread": lambda a: signal.pidfd_send_signal(pidfd(a.pid, _PIDFD_THREAD), USR1),
    "/proc mem": lambda a: read_memory(a.pid, a.at).decode(),
    "process_vm_readv": lambda a: read_by_call(a.pid, a.at).decode(),
    "/proc environ": lambda a: read(f"/proc/{a.pid}/environ"),
    "/proc task environ": lambda a: read(f"/proc/{a.group}/task/{a.pid}/environ"),
    "/proc fd": lambda a: read(f"/proc/{a.pid}/fd/{a.fd}"),
    "/proc cwd": lambda a: os.readlink(f"/proc/{a.pid}/cwd"),
    "/proc maps": lambda a: read(f"/proc/{a.pid}/maps"),
    "PTRACE_SEIZE": lambda a: trace(a, 0x4206),
    "pidfd_getfd": lambda a: done(call("pidfd_getfd", pidfd(a.pid, _PIDFD_THREAD), a.fd, 0)),
    "kcmp": lambda a: done(call("kcmp", a.pid, a.pid, 0, 0, 0)),
}  # fmt: skip
"""Done to every thread of the host that is there at that moment."""


def on_all_threads(host: Aim) -> dict[str, list[str]]:
    """Try everything on every thread of the host; return what of it answered."""
    found: dict[str, list[str]] = {}
    for tid in map(int, os.listdir(f"/proc/{host.group}/task")):
        aim = Aim(pid=tid, group=host.group, at=host.at, fd=host.fd, inside=host.inside)
        for name, attempt in OF_THREADS.items():
            try:
                said = attempt(aim)
            except OSError:
                continue
            if isinstance(said, str) and said:
                found.setdefault(name, []).append(said)
    return found


def main() -> None:
    """Go on until a file says that it is enough; print what was had."""
    aim, stop = Aim(**json.loads(sys.argv[1])), Path(sys.argv[2])
    rounds, found = 0, dict[str, list[str]]()
    while not rounds or not stop.exists():
        found |= on_all_threads(aim)
        rounds += 1
        os.closerange(3, 1024)  # what the attempts have opened
    print(json.dumps([rounds, found]))


if __name__ == "__main__":
    main()
