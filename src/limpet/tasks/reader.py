"""Reading a task's output: from a cursor on, its last lines, a range of lines, what matches.

One reader for all: the file is the same whether the task runs, has ended, or was adopted with what
it had printed before. What is read is decoded and cleaned like any output, and bounded.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Generator, Iterator
from typing import NamedTuple

from limpet.output.text import clean, complete, is_binary
from limpet.output.window import Window

LIMIT_BYTES = 30_000
"""How much one reading returns."""
SEARCH_BYTES = 256 << 20
"""How much one search looks through."""
_BLOCK = 1 << 18
_LONGEST_LINE = 1 << 16
"""A longer line counts as several."""
_HEAD_SHARE = 3
"""Of what is cut in the middle, a third is the head."""


class Reading(NamedTuple):
    """A part of a task's output."""

    text: str
    cursor: int
    """Where the next reading begins, so that nothing is read twice and nothing is missed."""
    more: bool = False
    """True if there is more to be read from there now."""
    matches: int = 0
    """How many lines matched a search."""

    def __await__(self) -> Generator[None, None, Reading]:
        """Be there at once, for callers that await everything."""
        return self
        yield


class Output:
    """The output file of a task, up to where the task's own output ends."""

    def __init__(self, path: str) -> None:
        """Open it, as long as it is now.

        Raises:
            OSError: It cannot be read.
        """
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        self._path = path
        self._has_ended = False
        self.size = os.fstat(self._fd).st_size

    def ends(self, size: int | None = None) -> None:
        """Note that the task writes no more, and how much it has written.

        The note of a task's end is written after its record: so this must be asked after the file
        was opened, and then the note can never be taken for output.
        """
        self._has_ended = True
        now = os.fstat(self._fd).st_size
        self.size = now if size is None else min(now, size)

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def since(self, cursor: int, limit: int) -> Reading:
        """Return what was written from a cursor on, as much as the limit admits."""
        start = min(max(0, cursor), self.size)
        data = self._read(start, min(limit, self.size - start))
        reaches_end = start + len(data) >= self.size
        if not (reaches_end and self._has_ended):
            data = data[: _whole(data, is_cut=not reaches_end)]
        stop = start + len(data)
        return Reading(_text(data), stop, more=stop < self.size and bool(data))

    def tail(self, size: int) -> bytes:
        """Return the end of it, raw."""
        start = max(0, self.size - size)
        return self._read(start, self.size - start)

    def all(self, limit: int) -> Reading:
        """Return all of it; if that is too much, the head and the tail, and what lies between."""
        head = limit // _HEAD_SHARE
        window = Window(head, limit - head)
        if self.size <= limit:
            data = self._read(0, self.size)
            window.feed(data, data.count(b"\n"))
            stop = self.size if self._has_ended else complete(data)
            return Reading(_text(data[:stop]), stop)
        for data in self._blocks(0, self.size):
            window.feed(data, data.count(b"\n"))
        cut = window.cut()
        counts = f"{cut.omitted_lines} lines / {cut.omitted_bytes} bytes omitted"
        start = _text(cut.head)
        start += "" if start.endswith("\n") or not start else "\n"
        return Reading(f"{start}[… {counts}; full: {self._path} …]\n{_text(cut.tail)}", self.size)

    def last(self, count: int, limit: int) -> Reading:
        """Return the last lines."""
        start = self._start_of_last(count, limit)
        data = self._read(start, self.size - start)
        return Reading(_text(data), self.size)

    def _start_of_last(self, count: int, limit: int) -> int:
        place, found = self.size, 0
        least = max(0, self.size - limit)
        while place > least:
            start = max(least, place - _BLOCK)
            block = self._read(start, place - start)
            position = len(block)
            while (position := block.rfind(b"\n", 0, position)) >= 0:
                # The one that ends the output begins no line.
                if start + position + 1 < self.size:
                    found += 1
                    if found >= count:
                        return start + position + 1
            place = start
        return least

    def lines(self, first: int, last: int, limit: int) -> Reading:
        """Return lines by their numbers, from 1 on, the last included."""
        kept = bytearray()
        place = number = 0
        for number, line in enumerate(self._lines(0, self.size), start=1):
            if number > last or (kept and len(kept) + len(line) > limit):
                break
            place += len(line)
            if number >= first:
                kept += line[:limit]
        return Reading(_text(bytes(kept)), place, more=place < self.size)

    def search(self, pattern: re.Pattern[str], cursor: int, context: int, limit: int) -> Reading:
        """Return the lines that match, numbered, each with some around it."""
        before: deque[tuple[int, str]] = deque(maxlen=context)
        shown: list[str] = []
        start = min(max(0, cursor), self.size)
        stop = min(self.size, start + SEARCH_BYTES)
        size = matches = after = last_shown = 0
        place = start
        for number, line in enumerate(self._lines(start, stop), start=self._line_at(start)):
            text = clean(line.rstrip(b"\n"))
            is_match = pattern.search(text) is not None
            if is_match:
                matches += 1
                after = context + 1
            if after:
                rows = [(n, t, "-") for n, t in before] if is_match else []
                rows.append((number, text, ":" if is_match else "-"))
                if last_shown and rows[0][0] > last_shown + 1:
                    shown.append("--")
                shown += [f"{n}{mark}{t}" for n, t, mark in rows]
                size += sum(len(t) for _, t, _ in rows)
                last_shown = number
                after -= 1
                before.clear()
            else:
                before.append((number, text))
            place += len(line)
            if size >= limit:
                break
        text = "".join(f"{row}\n" for row in shown)[:limit]
        return Reading(text, place, more=place < self.size, matches=matches)

    def find(self, pattern: re.Pattern[str], cursor: int) -> tuple[str | None, int]:
        """Look for the first line that matches.

        Returns:
            The line, or None; and from where to look when there is more: a line that is not
            complete is looked at again.
        """
        place = min(max(0, cursor), self.size)
        for line in self._lines(place, self.size):
            text = clean(line)
            if pattern.search(text.rstrip("\n")):
                return text.rstrip("\n"), place
            if line.endswith(b"\n"):
                place += len(line)
        return None, place

    def _line_at(self, place: int) -> int:
        return 1 + sum(block.count(b"\n") for block in self._blocks(0, place))

    def _lines(self, start: int, stop: int) -> Iterator[bytes]:
        rest = b""
        for block in self._blocks(start, stop):
            *lines, rest = _split(rest + block)
            yield from lines
            while len(rest) > _LONGEST_LINE:
                yield rest[:_LONGEST_LINE]
                rest = rest[_LONGEST_LINE:]
        if rest:
            yield rest

    def _blocks(self, start: int, stop: int) -> Iterator[bytes]:
        while start < stop:
            block = self._read(start, min(_BLOCK, stop - start))
            if not block:
                return
            yield block
            start += len(block)

    def _read(self, start: int, size: int) -> bytes:
        return os.pread(self._fd, size, start) if size > 0 else b""


def _split(data: bytes) -> list[bytes]:
    """Return complete lines, and last what follows them."""
    *lines, rest = data.split(b"\n")
    return [*(line + b"\n" for line in lines), rest]


def _whole(data: bytes, *, is_cut: bool) -> int:
    """Return how much to hand out now: no part of a character; and of what is cut, whole lines."""
    if is_cut and (newline := data.rfind(b"\n")) >= 0:
        return newline + 1
    # What never ends is no sequence: it must not keep the reader where it is.
    return complete(data) or (len(data) if is_cut else 0)


def _text(data: bytes) -> str:
    return f"[binary data: {len(data)} bytes]\n" if is_binary(data) else clean(data)


def ends_a_line(path: str, size: int) -> bool:
    """True if so much of an output is nothing, or complete lines."""
    with Output(path) as output:
        output.ends(size)
        return output.tail(1) in (b"", b"\n")


def last_line(path: str, at_most: int = 200) -> str:
    """Return the last line that says something; empty if there is none."""
    try:
        with Output(path) as output:
            lines = output.last(5, 4096).text.splitlines()
    except OSError:
        return ""
    return next((line.strip()[:at_most] for line in reversed(lines) if line.strip()), "")
