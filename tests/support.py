"""What the tests share: children to run, and questions to the kernel about what they left."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PATIENCE_S = 5.0
ORDINARY = 65534
"""Nobody: a user without privileges that every system has."""
SESSION = f"LIMPET_TEST_SESSION={os.urandom(8).hex()}"
"""Inherited by every process of this test run, and by none of another that runs beside it."""
os.environ["LIMPET_TEST_SESSION"] = SESSION.partition("=")[2]


def python(code: str) -> str:
    """Return a shell command that runs Python code."""
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"


def wait_until(condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> bool:
    """Wait for a condition, and say whether it came true in time."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def marked_processes() -> dict[int, str]:
    """Return the living processes of any limpet run of this session, with their command lines."""
    return {pid: words for pid, words, env in _session_processes() if b"LIMPET_RUN=" in env}


def _session_processes() -> Iterator[tuple[int, str, bytes]]:
    session = SESSION.encode()
    for pid in all_pids():
        try:
            environment = _read(f"/proc/{pid}/environ")
            if session not in environment or pid == os.getpid():
                continue
            command = _read(f"/proc/{pid}/cmdline")
        except OSError:
            continue
        yield pid, command.replace(b"\0", b" ").decode(errors="replace").strip(), environment


def _read(path: str) -> bytes:
    """Read a small file: this is done for every process before and after each test."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 1 << 18)
    finally:
        os.close(fd)


def all_pids() -> Iterator[int]:
    """Yield the pid of every process."""
    for name in os.listdir("/proc"):  # noqa: PTH208 -- see above
        if name.isdigit():
            yield int(name)


def is_running(pid: int) -> bool:
    """True if a process exists and is no zombie."""
    return state_of(pid) not in ("", "Z", "X")


def state_of(pid: int) -> str:
    """Return the one-letter state of a process; empty if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[0]


def zombie_children() -> list[int]:
    """Return our own children that ended and were not reaped."""
    found = []
    for pid in all_pids():
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        state, parent = stat.rpartition(")")[2].split()[:2]
        if state == "Z" and int(parent) == os.getpid():
            found.append(pid)
    return found


def open_descriptors() -> dict[int, str]:
    """Return this process's descriptors and what they lead to."""
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found[int(entry.name)] = str(entry.readlink())
        except OSError:
            continue  # the descriptor of the listing itself
    return found


def as_ordinary_user(action: Callable[[], str]) -> str:
    """Return what an action says when it is done by a user without privileges.

    In a forked child, since the interpreter itself may lie where only root can read; what the
    action imports must therefore be imported already.
    """
    import limpet.hint
    import limpet.output.spill
    import limpet.output.text  # noqa: F401 -- for the child

    if os.geteuid() != 0:
        return action()
    read_end, write_end = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            os.setgroups([])
            os.setgid(ORDINARY)
            os.setuid(ORDINARY)
            os.write(write_end, action().encode())
        except BaseException as error:
            os.write(write_end, repr(error).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with open(read_end, "rb") as file:
        said = file.read().decode()
    os.waitpid(pid, 0)
    return said


def resident_bytes() -> int:
    """Return the memory this process has in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
