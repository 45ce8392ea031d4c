"""Reading a task's output: from a cursor on, its last lines, a range of lines, what matches.

One reader for all: the file is the same whether the task runs, has ended, or was adopted with what
it had printed before. What is read is decoded and cleaned like any output, and bounded.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Generator, Iterator
from typing import NamedTuple, TypedDict

from limpet.output.text import clean, complete, is_binary
from limpet.output.window import Window
from limpet.tasks.pattern import Pattern

LIMIT_BYTES = 30_000
"""How much one reading returns."""
SEARCH_BYTES = 64 << 20
"""How much one search looks through."""
FIND_BYTES = 1 << 20
"""How much is looked through at once while others wait for the loop."""
_BLOCK = 1 << 18
_LONGEST_LINE = 1 << 16
"""A longer line is looked at in pieces."""
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
    omitted_bytes: int = 0
    """What lies between the head and the tail of an output that was too long."""

    def __await__(self) -> Generator[None, None, Reading]:
        """Be there at once, for callers that await everything."""
        return self
        yield


class Found(NamedTuple):
    """What a look for a line came to."""

    line: str | None
    cursor: int
    """From where to look on: a line that is not complete is looked at again."""
    more: bool
    """True if there is more to look through now."""


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
        is_cut = start + len(data) < self.size
        data = data[: self._whole(data, is_cut=is_cut)]
        return Reading(_text(data), start + len(data), more=is_cut)

    def tail(self, size: int) -> bytes:
        """Return the end of it, raw."""
        start = max(0, self.size - size)
        return self._read(start, self.size - start)

    def all(self, limit: int, cut_mark: str | None = None) -> Reading:
        """Return all of it; if that is too much, the head and the tail, and what lies between."""
        if self.size <= limit:
            return self.since(0, limit)
        head = limit // _HEAD_SHARE
        window = Window(head, limit - head)
        last = self.tail(limit)
        stop = self.size - len(last) + self._whole(last, is_cut=False)
        for data in self._blocks(0, stop):
            window.feed(data, data.count(b"\n"))
        cut = window.cut()
        start = _text(cut.head)
        if cut_mark is None:
            counts = f"{cut.omitted_lines} lines / {cut.omitted_bytes} bytes omitted"
            start += "" if start.endswith("\n") or not start else "\n"
            cut_mark = f"[… {counts}; full: {self._path} …]\n"
        text = f"{start}{cut_mark}{_text(cut.tail)}"
        return Reading(text, stop, omitted_bytes=cut.omitted_bytes)

    def last(self, count: int, limit: int) -> Reading:
        """Return the last lines."""
        start = self._start_of_last(count, limit)
        data = self._read(start, self.size - start)
        data = data[: self._whole(data, is_cut=False)]
        return Reading(_text(data), start + len(data))

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
        return least + _continuation(self._read(least, 4)) if least else 0

    def lines(self, first: int, last: int, limit: int) -> Reading:
        """Return lines by their numbers, from 1 on, the last included."""
        number, place = self._skip_lines(first - 1)
        kept = bytearray()
        for line in self._lines(place, self.size):
            if number >= last or (kept and len(kept) + len(line) > limit):
                break
            kept += line[: limit - len(kept)]
            place += len(line)
            number += line.endswith(b"\n")
        return Reading(_text(bytes(kept)), place, more=place < self.size)

    def _skip_lines(self, count: int) -> tuple[int, int]:
        """Return how many lines were skipped, and where the next begins."""
        skipped = place = 0
        for block in self._blocks(0, self.size):
            newlines = block.count(b"\n")
            if skipped + newlines < count:
                skipped += newlines
                place += len(block)
                continue
            position = 0
            for _ in range(count - skipped):
                position = block.index(b"\n", position) + 1
            return count, place + position
        return skipped, place

    def search(self, pattern: Pattern, cursor: int, context: int, limit: int) -> Reading:
        """Return the lines that match, numbered, each with some around it.

        Raises:
            ValueError: The expression takes too long.
        """
        start = min(max(0, cursor), self.size)
        stop = min(self.size, start + SEARCH_BYTES)
        hits = _Hits(context, limit)
        place, number = start, 1 + sum(b.count(b"\n") for b in self._blocks(0, start))
        for block in self._line_blocks(start, stop):
            # Most of a log is passed over as a whole; but not what may be the lines around a match.
            if not hits.is_open and not pattern.may_match(clean(block)):
                hits.forget(block, number)
                number += block.count(b"\n")
                place += len(block)
                continue
            for line in _split(block):
                text = clean(line.rstrip(b"\n"))
                if not hits.take(number, text, is_match=pattern.matches(text)):
                    return Reading(hits.text(), place, more=True, matches=hits.count)
                place += len(line)
                number += line.endswith(b"\n")
        return Reading(hits.text(), place, more=place < self.size, matches=hits.count)

    def find(self, pattern: Pattern, cursor: int) -> Found:
        """Look for the first line that matches, through a part of the output.

        Raises:
            ValueError: The expression takes too long.
        """
        place = min(max(0, cursor), self.size)
        stop = min(self.size, place + FIND_BYTES)
        for block in self._line_blocks(place, stop):
            if pattern.may_match(clean(block)):
                for line in _split(block):
                    text = clean(line).rstrip("\n")
                    if pattern.matches(text):
                        return Found(text, place, more=False)
            if block.endswith(b"\n") or len(block) >= _LONGEST_LINE:
                place += len(block)
        return Found(None, place, more=stop < self.size)

    def _line_blocks(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield the output in blocks of whole lines; a line that is too long is one by itself."""
        rest = b""
        for block in self._blocks(start, stop):
            lines, newline, rest = (rest + block).rpartition(b"\n")
            if newline:
                yield lines + newline
            while len(rest) >= _LONGEST_LINE:
                yield rest[:_LONGEST_LINE]
                rest = rest[_LONGEST_LINE:]
        if rest:
            yield rest

    def _lines(self, start: int, stop: int) -> Iterator[bytes]:
        for block in self._line_blocks(start, stop):
            yield from _split(block)

    def _blocks(self, start: int, stop: int) -> Iterator[bytes]:
        while start < stop:
            block = self._read(start, min(_BLOCK, stop - start))
            if not block:
                return
            yield block
            start += len(block)

    def _read(self, start: int, size: int) -> bytes:
        return os.pread(self._fd, size, start) if size > 0 else b""

    def _whole(self, data: bytes, *, is_cut: bool) -> int:
        """Return how much to hand out now: no part of a character; of what is cut, whole lines."""
        if is_cut and (newline := data.rfind(b"\n")) >= 0:
            return newline + 1
        if self._has_ended and not is_cut:
            return len(data)
        # What never ends is no sequence: it must not keep the reader where it is.
        return complete(data) or (len(data) if is_cut else 0)


