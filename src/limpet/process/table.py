"""The kernel's process table: which processes belong to a run. It reads and signals nothing.

A process belongs to a run if it is in the shell's group or session, descends from it, or carries
the run's marker in its environment. Where there is no /proc nothing is found, and only the group
can be killed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Container, Iterable
from typing import NamedTuple

MARKER = b"LIMPET_RUN"
"""Carries the run's id to every process it starts, so that those who left its group are found."""
_TICKS = os.sysconf("SC_CLK_TCK")
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_PROBE_AT_MOST = 256
"""Up to so many pids are looked up one by one; beyond that listing /proc is cheaper."""
_ENVIRONMENT_AT_MOST = 1 << 20
"""A larger environment is not read to its end."""


NOBODY = -1
"""No process has this number, nor a group or session."""


class Process(NamedTuple):
    """One entry of the table; the start time tells it from a later process of the same pid."""

    pid: int
    ppid: int
    pgrp: int
    session: int
    start_ticks: int
    state: str


def now_ticks() -> int:
    """Return the time since boot in the unit of `Process.start_ticks`."""
    return int(time.clock_gettime(_CLOCK) * _TICKS)


def look_up(pid: int) -> Process | None:
    """Return what is known of a pid, or None if it does not exist."""
    raw = _read(f"/proc/{pid}/stat", 1024)
    # The name in parentheses may hold anything; the fields follow its last parenthesis.
    state, *numbers = raw[raw.rfind(b")") + 2 :].split() or [b""]
    if len(numbers) < 19:
        return None
    return Process(
        pid, int(numbers[0]), int(numbers[1]), int(numbers[2]), int(numbers[18]), state.decode()
    )


def is_same(process: Process) -> bool:
    """True while this very process exists, zombies included."""
    current = look_up(process.pid)
    return current is not None and current.start_ticks == process.start_ticks


def is_alive(process: Process) -> bool:
    """True while this very process exists and is no zombie."""
    current = look_up(process.pid)
    return (
        current is not None
        and current.start_ticks == process.start_ticks
        and current.state not in "ZX"
    )


_EXIT_CODE_FIELD = 49
"""Of /proc/<pid>/stat, counted from the state, which follows the name."""


def zombie_status(process: Process) -> int | None:
    """Return the wait status of a process that has ended and was not reaped, whoever's it is."""
    fields = _read(f"/proc/{process.pid}/stat", 1024).rpartition(b")")[2].split()
    if len(fields) <= _EXIT_CODE_FIELD or fields[0] != b"Z" or not is_same(process):
        return None
    return int(fields[_EXIT_CODE_FIELD])


def command_line(pid: int) -> str:
    """Return the command line of a process as one line, or its name if it has none."""
    words = _read(f"/proc/{pid}/cmdline", 4096).rstrip(b"\0").replace(b"\0", b" ")
    if not words:
        words = _read(f"/proc/{pid}/comm", 64)
    return " ".join(words.decode(errors="replace").split())[:200]


def name_of(pid: int) -> str:
    """Return the name that a process goes by; empty if there is none."""
    return _read(f"/proc/{pid}/comm", 64).decode(errors="replace").strip()


def carries(process: Process, run_id: str) -> bool:
    """True if a process carries the marker of a run."""
    return bool(run_id) and _carries_marker(process.pid, run_id)


class Members(NamedTuple):
    """The processes of a run other than its shell."""

    alive: list[Process]
    dead: list[Process]
    """Zombies that came to this program, which is the reaper of orphans."""


def members(leader: int, run_id: str, since_ticks: int, reaper: int = 0) -> list[Process]:
    """Return the living processes of a run other than its shell, by looking at every process.

    Args:
        leader: The shell's pid, which is also the run's first group and session; `NOBODY` if that
            number may be someone else's by now.
        run_id: What the marker carries.
        since_ticks: When the shell was started; older processes are not of the run.
        reaper: The process that orphans of this run, and of no other, become the children of.
    """
    if reaper and (found := _descendants_of(reaper)) is not None:
        return [process for process in found if process.pid != leader]
    return _select(_all_pids(), leader, run_id, since_ticks, reaper).alive


def _descendants_of(reaper: int) -> list[Process] | None:
    """Return the living descendants of a process, or None where the kernel does not tell.

    Of a reaper these are all that ever descended from it, at the cost of those alone.
    """
    found: list[Process] = []
    pending = [reaper]
    while pending:
        pid = pending.pop()
        children = _children(pid)
        if children is None and pid == reaper:
            return None
        for child in children or ():
            pending.append(child)
            process = look_up(child)
            if process is not None and process.state not in "ZX":
                found.append(process)
    return found


def _children(pid: int) -> list[int] | None:
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 -- strings
    except OSError:
        return None
    if not os.path.exists(f"/proc/{pid}/task/{pid}/children"):  # noqa: PTH110 -- a string
        return None
    found: list[int] = []
    for thread in threads:
        found += map(int, _read(f"/proc/{pid}/task/{thread}/children", 1 << 20).split())
    return found


def has_forked(leader: int, since_ticks: int) -> bool:
    """False if it is certain that a shell that was just started has started nothing itself."""
    # Pids are handed out in rising order, and cannot come around to the shell's within a second.
    return _newest_pid() != leader or now_ticks() - since_ticks >= _TICKS


