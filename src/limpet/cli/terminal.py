"""A running command on a terminal: its lines, and below them, once it takes long, its status."""

from __future__ import annotations

import time

from limpet.cli.screen import painted, screen_of
from limpet.cli.sink import print_now
from limpet.events import RawEvent, Written
from limpet.loop import SelectorLoop, Timer
from limpet.output.text import TerminalText
from limpet.render.safe import colour_after, end_of, lines_of_terminal

_STATUS_AFTER_S = 1.0
_REFRESH_S = 0.1
_LONGEST_PARTIAL = 1 << 16
"""A longer line is printed in pieces, each on a line of its own."""
_SHOWN_PARTIAL = 1000
_SHOWN_RECENT = 2000
_RECENT_LINES = 5
_RESET = "\x1b[0m"
_ERASE = "\r\x1b[J"
_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"


class Terminal:
    """Shows events. Rich is imported only for a command that runs for longer than a second.

    - What the command wrote is printed once, in whole lines, and scrolls away.
    - The status is drawn below it, and the cursor is left at its start: whatever becomes of the
      terminal's size, all from the cursor on is ours to erase, and nothing above it.
    """

    def __init__(self, loop: SelectorLoop, description: str, *, prints: bool = True) -> None:
        self._loop = loop
        self._prints = prints
        """Whether what it writes is printed; else only its last lines are shown meanwhile."""
        self._description = description
        self._started_s = time.monotonic()
        self._text = TerminalText()
        self._partial = ""
        """A line that is not complete; shown with the status, printed when it is."""
        self._recent = ""
        """The last lines, if they are not printed."""
        self._colour = ""
        """What the lines that were printed have left in force."""
        self._bytes = 0
        self._lines = 0
        self._frame = 0
        self._has_status = False
        screen = screen_of(1)
        self._is_coloured = screen is not None and screen.is_coloured
        self._timer: Timer | None = None
        if screen is not None and not screen.is_dumb:
            self._timer = loop.call_later(_STATUS_AFTER_S, self._refresh)

    def show(self, event: RawEvent) -> None:
        """Show an event."""
        if isinstance(event, Written):
            self._bytes += len(event.data)
            self._lines += event.data.count(b"\n")
            lines, newline, self._partial = (
                self._partial + self._text.feed(event.data)
            ).rpartition("\n")
            if newline and not self._prints:
                self._recent = "\n".join([self._recent, end_of(lines, _SHOWN_RECENT)])
                self._recent = end_of(self._recent, _SHOWN_RECENT)
            elif newline:
                self._print(lines)
            if len(self._partial) > _LONGEST_PARTIAL:
                if self._prints:
                    self._print(self._partial)
                self._partial = ""

    def close(self) -> None:
        """Take the status away and leave only what the command wrote."""
        if self._timer is not None:
            self._timer.cancel()
        if self._has_status:
            print_now(1, _ERASE + _SHOW_CURSOR)
            self._has_status = False
        self._partial += self._text.feed(b"", final=True)
        if self._partial and self._prints:
            self._print(self._partial)
            self._partial = ""

    def _print(self, text: str) -> None:
        shown = lines_of_terminal(text, is_coloured=self._is_coloured)
        before, self._colour = self._colour, colour_after(shown, self._colour)
        end = f"{_RESET}\n" if self._colour else "\n"
        if self._has_status:
            print_now(1, f"{_ERASE}{before}{shown}{end}{self._status()}")
        else:
            print_now(1, f"{before}{shown}{end}")

    def _refresh(self) -> None:
        begin = _ERASE if self._has_status else _HIDE_CURSOR
        self._has_status = True
        print_now(1, begin + self._status())
        self._frame += 1
        self._timer = self._loop.call_later(_REFRESH_S, self._refresh)

    def _status(self) -> str:
        """Return what draws the status below the cursor, and leaves the cursor where it was."""
        from limpet.render.live import LiveState, live_view

        screen = screen_of(1)
        if screen is None:
            return ""  # it was hung up
        partial = end_of(self._partial, _SHOWN_PARTIAL)
        state = LiveState(
            description=self._description,
            elapsed_s=time.monotonic() - self._started_s,
            bytes=self._bytes,
            lines=self._lines,
            last_lines=(*self._recent_lines(), *([self._colour + partial] if partial else [])),
            frame=self._frame,
            columns=screen.columns,
            rows=screen.rows,
        )
        view = painted(screen, live_view(state)).removesuffix("\n")
        up = f"\x1b[{rows}A" if (rows := view.count("\n")) else ""
        # Should this terminal take a character for wider than we do, its row still is one row.
        return f"{_NO_WRAP}{view}\r{up}{_WRAP}"

    def _recent_lines(self) -> list[str]:
        lines = lines_of_terminal(self._recent, is_coloured=self._is_coloured).split("\n")
        return [line for line in lines if line][-_RECENT_LINES:]
