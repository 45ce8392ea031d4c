"""Renderables to text: the bytes that a terminal gets, or plain text."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Literal

from rich.console import Console

if TYPE_CHECKING:
    from rich.console import RenderableType

Colours = Literal["auto", "standard", "256", "truecolor"]
"""How many there are; `auto` asks the environment."""
_TALL = 1 << 16
_PADDING = re.compile(r" +$", re.MULTILINE)


def paint(renderable: RenderableType, *, width: int, colours: Colours | None = None) -> str:
    """Return what a terminal of that width is to show; without colours there is no escape in it."""
    console = Console(
        file=io.StringIO(),
        width=max(1, width),
        height=_TALL,
        force_terminal=colours is not None,
        color_system=colours,
        no_color=False,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
    )
    with console.capture() as captured:
        console.print(renderable)
    return _PADDING.sub("", captured.get())
