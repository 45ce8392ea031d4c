"""The part of an output that a panel has room for: its head and its tail, and what lies between."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from limpet.render.lexer import highlighted, lexer_of
from limpet.render.safe import plain

if TYPE_CHECKING:
    from rich.text import Text

VIEWPORT_LINES = 40
_LONGEST_LINE = 500
_HEAD_SHARE = 3
"""Of what does not fit, a third of the room is the head's: an end says more."""


class Excerpt(NamedTuple):
    """Some lines from the start of a text and some from its end."""

    head: list[str]
    left_out: int
    """How many lines lie between."""
    tail: list[str]


def line_count(text: str) -> int:
    """Return how many lines a text has; the last need not be complete."""
    return text.count("\n") + (not text.endswith("\n") and text != "")


def excerpt(text: str, most: int) -> Excerpt:
    """Return so many lines of a text at most, and none that is too long for a panel."""
    lines = text.removesuffix("\n").split("\n") if text else []
    if len(lines) <= most:
        return Excerpt([_shortened(line) for line in lines], 0, [])
    head = most // _HEAD_SHARE
    tail = lines[len(lines) - (most - head) :]
    shown = [_shortened(line) for line in lines[:head]]
    return Excerpt(shown, len(lines) - most, [_shortened(line) for line in tail])


def _shortened(line: str) -> str:
    if len(line) <= _LONGEST_LINE:
        return line
    half = _LONGEST_LINE // 2
    left_out = f" … {len(line) - 2 * half:,} characters left out … "
    return line[:half] + left_out + line[-half:]


def viewport(stdout: str, stderr: str, most: int = VIEWPORT_LINES) -> list[Text]:
    """Return what is shown of the streams: stdout by its kind, stderr marked and in red."""
    of_stderr = min(line_count(stderr), max(most // 2, most - line_count(stdout)))
    rows = _rows(excerpt(stdout, most - of_stderr), lexer_of(stdout))
    if stderr:
        rows.append(plain("stderr:", "bold red"))
        rows += _rows(excerpt(stderr, of_stderr), None, "red")
    return rows or [plain("(no output)", "dim")]


def _rows(shown: Excerpt, lexer: str | None, style: str = "") -> list[Text]:
    rows = []
    if shown.head:
        rows.append(highlighted("\n".join(shown.head), lexer, style))
    if shown.left_out:
        rows.append(plain(f"… {shown.left_out:,} lines left out …", "dim"))
    if shown.tail:
        rows.append(highlighted("\n".join(shown.tail), lexer, style))
    return rows
