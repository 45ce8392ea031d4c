"""What our own terminal is, if there is one, and how a person's view is put on it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from limpet.cli.sink import print_now
from limpet.result import Outcome, Result

if TYPE_CHECKING:
    from rich.console import RenderableType

_COLUMNS, _ROWS = 80, 24
_DUMB = ("dumb", "unknown")


class Screen(NamedTuple):
    """A terminal as it is now."""

    columns: int
    rows: int
    is_coloured: bool
    is_dumb: bool
    """It only writes: nothing can be drawn anew."""


def screen_of(fd: int) -> Screen | None:
    """Return the terminal that a descriptor leads to; None if that is a file or a pipe."""
    if not os.isatty(fd):
        return None
    size = os.get_terminal_size(fd)
    is_dumb = os.getenv("TERM", "") in _DUMB
    return Screen(
        # A terminal that nobody has told its size says 0.
        size.columns or _number("COLUMNS", _COLUMNS),
        size.lines or _number("LINES", _ROWS),
        is_coloured=not is_dumb and not os.getenv("NO_COLOR"),
        is_dumb=is_dumb,
    )


def _number(name: str, default: int) -> int:
    value = os.getenv(name, "")
    return int(value) if value.isdecimal() and int(value) > 0 else default


def painted(screen: Screen, renderable: RenderableType) -> str:
    """Return what makes a terminal show something."""
    from limpet.render.paint import paint

    return paint(renderable, width=screen.columns, colours="auto" if screen.is_coloured else None)


def show(fd: int, screen: Screen, renderable: RenderableType) -> bool:
    """Show something; False if nobody sees it any more."""
    return print_now(fd, painted(screen, renderable))


def show_refusal(result: Result) -> bool:
    """Show on stderr why a command is refused; False if it is not, or that is no terminal."""
    screen, verdict = screen_of(2), result.verdict
    if screen is None or verdict is None or result.outcome is not Outcome.REFUSED:
        return False
    from limpet.render.boxes import blocked

    more = (result.hint or "").removeprefix(verdict.describe()).strip()
    return show(2, screen, blocked(verdict, more=more))
