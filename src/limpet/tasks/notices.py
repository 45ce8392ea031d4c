"""Telling a host, once, that a task has ended; also of those that ended while nobody listened."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import NamedTuple

from limpet.tasks import record
from limpet.tasks.reader import Output
from limpet.tasks.record import OUTPUT, Record, State, TaskStatus
from limpet.tasks.shelf import UNTOLD, Shelf

LAST_LINES = 10
_LAST_BYTES = 2000
LOOK_S = 1.0
"""How often to look whether a supervisor was killed, which nobody tells."""


class Notice(NamedTuple):
    """A task has ended."""

    task_id: str
    command: str
    description: str | None
    session_id: str | None
    status: TaskStatus
    exit_code: int | None
    signal: str | None
    duration_s: float
    last_lines: str
    reason: str | None


def take(shelf: Shelf, session_id: str | None) -> Iterator[Notice]:
    """Yield the ends that nobody was told of, each only once.

    Of one conversation; or of all that this program has begun, and of those whose program has ended
    since. Each is taken when it is asked for: what a caller does not ask for, another is told.
    """
    for task_id in shelf.untold():
        directory = shelf.path / task_id
        try:
            state = record.state_of(str(directory))
        except OSError:
            shelf.claim(task_id)  # it was removed before anybody asked
            continue
        if session_id is None:
            is_other = _has_another_host(state.record)
        else:
            is_other = state.record.session_id != session_id
        if is_other or state.status is TaskStatus.RUNNING or not shelf.claim(task_id):
            continue
        yield _notice(state, _last_lines(str(directory / OUTPUT), state))


async def subscribe(shelf: Shelf, session_id: str | None) -> AsyncIterator[Notice]:
    """Yield the ends of tasks as they come; first of those that nobody was told of."""
    import asyncio

    from limpet.tasks.watch import Watch

    loop = asyncio.get_running_loop()
    news = asyncio.Event()
    (shelf.path / UNTOLD).mkdir(mode=0o700, exist_ok=True)
    watch = Watch(loop, [shelf.path / UNTOLD], news.set)
    try:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await news.wait()
            news.clear()
            for notice in take(shelf, session_id):
                yield notice
    finally:
        watch.close()


def _has_another_host(found: Record) -> bool:
    """True if the program that began a task is another one, and alive to be told itself."""
    is_here = found.boot_id == record.boot_id() and found.host.pid != os.getpid()
    return is_here and found.host.find() is not None


def _notice(state: State, last_lines: str) -> Notice:
    end = state.record.end
    return Notice(
        task_id=state.record.id,
        command=state.record.command,
        description=state.record.description,
        session_id=state.record.session_id,
        status=state.status,
        exit_code=None if end is None else end.exit_code,
        signal=None if end is None else end.signal,
        duration_s=record.duration_s(state.record),
        last_lines=last_lines,
        reason=state.reason,
    )


def _last_lines(path: str, state: State) -> str:
    with suppress(OSError), Output(path) as output:
        output.ends(None if state.record.end is None else state.record.end.output_bytes)
        return output.last(LAST_LINES, _LAST_BYTES).text
    return ""
