"""A running command on a terminal: its lines, and below them, once it takes long, its status."""

from __future__ import annotations

import io
import sys
import time
from typing import TYPE_CHECKING

from limpet.events import Progress, RawEvent, Written
from limpet.loop import SelectorLoop, Timer
from limpet.output.text import TerminalText, last_frame
from limpet.render.summary import progress

if TYPE_CHECKING:
    from rich.live import Live

_STATUS_AFTER_S = 1.0
_REFRESH_S = 0.1
_LONGEST_PARTIAL = 1 << 16
"""A longer line is printed in pieces, each on a line of its own."""
_SHOWN_PARTIAL = 1000


class Terminal:
    """Shows events. Rich is imported only for a command that runs for longer than a second."""

    def __init__(self, loop: SelectorLoop, description: str | None) -> None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")
        self._loop = loop
        self._description = description
        self._started_s = time.monotonic()
        self._text = TerminalText()
        self._partial = ""
        """A line that is not complete; shown with the status, printed when it is."""
        self._bytes = 0
        self._lines = 0
        self._live: Live | None = None
        self._timer: Timer = loop.call_later(_STATUS_AFTER_S, self._refresh)

    def show(self, event: RawEvent) -> None:
        """Show an event."""
        if isinstance(event, Written):
            self._bytes += len(event.data)
            self._lines += event.data.count(b"\n")
            lines, newline, self._partial = (
                self._partial + self._text.feed(event.data)
            ).rpartition("\n")
            if newline:
                self._print(lines)
            if len(self._partial) > _LONGEST_PARTIAL:
                self._print(self._partial)
                self._partial = ""

    def close(self) -> None:
        """Take the status away and leave only what the command wrote."""
        self._timer.cancel()
        if self._live is not None:
            self._live.stop()
        self._partial += self._text.feed(b"", final=True)
        if self._partial:
            print(self._partial, flush=True)

    def _print(self, text: str) -> None:
        if self._live is None:
            print(text, flush=True)
        else:
            from rich.text import Text

            # Of a line that is drawn anew Rich would show what follows the last carriage return.
            lines = "\n".join(map(last_frame, text.split("\n")))
            self._live.console.print(Text.from_ansi(lines), soft_wrap=True)

    def _refresh(self) -> None:
        from rich.console import Group
        from rich.live import Live
        from rich.spinner import Spinner
        from rich.text import Text

        if self._live is None:
            self._spinner = Spinner("dots", style="cyan")
            self._live = Live(transient=True, auto_refresh=False)
            self._live.start()
        elapsed_s = time.monotonic() - self._started_s
        status = progress(Progress(elapsed_s, self._bytes, self._lines, ""))
        if self._description:
            status = f"{self._description} · {status}"
        self._spinner.update(text=Text(status, style="dim", no_wrap=True, overflow="ellipsis"))
        partial = last_frame(self._partial)[-_SHOWN_PARTIAL:]
        rows = [Text.from_ansi(partial)] if partial else []
        self._live.update(Group(*rows, self._spinner), refresh=True)
        self._timer = self._loop.call_later(_REFRESH_S, self._refresh)
