"""Events on their way to a consumer that may be slow: bounded, and never in the command's way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from limpet.events import Event, Output, Progress

BACKLOG_BYTES = 1 << 20
"""How much output waits for the consumer; beyond that the oldest is skipped and counted."""
_MERGE_BYTES = 1 << 16
"""Pieces are joined up to this size, so that a million of them are not a million events."""


class Backlog:
    """A queue of events that keeps the newest output and only the latest progress."""

    def __init__(self, on_put: Callable[[], None]) -> None:
        self._events: deque[Event] = deque()
        self._on_put = on_put
        self._bytes = 0
        self._skipped = 0

    def put(self, event: Event) -> None:
        """Add an event, at the expense of older ones if need be."""
        if isinstance(event, Progress):
            self._events = deque(e for e in self._events if not isinstance(e, Progress))
        elif isinstance(event, Output):
            self._bytes += len(event.data)
            while self._bytes > BACKLOG_BYTES and self._skip_oldest_output():
                pass
        self._append(event)
        self._on_put()

    def _append(self, event: Event) -> None:
        last = self._events[-1] if self._events else None
        if (
            isinstance(event, Output)
            and isinstance(last, Output)
            and event.stream == last.stream
            and len(last.data) < _MERGE_BYTES
        ):
            self._events.pop()
            event = Output(event.stream, last.data + event.data, last.text + event.text)
        self._events.append(event)

    def _skip_oldest_output(self) -> bool:
        oldest = next((e for e in self._events if isinstance(e, Output)), None)
        if oldest is None:
            return False
        self._events.remove(oldest)
        self._bytes -= len(oldest.data)
        self._skipped += len(oldest.data)
        return True

    def take(self) -> Event | None:
        """Return the oldest event, if there is one."""
        if not self._events:
            return None
        event = self._events.popleft()
        if isinstance(event, Output):
            self._bytes -= len(event.data)
            if self._skipped:
                event = Output(event.stream, event.data, event.text, self._skipped)
                self._skipped = 0
        return event
