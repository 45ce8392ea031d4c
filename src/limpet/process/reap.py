"""The one place where a signal is sent and a child is reaped.

Who may be signalled:
- the group of a shell, while the shell is our unreaped child: until then the kernel cannot give
  its pid, and so its group, to anyone else;
- any other process of the run, through a pidfd, after its start time was found unchanged.
"""

from __future__ import annotations

import atexit
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from limpet.loop import Loop, SelectorLoop
from limpet.process.exit import has_ended
from limpet.process.table import Process, is_alive, is_same, look_up, members

KILL_WAIT_S = 0.4
"""How long SIGKILL may take. What outlives it sleeps uninterruptibly in the kernel."""
RSS_UNIT = 1024 if os.uname().sysname == "Linux" else 1
"""ru_maxrss is in KiB, on macOS in bytes."""
_POLL_S = 0.01
"""Group members and escapees are not our children: their end is polled for."""


class Child(NamedTuple):
    """The shell of one run: leader of its session and group."""

    pid: int
    run_id: str
    since_ticks: int
    """When it was started, on the clock of the process table."""


class Ended(NamedTuple):
    """How a reaped child ended."""

    exit_code: int | None
    """None if something else in this program reaped it first."""
    signal: str | None
    cpu_s: float
    max_rss_bytes: int


_running: dict[int, Child] = {}
"""Shells that were started and not reaped. A forked child forgets them: they are not its own."""
_orphans: set[int] = set()
"""Groups whose members outlived their shell. If this program is their reaper (pid 1, or a
subreaper) they are ours to reap once they end, and nobody else's children are touched."""


def register(child: Child) -> None:
    """Remember a shell, so that it is killed if this program exits before it."""
    _running[child.pid] = child


def running_shells() -> tuple[int, ...]:
    """Return the pids of all shells of this program that run now."""
    return tuple(_running)


def reap(pid: int) -> Ended:
    """Reap a shell that has ended, and what it cost."""
    _running.pop(pid, None)
    try:
        _, status, usage = os.wait4(pid, 0)
    except ChildProcessError:
        return Ended(None, None, 0.0, 0)
    code = os.waitstatus_to_exitcode(status)
    name = None
    if code < 0:
        name = _signal_name(-code)
        code = 128 - code
    return Ended(code, name, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * RSS_UNIT)


def give_up(pid: int) -> None:
    """Stop waiting for a shell that would not die; it is reaped whenever it does."""
    _running.pop(pid, None)
    _orphans.add(pid)


def reap_orphans(group: int) -> None:
    """Reap what has ended of a group whose shell is gone, and of earlier ones, if it is ours."""
    _orphans.add(group)
    for orphan in tuple(_orphans):
        try:
            while os.waitpid(-orphan, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            _orphans.discard(orphan)


class Kill:
    """Ends a run: SIGTERM to all of it, a grace, SIGKILL, a sweep; every wait is bounded.

    The shell must not be reaped before `on_done` is called, with what outlived even SIGKILL.
    """

    def __init__(
        self,
        loop: Loop,
        child: Child,
        grace_s: float,
        on_done: Callable[[list[Process]], None],
    ) -> None:
        self._loop = loop
        self._child = child
        self._on_done = on_done
        self._targets = self._members()
        self._term_until = time.monotonic() + grace_s
        self._kill_until = self._term_until + KILL_WAIT_S
        if grace_s > 0:
            self._send(signal.SIGTERM)
            self._timer = loop.call_later(0, self._await_term)
        else:
            self._timer = loop.call_later(0, self._kill)

    def _members(self) -> list[Process]:
        return members(self._child.pid, self._child.run_id, self._child.since_ticks)

    def _send(self, signum: signal.Signals) -> None:
        if _is_ours(self._child.pid):
            try:
                os.killpg(self._child.pid, signum)
            except ProcessLookupError:
                pass
            except PermissionError:
                # macOS says so of a group that holds a zombie: the shell itself can be reached.
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(self._child.pid, signum)
        for process in self._targets:
            # The group already got SIGTERM once; a second one would run a trap twice.
            if signum is signal.SIGKILL or process.pgrp != self._child.pid:
                send(process, signum)

    def _await_term(self) -> None:
        if self._all_gone():
            self._on_done([])
        elif time.monotonic() >= self._term_until:
            self._kill()
        else:
            self._timer = self._loop.call_later(_POLL_S, self._await_term)

    def _kill(self) -> None:
        self._targets = self._members()
        self._send(signal.SIGKILL)
        self._timer = self._loop.call_later(_POLL_S / 2, self._await_kill)

    def _await_kill(self) -> None:
        if self._all_gone():
            self._on_done([])
        elif time.monotonic() < self._kill_until:
            # A process may have forked between being found and being killed: look again.
            self._kill()
        else:
            self._on_done(self._left())

    def _all_gone(self) -> bool:
        if not has_ended(self._child.pid):
            return False
        self._targets = [p for p in self._targets if is_alive(p)]
        if not self._targets:
            self._targets = self._members()
        return not self._targets

    def _left(self) -> list[Process]:
        left = [p for p in self._members() if is_alive(p)]
        leader = None if has_ended(self._child.pid) else look_up(self._child.pid)
        return [leader, *left] if leader else left


def send(process: Process, signum: signal.Signals) -> None:
    """Signal this very process and no later one of the same pid."""
    # It may be gone, or run as someone else; what is left alive is reported by the caller.
    with suppress(ProcessLookupError, PermissionError):
        if not hasattr(os, "pidfd_open"):
            if is_same(process):
                os.kill(process.pid, signum)
            return
        pidfd = os.pidfd_open(process.pid)
        try:
            if is_same(process):
                signal.pidfd_send_signal(pidfd, signum)
        finally:
            os.close(pidfd)


def _is_ours(pid: int) -> bool:
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"


_EXIT_GRACE_S = 0.5


def _kill_all_at_exit() -> None:
    loop = SelectorLoop()
    pending = set(_running)

    def kill(child: Child) -> None:
        Kill(loop, child, _EXIT_GRACE_S, lambda _: pending.discard(child.pid))

    for child in tuple(_running.values()):
        kill(child)
    loop.run_until(lambda: not pending)


atexit.register(_kill_all_at_exit)
os.register_at_fork(after_in_child=_running.clear)
