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
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from typing import NamedTuple

from limpet.loop import Loop, SelectorLoop
from limpet.process.exit import has_ended
from limpet.process.table import NOBODY, Process, is_alive, is_same, look_up, members

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
    reaper: int = 0
    """The process that its orphans become children of; 0 if that is not this run's own."""


class Ended(NamedTuple):
    """How a reaped child ended."""

    exit_code: int | None
    """None if something else in this program reaped it first."""
    signal: str | None
    cpu_s: float
    max_rss_bytes: int


NOT_ENDED = Ended(None, None, 0.0, 0)

_running: dict[int, Child] = {}
"""Shells that were started and not reaped. A forked child forgets them: they are not its own."""
_orphans: dict[int, int | None] = {}
"""Pids that may become our children, with their start time; or groups, negative. If this program
is the reaper of orphans (pid 1, or a subreaper) these are ours to reap; no others are touched."""


_recent: dict[int, None] = {}
"""The pids of the shells that were started last, whether they run or not, oldest first."""
_RECENT_AT_MOST = 4096


def register(child: Child) -> None:
    """Remember a shell, so that it is killed if this program exits before it."""
    _running[child.pid] = child
    _recent.pop(child.pid, None)
    _recent[child.pid] = None
    if len(_recent) > _RECENT_AT_MOST:
        _recent.pop(next(iter(_recent)), None)


def recent_shells() -> Container[int]:
    """Return the pids of the shells that this program started last."""
    return _recent.keys()


def running_count() -> int:
    """Return how many shells of this program run now."""
    return len(_running)


