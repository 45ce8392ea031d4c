"""Waiting for a task: for its end, for quiet, for a line, for a port; for any of several tasks."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from limpet.loop import Loop, Timer
from limpet.process.sockets import listens
from limpet.tasks import record
from limpet.tasks.family import family
from limpet.tasks.pattern import Pattern
from limpet.tasks.reader import LIMIT_BYTES, Output
from limpet.tasks.record import OUTPUT, State, TaskStatus
from limpet.tasks.watch import Watch

WAIT_S = 600.0
"""How long to wait if nothing else is said."""
_LOST_S = 1.0
"""How often to look whether a supervisor was killed, which nobody tells."""
_PORT_S = 0.05
"""How often to look whether a port is open, which nobody tells either."""
_FORMS = "'exit', 'quiet:SECONDS', '/REGEX/' or 'port:NUMBER'"

Matched = Literal["exit", "quiet", "regex", "port", "timeout"]
Until = str | re.Pattern[str]


class Conditions(NamedTuple):
    """What to wait for, whichever comes first; the end of a task always counts."""

    patterns: tuple[Pattern, ...]
    quiet_s: float | None
    ports: tuple[int, ...]


class Waited(NamedTuple):
    """What a wait came to."""

    task_id: str
    matched: Matched
    match: str | None
    """The line that matched, or the port."""
    status: TaskStatus
    exit_code: int | None
    text: str
    """What is new since the cursor that was given."""
    cursor: int
    """Where the next reading begins."""
    more: bool
    """True if not all that is new is in `text`: read on from the cursor."""


def conditions(until: Until | Iterable[Until]) -> Conditions:
    """Return what to wait for.

    Raises:
        TypeError: It is neither text nor a pattern.
        ValueError: It is not one of the forms, or not a regular expression.
    """
    given = [until] if isinstance(until, str | re.Pattern) else list(until)
    patterns: list[Pattern] = []
    quiets: list[float] = []
    ports: list[int] = []
    for one in given:
        if isinstance(one, re.Pattern):
            patterns.append(Pattern(one))
            continue
        if not isinstance(one, str):
            raise TypeError(f"until is {_FORMS}, or a pattern, not {one!r}")
        if len(one) > 2 and one.startswith("/") and one.endswith("/"):
            patterns.append(Pattern(one[1:-1]))
        elif one.startswith("quiet:"):
            quiets.append(_number(one))
        elif one.startswith("port:"):
            ports.append(_port(one))
        elif one != "exit":
            raise ValueError(f"until is {_FORMS}, not {one!r}")
    return Conditions(tuple(patterns), min(quiets, default=None), tuple(ports))


def _number(one: str) -> float:
    try:
        value = float(one.partition(":")[2])
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ValueError(f"quiet takes seconds, as in 'quiet:2', not {one!r}")
    return value


def _port(one: str) -> int:
    text = one.partition(":")[2]
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise ValueError(f"port takes a number, as in 'port:8000', not {one!r}")
    return int(text)


def check_wait(timeout_s: float | None) -> float:
    """Return how long to wait at most; None is the default."""
    if timeout_s is None:
        return WAIT_S
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float):
        raise TypeError(f"timeout_s must be a number of seconds, not {timeout_s!r}")
    if not timeout_s >= 0:
        raise ValueError(f"timeout_s must be 0 or more, not {timeout_s!r}")
    return float(timeout_s)


class _Watched:
    """One task that is waited for."""

    def __init__(
        self, directory: Path, cursor: int | None, now: float, patterns: tuple[Pattern, ...]
    ) -> None:
        self.directory = directory
        self.cursor = cursor or 0
        self.scanned = dict.fromkeys(patterns, self.cursor)
        """How far each was looked for."""
        self.is_behind = False
        """True if there is more to look through."""
        self.size = -1
        self.grew_at = now


class Waiting:
    """Waits, on any loop, and calls back once with what it came to."""

    def __init__(
        self,
        loop: Loop,
        tasks: Sequence[tuple[Path, int | None]],
        until: Conditions,
        timeout_s: float,
        on_done: Callable[[Waited | OSError], None],
    ) -> None:
        """Begin.

        Args:
            loop: To wait on.
            tasks: Their directories, and from which cursor on output is new.
            until: What for.
            timeout_s: How long at most.
            on_done: Gets what it came to, or why it cannot be told.
        """
        now = time.monotonic()
        self._loop = loop
        self._until = until
        self._on_done = on_done
        self._deadline = now + timeout_s
        self._tasks = [
            _Watched(directory, cursor, now, until.patterns) for directory, cursor in tasks
        ]
        self._is_done = False
        self._timer: Timer | None = None
        self._has_looked = False
        self._watch = Watch(loop, [task.directory for task in self._tasks], self._look)

    def _look(self) -> None:
        if self._is_done:
            return
        now = time.monotonic()
        try:
            if now >= self._deadline and self._has_looked:
                self._finish(self._waited(self._tasks[0], "timeout"))
                return
            self._has_looked = True
            for task in self._tasks:
                if (waited := self._met(task, now)) is not None:
                    self._finish(waited)
                    return
        except OSError as error:
            self._finish(error)
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(self._next_look_s(now), self._look)

    def _next_look_s(self, now: float) -> float:
        if any(task.is_behind for task in self._tasks):
            return 0.0
        times = [self._deadline - now, _LOST_S]
        if self._until.ports:
            times.append(_PORT_S)
        if self._until.quiet_s is not None:
            grew_at = min(task.grew_at for task in self._tasks)
            times.append(grew_at + self._until.quiet_s - now)
        return max(0.0, min(times))

    def _met(self, task: _Watched, now: float) -> Waited | None:
        with Output(str(task.directory / OUTPUT)) as output:
            state = record.state_of(str(task.directory))
            has_ended = _note_end(output, state)
            if output.size != task.size:
                task.size, task.grew_at = output.size, now
            line = _find(task, output)
            if line is not None:
                return _waited(task, state, output, "regex", line)
            if has_ended and not task.is_behind:
                return _waited(task, state, output, "exit", None)
            if self._until.quiet_s is not None and now - task.grew_at >= self._until.quiet_s:
                return _waited(task, state, output, "quiet", None)
            for port in self._until.ports:
                if listens((process.pid for process in family(state.record)), port):
                    return _waited(task, state, output, "port", str(port))
        return None

    def _waited(self, task: _Watched, matched: Matched) -> Waited:
        with Output(str(task.directory / OUTPUT)) as output:
            state = record.state_of(str(task.directory))
            _note_end(output, state)
            return _waited(task, state, output, matched, None)

    def _finish(self, waited: Waited | OSError) -> None:
        self.close()
        self._on_done(waited)

    def close(self) -> None:
        """Wait no more."""
        self._is_done = True
        self._watch.close()
        if self._timer is not None:
            self._timer.cancel()


def _find(task: _Watched, output: Output) -> str | None:
    """Look for a line that matches, a part of the output at a time; return it."""
    task.is_behind = False
    for pattern, scanned in task.scanned.items():
        found = output.find(pattern, scanned)
        if found.line is not None:
            return found.line
        task.scanned[pattern] = found.cursor
        task.is_behind = task.is_behind or found.more
    return None


def _note_end(output: Output, state: State) -> bool:
    """Note where an output ends, if it does; return whether."""
    end = state.record.end
    if state.status is TaskStatus.RUNNING:
        return False
    output.ends(None if end is None else end.output_bytes)
    return True


def _waited(
    task: _Watched, state: State, output: Output, matched: Matched, match: str | None
) -> Waited:
    new = output.since(task.cursor, LIMIT_BYTES)
    end = state.record.end
    return Waited(
        task_id=state.record.id,
        matched=matched,
        match=match,
        status=state.status,
        exit_code=None if end is None else end.exit_code,
        text=new.text,
        cursor=new.cursor,
        more=new.more,
    )
