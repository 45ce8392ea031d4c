"""Stopping a task: its supervisor is told to, and where there is none, it is done from here."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from limpet.loop import Loop, Timers
from limpet.process import reap
from limpet.process.table import Process
from limpet.tasks import record
from limpet.tasks.family import family
from limpet.tasks.record import OUTPUT, End, Record, State, TaskStatus
from limpet.tasks.shelf import Shelf

_POLL_S = 0.01
_SLACK_S = 10.0
"""What a busy machine may need on top of the grace and the kill."""


class Stopped(NamedTuple):
    """What stopping a task came to."""

    task_id: str
    status: TaskStatus
    exit_code: int | None
    what: str
    """What was done, in words."""


class Stopping:
    """Stops one task, on any loop, and calls back once."""

    def __init__(
        self,
        loop: Loop,
        shelf: Shelf,
        directory: Path,
        on_done: Callable[[Stopped | OSError], None],
    ) -> None:
        self._loop = loop
        self._shelf = shelf
        self._directory = directory
        self._on_done = on_done
        self._has_told = False
        self._until = 0.0
        self._pidfd = -1
        """The supervisor, while its end is awaited."""
        self._timers = Timers(loop)
        self._timers.set("look", 0, self._look)

    def _look(self) -> None:
        self._forget_supervisor()
        try:
            state = record.state_of(str(self._directory))
        except OSError as error:
            self._done(error)
            return
        if not self._until:
            grace_s = state.record.kill_grace_s
            self._until = time.monotonic() + grace_s + reap.KILL_WAIT_S + _SLACK_S
        if state.status is TaskStatus.LOST and family(state.record):
            self._end_it_ourselves(state.record)
        elif state.status is not TaskStatus.RUNNING:
            self._finish(_what(state, has_told=self._has_told))
        elif time.monotonic() >= self._until:
            self._finish("its supervisor does not end it; see `ps`")
        else:
            self._tell(record.supervisor_of(state.record))

    def _tell(self, supervisor: Process | None) -> None:
        """Have the supervisor end it, and look again when it has ended, or after a while."""
        # One that has just taken it over has not said so yet.
        if supervisor is not None and not self._has_told:
            self._has_told = True
            reap.send(supervisor, signal.SIGTERM)
            reap.send(supervisor, signal.SIGCONT)
        if supervisor is not None:
            with suppress(OSError, AttributeError):
                self._pidfd = os.pidfd_open(supervisor.pid)
        rest_s = _POLL_S
        if self._pidfd >= 0:
            self._loop.add_reader(self._pidfd, self._look)
            rest_s = max(_POLL_S, self._until - time.monotonic())
        self._timers.set("look", rest_s, self._look)

    def _forget_supervisor(self) -> None:
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1

    def close(self) -> None:
        """Wait no more; what was told to end, ends."""
        self._timers.drop_all()
        self._forget_supervisor()

    def _done(self, stopped: Stopped | OSError) -> None:
        self.close()
        self._on_done(stopped)

    def _end_it_ourselves(self, lost: Record) -> None:
        def on_done(left: list[Process]) -> None:
            if left:
                pids = ", ".join(str(process.pid) for process in left)
                self._finish(f"its supervisor was gone, and not even SIGKILL ended {pids}")
                return
            with_what = "SIGKILL" if kill.had_to_kill else "SIGTERM"
            what = f"its supervisor was gone; what was left of it was ended with {with_what}"
            now = time.time()
            end = End(
                status=TaskStatus.STOPPED,
                exit_code=None,
                signal=None,
                reason=what,
                ended_at=now,
                duration_s=max(0.0, now - lost.started_at),
                output_bytes=(self._directory / OUTPUT).stat().st_size,
                last_line="",
                stopped_with=with_what,
            )
            record.write(self._directory, lost._replace(end=end), by_other=True)
            self._shelf.note_end(lost.id)
            self._finish(what)

        kill = reap.KillOthers(self._loop, lambda: family(lost), lost.kill_grace_s, on_done)

    def _finish(self, what: str) -> None:
        try:
            state = record.state_of(str(self._directory))
        except OSError as error:
            self._done(error)
            return
        end = state.record.end
        code = None if end is None else end.exit_code
        self._done(Stopped(state.record.id, state.status, code, what))


def _what(state: State, *, has_told: bool) -> str:
    end = state.record.end
    if end is None:
        return "nothing of it was left, and how it had ended is not known"
    if end.stopped_with is None or not has_told:
        return f"it had ended already: {end.status}"
    if end.stopped_with == "SIGTERM":
        return "ended with SIGTERM, all of it"
    return "SIGTERM was not enough: ended with SIGKILL, all of it"
