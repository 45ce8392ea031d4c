"""What a person would see on a task's terminal, by a terminal emulator that reads its output."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from limpet.output.text import SEQUENCE
from limpet.tasks.reader import Output

if TYPE_CHECKING:
    import pyte

_READ_BYTES = 1 << 19
"""Of a long output the end is enough: programs that fill the screen draw it again and again."""
_PIECE = re.compile(rf"{SEQUENCE}|[^\x1b\x90\x98\x9b\x9d-\x9f]+|.", re.S)
_NOT_SHOWN = re.compile(r"(?:\x1b[PX^_\]]|[\x90\x98\x9d-\x9f]|(?:\x1b\[|\x9b)[<=>]).*", re.S)
"""Strings for the terminal itself, and what belongs to other keyboards."""
_OTHER_SCREEN = re.compile(r"\x1b\[\?(?:47|1047|1049)([hl])")


class Screen(NamedTuple):
    """A terminal as it looks now."""

    lines: tuple[str, ...]
    """One for each row, without the blanks at its end."""
    row: int
    """Where the cursor is, counted from 0."""
    column: int

    @property
    def text(self) -> str:
        """The rows as one text, without empty ones at the end."""
        return "\n".join(self.lines).rstrip("\n") + "\n"


def draw(output: Output, columns: int, rows: int) -> Screen:
    """Return what a terminal of that size shows after an output."""
    data = output.tail(_READ_BYTES)
    drawn = _Terminal(columns, rows)
    for piece in _PIECE.findall(data.decode("utf-8", "replace")):
        drawn.feed(piece)
    return drawn.look()


class _Terminal:
    """Two screens, as terminals have them: programs that fill it use the second one."""

    def __init__(self, columns: int, rows: int) -> None:
        import pyte

        self._size = (columns, rows)
        self._first = self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self._screen)

    def feed(self, piece: str) -> None:
        """Take a control sequence, or text without any."""
        import pyte

        if switch := _OTHER_SCREEN.fullmatch(piece):
            self._show(pyte.Screen(*self._size) if switch[1] == "h" else self._first)
            return
        if _NOT_SHOWN.fullmatch(piece):
            return
        try:
            self._stream.feed(piece)
        except Exception:
            # It stumbles over sequences that it does not know, and must then begin anew.
            self._stream = pyte.Stream(self._screen)

    def _show(self, screen: pyte.Screen) -> None:
        import pyte

        self._screen = screen
        self._stream = pyte.Stream(screen)

    def look(self) -> Screen:
        """Return what is to be seen."""
        cursor = self._screen.cursor
        lines = tuple(line.rstrip() for line in self._screen.display)
        return Screen(lines, cursor.y, cursor.x)