def reap(pid: int) -> Ended:
    """Reap a shell that has ended, and what it cost."""
    _running.pop(pid, None)
    try:
        _, status, usage = os.wait4(pid, 0)
        while os.WIFSTOPPED(status):  # it has made us its tracer
            os.kill(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
    except ChildProcessError:
        return Ended(None, None, 0.0, 0)
    code, name = exit_of(status)
    return Ended(code, name, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * RSS_UNIT)


def exit_of(status: int) -> tuple[int, str | None]:
    """Return the exit code of a wait status, 128+n after signal n, and the signal's name."""
    code = os.waitstatus_to_exitcode(status)
    return (code, None) if code >= 0 else (128 - code, _signal_name(-code))


def let_go(pid: int) -> None:
    """Forget a shell that is to go on when this program exits; someone has to reap it later."""
    _running.pop(pid, None)


def reap_late(pid: int) -> None:
    """Wait for a shell that was let go, and reap it."""
    with suppress(ChildProcessError):  # reaped by a host that reaps all
        os.waitpid(pid, 0)


def reap_soon(pid: int, within_s: float) -> None:
    """Reap a child that is about to end; if it takes longer, whenever it does."""
    until_s = time.monotonic() + within_s
    with suppress(ChildProcessError):
        while not os.waitpid(pid, os.WNOHANG)[0]:
            if time.monotonic() >= until_s:
                give_up(pid)
                return
            time.sleep(_POLL_S / 10)


def reap_all_but(shell: int) -> None:
    """Reap whatever has ended and has become our child, but for the shell: it is reaped last."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
            children = file.read().split()
    except OSError:
        return
    for child in children:
        if int(child) != shell:
            with suppress(ChildProcessError):
                os.waitpid(int(child), os.WNOHANG)


def give_up(pid: int) -> None:
    """Stop waiting for a shell that would not die; it is reaped whenever it does."""
    _running.pop(pid, None)
    _orphans[-pid] = None


def reap_orphans(group: int, seen: Iterable[Process] = ()) -> None:
    """Reap what has ended of a group whose shell is gone, and of all seen earlier, if it is ours.

    Args:
        group: The pid of the shell.
        seen: Members of the run, which may have left the group.
    """
    _orphans[-group] = None
    _orphans.update({process.pid: process.start_ticks for process in seen})
    for orphan, start_ticks in tuple(_orphans.items()):
        if start_ticks is not None:
            current = look_up(orphan)
            if current is None or current.start_ticks != start_ticks:
                _orphans.pop(orphan, None)
                continue
        try:
            while os.waitpid(orphan, os.WNOHANG)[0] and orphan < 0:
                pass
        except ChildProcessError:
            _orphans.pop(orphan, None)


def kill_now(child: Child) -> None:
    """Kill a run without waiting for it; the shell is reaped whenever it is dead."""
    kill_group(child.pid, signal.SIGKILL)
    for process in members(*child):
        send(process, signal.SIGKILL)
    give_up(child.pid)


def kill_group(leader: int, signum: signal.Signals) -> None:
    """Signal the group of a shell that is still ours to reap."""
    if not _is_ours(leader):
        return
    try:
        os.killpg(leader, signum)
    except ProcessLookupError:
        pass
    except PermissionError:
        # macOS says so of a group that holds a zombie: the shell itself can be reached.
        with suppress(ProcessLookupError, PermissionError):
            os.kill(leader, signum)


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
        self.seen: list[Process] = []
        """Everyone that was found."""
        self.had_to_kill = False
        """True once SIGTERM was not enough."""
        self._targets = self._members()
        self._term_until = time.monotonic() + grace_s
        self._kill_until = self._term_until + KILL_WAIT_S
        if grace_s > 0:
            self._send(signal.SIGTERM)
            self._timer = loop.call_later(0, self._await_term)
        else:
            self._timer = loop.call_later(0, self._kill)

    def _members(self) -> list[Process]:
        found = self._find()
        self.seen += found
        return found

    def _find(self) -> list[Process]:
        return members(*self._child)

    def _send(self, signum: signal.Signals) -> None:
        kill_group(self._child.pid, signum)
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
        self.had_to_kill = True
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

    def _shell_has_ended(self) -> bool:
        return has_ended(self._child.pid)

    def _all_gone(self) -> bool:
        if not self._shell_has_ended():
            return False
        self._targets = [p for p in self._targets if is_alive(p)]
        if not self._targets:
            self._targets = self._members()
        return not self._targets

    def _left(self) -> list[Process]:
        left = [p for p in self._members() if is_alive(p)]
        leader = None if self._shell_has_ended() else look_up(self._child.pid)
        return [leader, *left] if leader else left


class KillOthers(Kill):
    """Does the same to processes that are nobody's children here, each by itself."""

    def __init__(
        self,
        loop: Loop,
        find: Callable[[], list[Process]],
        grace_s: float,
        on_done: Callable[[list[Process]], None],
    ) -> None:
        """Begin.

        Args:
            loop: To wait on.
            find: Returns those that are to end and are alive.
            grace_s: From SIGTERM to SIGKILL.
            on_done: Called with those that outlived SIGKILL.
        """
        self._find_them = find
        super().__init__(loop, Child(NOBODY, "", 0), grace_s, on_done)

    def _find(self) -> list[Process]:
        return self._find_them()

    def _send(self, signum: signal.Signals) -> None:
        for process in self._targets:
            send(process, signum)

    def _shell_has_ended(self) -> bool:
        return True


def send(process: Process, signum: signal.Signals) -> None:
    """Signal this very process and no later one of the same pid."""
    # It may be gone, or run as someone else; what is left alive is reported by the caller.
    with suppress(ProcessLookupError, PermissionError):
        pidfd = _open_pidfd(process.pid)
        if pidfd is None:
            if is_same(process):
                os.kill(process.pid, signum)
            return
        try:
            if is_same(process):
                signal.pidfd_send_signal(pidfd, signum)
        finally:
            os.close(pidfd)


def _open_pidfd(pid: int) -> int | None:
    """Return a pidfd, or None where there are none to be had: an old kernel, a filter, no room."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except (AttributeError, OSError):
        return None


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
os.register_at_fork(after_in_child=_orphans.clear)
