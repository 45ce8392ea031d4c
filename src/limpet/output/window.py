"""The head and the tail of a stream, in constant memory, with exact counts of what lies between."""

from __future__ import annotations

from typing import NamedTuple


class Cut(NamedTuple):
    """What a window holds at the end: all of the stream, or its head and its tail."""

    head: bytes
    tail: bytes
    """Empty if nothing was omitted: then `head` is all."""
    omitted_bytes: int
    omitted_lines: int
    """Newlines among the omitted bytes."""


class Window:
    """Keeps a stream whole up to head + tail bytes, and then only these two ends of it."""

    def __init__(self, head_bytes: int, tail_bytes: int) -> None:
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._head = bytearray()
        self._tail: bytearray | None = None
        self.total_bytes = 0
        self.total_lines = 0

    @property
    def overflowed(self) -> bool:
        """True once the stream is longer than what the window keeps whole."""
        return self._tail is not None

    def whole(self) -> bytes:
        """Return all of the stream, as long as it has not overflowed."""
        return bytes(self._head)

    def feed(self, data: bytes | bytearray | memoryview, newlines: int) -> None:
        """Take the next piece of the stream, and how many newlines it holds."""
        self.total_bytes += len(data)
        self.total_lines += newlines
        if self._tail is None:
            self._head += data
            if len(self._head) > self._head_bytes + self._tail_bytes:
                self._tail = self._head[self._head_bytes :]
                del self._head[self._head_bytes :]
                self._trim()
        else:
            # Of a piece longer than the tail only its end can stay.
            self._tail += data[max(0, len(data) - self._tail_bytes) :]
            if len(self._tail) > 2 * self._tail_bytes:
                self._trim()

    def _trim(self) -> None:
        assert self._tail is not None  # noqa: S101 -- for the type checker
        del self._tail[: max(0, len(self._tail) - self._tail_bytes)]

    def last_line(self, at_most: int = 512) -> bytes:
        """Return the last line that is not blank, or its end if it is long."""
        end = (self._tail if self._tail is not None else self._head)[-4 * at_most :]
        return _start_on_character(bytes(end).rstrip().rsplit(b"\n", 1)[-1][-at_most:])

    def cut(self) -> Cut:
        """Return what is kept, cut where lines end, or within a very long line, characters."""
        if self._tail is None:
            return Cut(bytes(self._head), b"", 0, 0)
        self._trim()
        head = _end_on_border(bytes(self._head))
        tail = _start_on_border(bytes(self._tail))
        shown_lines = head.count(b"\n") + tail.count(b"\n")
        return Cut(
            head,
            tail,
            self.total_bytes - len(head) - len(tail),
            self.total_lines - shown_lines,
        )


def _end_on_border(head: bytes) -> bytes:
    # A line is given up only if that leaves half of the head: a very long line is cut instead.
    end = head.rfind(b"\n") + 1
    if end > len(head) // 2:
        return head[:end]
    lead = len(head)
    while lead and len(head) - lead < 4:
        lead -= 1
        if head[lead] & 0xC0 != 0x80:
            needed = 1 + (head[lead] >= 0xC0) + (head[lead] >= 0xE0) + (head[lead] >= 0xF0)
            return head if len(head) - lead >= needed else head[:lead]
    return head


def _start_on_border(tail: bytes) -> bytes:
    start = tail.find(b"\n", 0, len(tail) // 2) + 1
    return tail[start:] if start else _start_on_character(tail)


def _start_on_character(tail: bytes) -> bytes:
    start = 0
    while start < min(4, len(tail)) and tail[start] & 0xC0 == 0x80:
        start += 1
    # Four continuation bytes in a row are no character at all: there is no border to find.
    return tail[start:] if start < 4 else tail
