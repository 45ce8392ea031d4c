"""A running command on a terminal of any size: the line it writes, a spinner, a clock, counters."""

from __future__ import annotations

from typing import NamedTuple

from rich.text import Text

from limpet.render.safe import coloured, one_line
from limpet.render.summary import seconds, size
from limpet.render.width import cells, cut, folded

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_MOST_ROWS = 6
"""However tall the terminal is: what is above the view is what the command wrote."""
_LEAST_DESCRIPTION = 4
_BETWEEN = " · "


class LiveState(NamedTuple):
    """What is known of a running command, and the terminal that it is shown on."""

    description: str
    elapsed_s: float
    bytes: int
    lines: int
    last_lines: tuple[str, ...]
    """What it writes on now: lines that are not in the scrollback yet."""
    frame: int
    """Counts how often it was drawn; turns the spinner."""
    columns: int
    rows: int


def live_view(state: LiveState) -> Text:
    """Return what is shown now; it is never wider nor taller than the terminal."""
    rows = [_status(state)]
    room = min(_MOST_ROWS, state.rows) - 1
    if room > 0 and state.columns >= 2 and state.last_lines:
        last = folded(coloured("\n".join(state.last_lines)), state.columns)
        rows = [*last[-room:], *rows]
    view = Text("\n").join(rows)
    view.no_wrap, view.overflow = True, "crop"
    return view


def _status(state: LiveState) -> Text:
    spinner = Text().append(_FRAMES[state.frame % len(_FRAMES)], "cyan")
    room = state.columns - 2
    parts = [seconds(state.elapsed_s), f"{state.lines} lines", size(state.bytes)]
    while parts and cells(_BETWEEN.join(parts)) > room:
        parts.pop()
    if not parts:
        return spinner
    words = _BETWEEN.join(parts)
    rest = room - cells(_BETWEEN + words)
    description = one_line(state.description)
    if description and rest >= min(_LEAST_DESCRIPTION, cells(description)):
        words = cut(description, rest) + _BETWEEN + words
    return spinner.append(f" {words}", "dim")
