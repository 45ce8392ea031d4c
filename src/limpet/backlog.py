"""Events on their way to a consumer that may be slow: bounded, and never in the command's way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from limpet.events import Event, Finished, Output, Progress, Started, Stream, Written
from limpet.output.text import TerminalText

BACKLOG_BYTES = 1 << 20
"""How much output waits for the consumer; beyond that the oldest is skipped and counted."""
_MERGE_BYTES = 1 << 16
"""Pieces are joined up to this size, so that a million of them are not a million events."""


class Backlog:
    """A queue of events that keeps the newest output and only the latest progress.

    Output becomes text when it is taken: of what is skipped nothing is decoded.
    """

    def __init__(self, on_put: Callable[[], None]) -> None:
        self._events: deque[Started | Written | Progress | Finished] = deque()
        self._on_put = on_put
        self._bytes = 0
        self._skipped = 0
        self._texts: dict[Stream, TerminalText] = {}

    def put(self, event: Started | Written | Progress | Finished) -> None:
        """Add an event, at the expense of older ones if need be."""
        if isinstance(event, Progress):
            self._events = deque(e for e in self._events if not isinstance(e, Progress))
        elif isinstance(event, Written):
            self._bytes += len(event.data)
            event = self._joined_with_last(event)
            while self._bytes > BACKLOG_BYTES and self._skip_oldest():
                pass
        self._events.append(event)
        self._on_put()

    def _joined_with_last(self, event: Written) -> Written:
        last = self._events[-1] if self._events else None
        if not isinstance(last, Written) or last.stream != event.stream:
            return event
        if len(last.data) >= _MERGE_BYTES:
            return event
        self._events.pop()
        return Written(event.stream, last.data + event.data)

    def _skip_oldest(self) -> bool:
        for place, event in enumerate(self._events):
            if isinstance(event, Written):
                del self._events[place]
                self._bytes -= len(event.data)
                self._skipped += len(event.data)
                # What follows does not continue what was decoded so far.
                self._texts.clear()
                return True
        return False

    def take(self) -> Event | None:
        """Return the oldest event, if there is one."""
        if not self._events:
            return None
        event = self._events[0]
        if isinstance(event, Finished) and (rest := self._rest()) is not None:
            return rest
        self._events.popleft()
        if not isinstance(event, Written):
            return event
        self._bytes -= len(event.data)
        text = self._texts.setdefault(event.stream, TerminalText()).feed(event.data)
        skipped, self._skipped = self._skipped, 0
        return Output(event.stream, event.data, text, skipped)

    def _rest(self) -> Output | None:
        """Return what the end of a stream left unfinished."""
        while self._texts:
            stream, text = self._texts.popitem()
            if rest := text.feed(b"", final=True):
                return Output(stream, b"", rest)
        return None
