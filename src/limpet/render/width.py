"""How wide text is on a terminal, and how to make it fit.

For text that `safe` has made printable: there the width of a text is the sum of its characters'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

_ELLIPSIS = "…"


def cells(text: str) -> int:
    """Return how many columns a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int) -> str:
    """Return the beginning of a text, in so many columns at most."""
    if cells(text) <= width:
        return text
    return text[: _fitting(text, width - 1)] + _ELLIPSIS if width > 0 else ""


def cut_start(text: str, width: int) -> str:
    """Return the end of a text, in so many columns at most."""
    if cells(text) <= width:
        return text
    if width <= 0:
        return ""
    fitting = _fitting(text[::-1], width - 1)
    return _ELLIPSIS + (text[-fitting:] if fitting else "")


def padded(text: str, width: int) -> str:
    """Return a text with spaces after it, so many columns wide."""
    return text + " " * (width - cells(text))


def folded(text: Text, width: int) -> list[Text]:
    """Return a text in rows of so many columns, two at least: what is wide needs two."""
    rows: list[Text] = []
    for line in text.split("\n", allow_blank=True):
        places: list[int] = []
        rest = line.plain
        while (fitting := _fitting(rest, width)) < len(rest):
            places.append((places[-1] if places else 0) + fitting)
            rest = rest[fitting:]
        rows += line.divide(places)
    return rows


def _fitting(text: str, width: int) -> int:
    """Return how many characters fit in so many columns."""
    if text.isascii():
        return min(len(text), max(0, width))
    used = 0
    for place, character in enumerate(text):
        used += cells(character)
        if used > width:
            return place
    return len(text)