class Part(TypedDict, total=False):
    """Which part of an output is wanted: one way at a time, and `search` also takes `cursor`."""

    cursor: int | None
    """From here on, as an earlier reading returned it: nothing twice, nothing missed."""
    last: int | None
    """So many lines from the end."""
    lines: tuple[int, int] | None
    """From the first to the last of these, counted from 1."""
    search: str | re.Pattern[str] | None
    """The lines that match a regular expression, numbered, from the cursor on."""
    context: int
    """So many lines around each."""
    limit: int
    """How many bytes at most."""
    cut_mark: str | None
    """What stands where something was left out; None says how much, and where all of it is."""


def read(output: Output, part: Part) -> Reading:
    """Return a part of an output.

    Raises:
        TypeError: There is no such argument.
        ValueError: An argument is out of range, or more than one way is asked for.
    """
    if unknown := part.keys() - Part.__annotations__.keys():
        raise TypeError(f"no such argument: {', '.join(sorted(unknown))}")
    cursor, last, lines = part.get("cursor"), part.get("last"), part.get("lines")
    search, context = part.get("search"), part.get("context", 0)
    limit = part.get("limit", LIMIT_BYTES)
    ways = [way for way in (last, lines, search) if way is not None]
    if len(ways) > 1 or (cursor is not None and (last is not None or lines is not None)):
        raise ValueError("give one of cursor, last, lines and search (search also takes cursor)")
    if limit < 1 or context < 0 or (cursor or 0) < 0 or (last is not None and last < 1):
        raise ValueError("limit and last must be 1 or more, cursor and context 0 or more")
    if lines is not None and not 1 <= lines[0] <= lines[1]:
        raise ValueError(f"lines are (first, last), counted from 1, not {lines!r}")
    if last is not None:
        return output.last(last, limit)
    if lines is not None:
        return output.lines(*lines, limit)
    if search is not None:
        return output.search(Pattern(search), cursor or 0, context, limit)
    if cursor is None:
        return output.all(limit, part.get("cut_mark"))
    return output.since(cursor, limit)


class _Hits:
    """The rows that a search shows: matches, and some lines around them."""

    def __init__(self, context: int, limit: int) -> None:
        self._context = context
        self._limit = limit
        self._before: deque[tuple[int, str]] = deque(maxlen=context)
        self._after = 0
        self._rows: list[str] = []
        self._size = 0
        self._last = 0
        self.count = 0

    @property
    def is_open(self) -> bool:
        """True while lines after a match are to be shown."""
        return self._after > 0

    def forget(self, block: bytes, number: int) -> None:
        """Pass over lines without a match; the last of them may come before one."""
        if self._context:
            lines = _split(block)
            first = number + len(lines) - self._context
            for place, line in enumerate(lines[-self._context :]):
                self._before.append((max(number, first) + place, clean(line.rstrip(b"\n"))))

    def take(self, number: int, text: str, *, is_match: bool) -> bool:
        """Look at a line; False if there is no room to show it."""
        if not is_match and not self._after:
            self._before.append((number, text))
            return True
        rows = [f"{n}-{line}" for n, line in self._before] if is_match else []
        rows.append(f"{number}{':' if is_match else '-'}{text}")
        first = self._before[0][0] if is_match and self._before else number
        if self._context and self._last and first > self._last + 1:
            rows.insert(0, "--")
        size = sum(len(row) + 1 for row in rows)
        if self._rows and self._size + size > self._limit:
            return False
        self._rows += [row[: self._limit] for row in rows]
        self._size += size
        self._last = number
        self._after = self._context if is_match else self._after - 1
        self.count += is_match
        self._before.clear()
        return True

    def text(self) -> str:
        return "".join(f"{row}\n" for row in self._rows)


def _split(data: bytes) -> list[bytes]:
    """Return lines with their ends; the last may have none."""
    *lines, rest = data.split(b"\n")
    return [*(line + b"\n" for line in lines), *([rest] if rest else [])]


def _continuation(data: bytes) -> int:
    """Return how many bytes at the start belong to a character that began before."""
    return next((place for place, byte in enumerate(data) if byte & 0xC0 != 0x80), len(data))


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
