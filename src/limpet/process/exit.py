"""Notice that a child has ended, without a thread and without reaping it."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from contextlib import suppress

from limpet.loop import Loop, Timer

USE_PIDFD = hasattr(os, "pidfd_open")
"""Switched off by the tests to prove the fallback."""

_FIRST_POLL_S = 0.001
_LAST_POLL_S = 0.025
"""Without pidfd the exit is polled for, at intervals that double from the first to the last."""

_IN_THE_MIDDLE_MS = 1


class ExitWatch:
    """Calls back once when a child has ended; the child stays a zombie for the caller to reap."""

    def __init__(self, loop: Loop, pid: int, on_exit: Callable[[], None]) -> None:
        self._loop = loop
        self._pid = pid
        self._on_exit = on_exit
        self._timer: Timer | None = None
        self._pidfd = -1
        if USE_PIDFD:
            # No descriptor left, or a seccomp filter that forbids the call: poll instead.
            with suppress(OSError):
                self._pidfd = os.pidfd_open(pid)
        if self._pidfd >= 0:
            loop.add_reader(self._pidfd, self._notice)
        else:
            self._poll(_FIRST_POLL_S)

    def _poll(self, interval_s: float) -> None:
        if has_ended(self._pid):
            self._timer = self._loop.call_later(0, self._notice)
        else:
            longer = min(interval_s * 2, _LAST_POLL_S)
            self._timer = self._loop.call_later(interval_s, self._poll, longer)

    def _notice(self) -> None:
        self.close()
        self._on_exit()

    def close(self) -> None:
        """Stop watching; a second call does nothing."""
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def ends_now(pid: int) -> bool:
    """True if a child ends within a millisecond.

    Worth asking of one that closed its output: most often it is in the middle of its exit, and to
    wait for that here is cheaper than a turn of the loop, if the loop has nothing else to do.
    """
    if not USE_PIDFD:
        return False
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        return bool(poll.poll(_IN_THE_MIDDLE_MS))
    finally:
        os.close(pidfd)


def has_ended(pid: int) -> bool:
    """True if a child has ended, or is not ours any more since something else reaped it."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True
