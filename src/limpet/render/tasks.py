"""Tasks as a table of plain text, cut to the width of the terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_HEADER = ("ID", "STATUS", "AGE", "COMMAND", "LAST LINE")
_COLOURS = {"running": 36, "exited": 32, "lost": 33}
_OTHER_COLOUR = 31
_LEAST_WIDE = 10
_COMMAND_SHARE = 0.45


class Row(NamedTuple):
    """What is shown of a task."""

    id: str
    status: str
    exit_code: int | None
    age_s: float
    command: str
    last_line: str


def table(rows: Sequence[Row], *, width: int | None, is_coloured: bool) -> Iterable[str]:
    """Yield the lines of a table; without a width nothing is cut."""
    cells = [_HEADER, *(_cells(row) for row in rows)]
    fixed = [max(_width(cell[column]) for cell in cells) for column in range(3)]
    command = max(_width(cell[3]) for cell in cells)
    if width is not None:
        rest = max(2 * _LEAST_WIDE, width - sum(fixed) - 2 * len(_HEADER))
        last = max(_width(cell[4]) for cell in cells)
        if command + last > rest:
            command = min(command, max(int(rest * _COMMAND_SHARE), rest - last))
        last_width: int | None = max(_LEAST_WIDE, rest - command)
    else:
        last_width = None
    for place, cell in enumerate(cells):
        parts = [_padded(cell[column], fixed[column]) for column in range(3)]
        if is_coloured and place:
            colour = _colour(rows[place - 1])
            parts[1] = f"\x1b[{colour}m{parts[1]}\x1b[0m"
        parts.append(_padded(_cut(cell[3], command), command))
        parts.append(cell[4] if last_width is None else _cut(cell[4], last_width))
        yield "  ".join(parts).rstrip()


def _cells(row: Row) -> tuple[str, str, str, str, str]:
    status = row.status if row.exit_code is None else f"{row.status} {row.exit_code}"
    return row.id, status, age(row.age_s), _one_line(row.command), _one_line(row.last_line)


def _colour(row: Row) -> int:
    if row.status == "exited" and row.exit_code != 0:
        return _OTHER_COLOUR
    return _COLOURS.get(row.status, _OTHER_COLOUR)


def age(seconds: float) -> str:
    """Return how long ago something was, as short as it can be said."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def _one_line(text: str) -> str:
    """Return text that cannot break the table, nor do anything to the terminal."""
    shown = text
    if not text.isprintable():
        shown = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(shown.split())


def _width(text: str) -> int:
    return len(text) if text.isascii() else sum(_width_of(char) for char in text)


def _width_of(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    if text.isascii():
        return text[: width - 1] + "…"
    used = 0
    for place, char in enumerate(text):
        used += _width_of(char)
        if used > width - 1:
            return text[:place] + "…"
    return text


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