def members_after_exit(
    leader: int, run_id: str, since_ticks: int, reaper: int, not_members: Container[int]
) -> Members:
    """Return the members of a run whose shell has ended, as cheaply as they can be had.

    Args:
        leader: The shell's pid.
        run_id: What the marker carries.
        since_ticks: When the shell was started.
        reaper: Who gets its orphans.
        not_members: Pids that were lately those of other runs' shells: no need to look at them.
    """
    if reaper:
        return Members(members(leader, run_id, since_ticks, reaper), [])
    newest = _newest_pid()
    if leader <= newest <= leader + _PROBE_AT_MOST and now_ticks() - since_ticks < _TICKS:
        pids = [pid for pid in range(leader + 1, newest + 1) if pid not in not_members]
        return _select(pids, leader, run_id, since_ticks, reaper)
    return _select(_all_pids(), leader, run_id, since_ticks, reaper)


_READ_SYSCALL = {"x86_64": b"0", "aarch64": b"63"}.get(os.uname().machine)


def blocked_read(pid: int) -> str | None:
    """Return the file or terminal that a process sleeps on to read from, if it does.

    Asked of the kernel, which knows, and not of the output, which may only look like a prompt.
    Pipes and sockets do not count: who reads from those waits for another program.
    """
    call, _, rest = _read(f"/proc/{pid}/syscall", 256).partition(b" ")
    if _READ_SYSCALL is None or call != _READ_SYSCALL or not rest:
        return None
    try:
        target = os.readlink(f"/proc/{pid}/fd/{int(rest.split()[0], 16)}")  # noqa: PTH115 -- a string
    except OSError:
        return None
    return target if target.startswith("/") else None


def blocked_member(leader: int, run_id: str, since_ticks: int, reaper: int = 0) -> str | None:
    """Say which process of a run, the shell included, waits for input that nobody gives."""
    found = members(leader, run_id, since_ticks, reaper)
    for pid in (leader, *(process.pid for process in found)):
        if source := blocked_read(pid):
            return f"{command_line(pid)} was waiting to read from {source}"
    return None


def peak_memory(pid: int) -> int:
    """Return the largest resident size, in bytes, that a process or a descendant of it has had."""
    peak, pending = 0, [pid]
    while pending:
        pid = pending.pop()
        for line in _read(f"/proc/{pid}/status", 4096).splitlines():
            if line.startswith(b"VmHWM:"):
                peak = max(peak, int(line.split()[1]) * 1024)
        pending += _children(pid) or ()
    return peak


def _select(
    pids: Iterable[int], leader: int, run_id: str, since_ticks: int, reaper: int
) -> Members:
    # The clock of start_ticks and ours are read apart: one tick of slack.
    since_ticks -= 1
    found: list[Process] = []
    dead: list[Process] = []
    others: list[Process] = []
    for pid in pids:
        process = look_up(pid)
        if process is None or pid == leader or process.start_ticks < since_ticks:
            continue
        ours = leader in (process.pgrp, process.session)
        if process.state in "ZX":
            if ours and process.ppid == os.getpid():
                dead.append(process)
        elif ours or _carries_marker(pid, run_id):
            found.append(process)
        else:
            others.append(process)
    family = {leader, *(p.pid for p in found)}
    if reaper:
        family.add(reaper)
    found += _descendants(others, family)
    return Members(_without_threads(found), dead)


def _descendants(candidates: list[Process], family: set[int]) -> list[Process]:
    found: list[Process] = []
    while children := [p for p in candidates if p.ppid in family]:
        found += children
        candidates = [p for p in candidates if p not in children]
        family = {p.pid for p in children}
    return found


def _without_threads(processes: list[Process]) -> list[Process]:
    # /proc/<tid> answers for threads too, though it does not list them.
    return [p for p in processes if b"\nTgid:\t%d\n" % p.pid in _read(f"/proc/{p.pid}/status", 512)]


def _carries_marker(pid: int, run_id: str) -> bool:
    environment = _read(f"/proc/{pid}/environ", _ENVIRONMENT_AT_MOST)
    _, marker, rest = (b"\0" + environment).partition(b"\0%b=" % MARKER)
    return bool(marker) and run_id.encode() in rest.partition(b"\0")[0].split(b"/")


def _all_pids() -> list[int]:
    try:
        names = os.listdir("/proc")  # noqa: PTH208 -- hundreds of Path objects for nothing
    except OSError:
        return []
    return [int(name) for name in names if name.isdigit()]


_loadavg_fd = -1
"""/proc/loadavg, kept open: it is read at the end of every run, anew from its start."""


def _newest_pid() -> int:
    """Return the pid that was handed out last, or 0 if that cannot be told."""
    global _loadavg_fd
    try:
        if _loadavg_fd < 0:
            _loadavg_fd = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)
        return int(os.pread(_loadavg_fd, 128, 0).split()[4])
    except (OSError, ValueError, IndexError):
        # No /proc, or a host that closed descriptors which were not its own: open it again.
        _loadavg_fd = -1
        return 0


def _read(path: str, at_most: int) -> bytes:
    # A process may vanish between any two of these calls, and others' files are not ours to read:
    # both mean that there is nothing to know.
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, at_most)
    except OSError:
        return b""
    finally:
        os.close(fd)
