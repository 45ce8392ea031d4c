"""Making long text short: pure functions, one for each way of cutting."""

from __future__ import annotations

import re
from typing import NamedTuple


class Fitted(NamedTuple):
    """Text that fits a budget, and what it cost."""

    text: str
    omitted_lines: int = 0
    omitted_chars: int = 0

    @property
    def is_cut(self) -> bool:
        """True if something was left out."""
        return self.omitted_lines > 0 or self.omitted_chars > 0


def middle(text: str, head: int, tail: int, marker: str) -> str:
    """Return the first and the last so many characters, with a marker for what lay between."""
    return text[:head] + marker + (text[-tail:] if tail else "")


JOIN = "\0"
"""As the policy's `cut_mark`: stands where the engine has left something out, and nowhere else,
since clean text has no such character."""


class Ends(NamedTuple):
    """The two ends of a text, and how much lies between them that is known."""

    head: str
    tail: str
    omitted: int
    """Characters of what the engine has kept; 0 if nothing had to be left out."""


def ends(text: str, head: int, tail: int) -> Ends:
    """Return the first and the last so many characters, no character twice.

    What the engine has left out lies between them, in any case.
    """
    start, join, end = text.partition(JOIN)
    if not join:
        if len(text) <= head + tail:
            return Ends(text, "", 0)
        return Ends(text[:head], text[len(text) - tail :], len(text) - head - tail)
    kept_start, kept_end = start[:head], end[max(0, len(end) - tail) :]
    return Ends(kept_start, kept_end, len(start) + len(end) - len(kept_start) - len(kept_end))


def ends_in_bytes(text: str, head: int, tail: int) -> tuple[str, str]:
    """Return the same, counted in bytes of UTF-8; no character is split."""
    start, _, end = text.partition(JOIN)
    first = start.encode("utf-8", "replace")[:head].decode("utf-8", "ignore")
    data = end.encode("utf-8", "replace")
    return first, data[max(0, len(data) - tail) :].decode("utf-8", "ignore")


def last_lines(text: str, count: int) -> str:
    """Return the last so many lines."""
    return "".join(_lines(text)[-count:])


def count_lines(text: str) -> int:
    """Return how many lines a text has; a last one without its end counts."""
    return text.count("\n") + (bool(text) and not text.endswith("\n"))


_TROUBLE = re.compile(
    r"\b(?:error|fatal|panic|panicked|traceback|exception|assert(?:ion)?(?:error)?|failed|failure"
    r"|undefined reference|segmentation fault|cannot|not found|denied)\b|^\s*(?:E  |FAIL|✗|✘|×)",
    re.I,
)
_GAP = re.compile(r"\[… .* omitted; .*…\]\n?")
"""What the engine says where it has cut itself."""
_HEAD_SHARE, _TROUBLE_SHARE = 0.25, 0.2
_LONGEST_LINE = 2000
_ROOM_FOR_MARKER = 60


def by_lines(text: str, budget: int) -> Fitted:
    """Return text that fits a budget of characters.

    It is whole lines of the head and the tail, and of what lies between those that tell of trouble.
    """
    if len(text) <= budget:
        return Fitted(text)
    lines = _lines(text)
    longest = max(min(_LONGEST_LINE, budget // 4), int(budget * 0.9) // len(lines))
    lines = [_shortened(line, longest) for line in lines]
    if sum(map(len, lines)) <= budget:
        return Fitted("".join(lines), 0, len(text) - sum(map(len, lines)))
    head = _fitting(lines, int(budget * _HEAD_SHARE))
    rest = budget - sum(map(len, lines[:head]))
    room = int(budget * _TROUBLE_SHARE)
    tail = _fitting(lines[: head - 1 if head else None : -1], rest - room)
    stop = len(lines) - tail
    kept = _troubled(lines, head, stop, room)
    parts: list[str] = lines[:head]
    place = head
    for number in [*kept, stop]:
        if number > place:
            parts.append(_marker(number - place))
        if number < stop:
            parts.append(lines[number])
        place = number + 1
    parts += lines[stop:]
    shown = lines[:head] + lines[stop:] + [lines[number] for number in kept]
    return Fitted("".join(parts), stop - head - len(kept), len(text) - sum(map(len, shown)))


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _marker(lines: int) -> str:
    return f"[… {lines:,} line{'' if lines == 1 else 's'} left out …]\n"


def _fitting(lines: list[str], room: int) -> int:
    """Return how many of the first lines fit."""
    used = 0
    for count, line in enumerate(lines):
        used += len(line)
        if used > room:
            return count
    return len(lines)


def _troubled(lines: list[str], start: int, stop: int, room: int) -> list[int]:
    """Return the lines between that tell of trouble, the first ones, as many as fit."""
    kept: list[int] = []
    for number in range(start, stop):
        line = lines[number]
        is_gap = _GAP.fullmatch(line) is not None
        if not is_gap and not _TROUBLE.search(line):
            continue
        room -= len(line) + _ROOM_FOR_MARKER
        if room < 0 and not is_gap:
            continue
        kept.append(number)
    return kept


def _shortened(line: str, most: int) -> str:
    if len(line) <= most:
        return line
    half = most // 2 - 20
    end = "\n" if line.endswith("\n") else ""
    body = line.rstrip("\n")
    return f"{body[:half]}[… {len(body) - 2 * half:,} characters …]{body[-half:]}{end}"
