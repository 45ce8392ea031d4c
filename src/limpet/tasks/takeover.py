"""Going on with processes that another program has started, and that are not our children.

What they write is read, their end is seen, and they are ended if that is asked for.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from limpet.loop import SelectorLoop
from limpet.output.capture import Capture, Pipe
from limpet.process import reap, table
from limpet.process.table import NOBODY, Process
from limpet.tasks.record import Mark

_POLL_S = 0.25
"""How often to look where there are no pidfds."""
_DRAIN_S = 0.1
"""How long output is awaited after the last process has ended: who holds the pipe is not ours."""
_TRIES, _TRY_AGAIN_S = 5, 0.002
_GET_INFO = 0xC040_FF0B
_INFO_EXIT = 1 << 3
_INFO = struct.Struct("=QQ11Ii")
"""What a pidfd tells, since Linux 6.15 also the wait status of a process that was reaped."""


class Outcome(NamedTuple):
    """How it ended."""

    exit_code: int | None
    signal: str | None
    stopped_with: str | None
    left: tuple[Process, ...]
    """What outlived SIGKILL."""


class Takeover:
    """One run that goes on."""

    def __init__(
        self,
        loop: SelectorLoop,
        child: reap.Child,
        processes: list[Process],
        told: tuple[Mark | None, int],
        pipes: list[Pipe],
        capture: Capture,
        on_done: Callable[[Outcome], None],
    ) -> None:
        """Begin.

        Args:
            loop: To wait on.
            child: The shell that the run began with.
            processes: Those that are alive.
            told: The one whose exit code is that of the task, if there is one, and a pidfd of it.
            pipes: What they write to.
            capture: Where that goes.
            on_done: Gets how it ended.
        """
        self._loop = loop
        self._child = child
        self._pipes = pipes
        self._capture = capture
        self._on_done = on_done
        self._watched: dict[Process, int] = {}
        self._told, self._told_fd = told
        self._status: int | None = None
        self._stopped_with: str | None = None
        self._left: tuple[Process, ...] = ()
        self._kill: reap.KillOthers | None = None
        self._is_done = False
        for pipe in pipes:
            loop.add_reader(pipe.fd, self._on_readable, pipe)
        for process in processes:
            self._watch(process)
        if self._told is not None and self._told.find() is None:
            self._status = _reaped_status(self._told_fd)  # it has ended on the way here
        loop.call_later(0, self._look)

    # Output

    def _on_readable(self, pipe: Pipe) -> None:
        if self._capture.read(pipe) == 0:
            self._close(pipe)

    def _close(self, pipe: Pipe) -> None:
        self._capture.finish(pipe)
        self._loop.remove_reader(pipe.fd)
        pipe.close()
        self._pipes.remove(pipe)

    # Processes

    def _watch(self, process: Process) -> None:
        try:
            pidfd = os.pidfd_open(process.pid)
        except (AttributeError, OSError):
            pidfd = -1
        if pidfd >= 0 and not table.is_same(process):
            os.close(pidfd)
            return
        self._watched[process] = pidfd
        if pidfd >= 0:
            self._loop.add_reader(pidfd, self._on_exit, process)
        else:
            self._poll(process)

    def _poll(self, process: Process) -> None:
        if table.is_alive(process):
            self._loop.call_later(_POLL_S, self._poll, process)
        else:
            self._on_exit(process)

    def _on_exit(self, process: Process) -> None:
        pidfd = self._watched.pop(process)
        if self._told is not None and self._told.pid == process.pid:
            self._status = _wait_status(process, self._told_fd)
        if pidfd >= 0:
            self._loop.remove_reader(pidfd)
            os.close(pidfd)
        if not self._watched:
            self._look()

    def _look(self) -> None:
        """See who is there that nobody has told us of, and whether this is the end."""
        if self._watched or self._is_done or self._kill is not None:
            return
        for process in self._family():
            self._watch(process)
        if not self._watched:
            self._is_done = True
            self._loop.call_later(_DRAIN_S if self._pipes else 0.0, self._finish)

    def _family(self) -> list[Process]:
        """Return who belongs to the run: its group only as long as its number cannot be another's.

        The kernel gives no pid twice that is still the number of a group. So the group is the run's
        own while one of those that were handed over is alive, or the shell waits to be reaped.
        """
        is_anchored = any(map(table.is_same, self._watched)) or (
            self._told is not None and self._told.find() is not None
        )
        leader = self._child.pid if is_anchored else NOBODY
        found = table.members(leader, self._child.run_id, self._child.since_ticks)
        known = [process for process in self._watched if table.is_alive(process)]
        return [*known, *(one for one in found if one.pid not in {p.pid for p in known})]

    # The end

    def stop(self, grace_s: float) -> None:
        """End all of it."""
        if self._kill is not None or self._is_done:
            return

        def on_done(left: list[Process]) -> None:
            self._left = tuple(left)
            self._stopped_with = "SIGKILL" if kill.had_to_kill else "SIGTERM"
            for process in tuple(self._watched):
                self._on_exit(process)
            self._is_done = True
            self._finish()

        self._kill = kill = reap.KillOthers(self._loop, self._family, grace_s, on_done)

    def _finish(self) -> None:
        for pipe in tuple(self._pipes):
            with suppress(OSError):
                while self._capture.read(pipe):
                    pass
            self._close(pipe)
        code, name = (None, None) if self._status is None else reap.exit_of(self._status)
        self._on_done(Outcome(code, name, self._stopped_with, self._left))


def _wait_status(process: Process, pidfd: int) -> int | None:
    """Return how a process ended that is not ours: while it is a zombie, or from the kernel."""
    for _ in range(_TRIES):
        status = table.zombie_status(process)
        if status is None:
            status = _reaped_status(pidfd)
        if status is not None:
            return status
        time.sleep(_TRY_AGAIN_S)  # it is being reaped this very moment
    return None


def _reaped_status(pidfd: int) -> int | None:
    """Return how a process ended that was reaped already, if the kernel tells."""
    buffer = bytearray(_INFO.pack(_INFO_EXIT, *[0] * 13))
    try:
        fcntl.ioctl(pidfd, _GET_INFO, buffer)
    except (OSError, ValueError):  # an older kernel, or no pidfd at all
        return None
    mask, *_, status = _INFO.unpack(buffer)
    return int(status) if mask & _INFO_EXIT else None
