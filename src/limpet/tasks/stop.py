"""Stopping a task: its supervisor is told to, and where there is none, it is done from here."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from limpet.loop import Loop
from limpet.process import reap
from limpet.process.table import Process
from limpet.tasks import record
from limpet.tasks.family import family
from limpet.tasks.record import OUTPUT, End, Record, TaskStatus
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
        loop.call_later(0, self._begin)

    def _begin(self) -> None:
        try:
            state = record.state_of(str(self._directory))
        except OSError as error:
            self._on_done(error)
            return
        self._until = time.monotonic() + state.record.kill_grace_s + reap.KILL_WAIT_S + _SLACK_S
        if state.status is TaskStatus.RUNNING:
            self._await_end()
        elif state.record.end is None and family(state.record):
            self._end_it_ourselves(state.record)
        else:
            self._finish(f"it had ended already: {state.status}")

    def _await_end(self) -> None:
        try:
            state = record.state_of(str(self._directory))
        except OSError as error:
            self._on_done(error)
            return
        if state.status is TaskStatus.LOST and family(state.record):
            self._end_it_ourselves(state.record)
        elif state.status is not TaskStatus.RUNNING:
            self._finish(_what(state.record.end))
        elif time.monotonic() > self._until:
            self._finish("its supervisor does not end it; see `ps`")
        else:
            supervisor = record.supervisor_of(state.record)
            # One that has just taken it over has not said so yet.
            if not self._has_told and supervisor is not None:
                self._has_told = True
                reap.send(supervisor, signal.SIGTERM)
            self._rest(supervisor)

    def _rest(self, supervisor: Process | None) -> None:
        """Look again when the supervisor has ended, or after a while."""
        pidfd = -1
        if supervisor is not None and self._has_told:
            with suppress(OSError, AttributeError):
                pidfd = os.pidfd_open(supervisor.pid)

        def look() -> None:
            timer.cancel()
            if pidfd >= 0:
                self._loop.remove_reader(pidfd)
                os.close(pidfd)
            self._await_end()

        timer = self._loop.call_later(_POLL_S if pidfd < 0 else _SLACK_S, look)
        if pidfd >= 0:
            self._loop.add_reader(pidfd, look)

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
            record.write(self._directory, lost._replace(end=end))
            self._shelf.note_end(lost.id)
            self._finish(what)

        kill = reap.KillOthers(self._loop, lambda: family(lost), lost.kill_grace_s, on_done)

    def _finish(self, what: str) -> None:
        try:
            state = record.state_of(str(self._directory))
        except OSError as error:
            self._on_done(error)
            return
        end = state.record.end
        code = None if end is None else end.exit_code
        self._on_done(Stopped(state.record.id, state.status, code, what))


def _what(end: End | None) -> str:
    if end is None:
        return "its supervisor was killed meanwhile"
    if end.stopped_with is None:
        return f"it had ended already: {end.status}"
    if end.stopped_with == "SIGTERM":
        return "ended with SIGTERM, all of it"
    return "SIGTERM was not enough: ended with SIGKILL, all of it"
