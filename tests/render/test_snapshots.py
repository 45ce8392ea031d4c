"""Every panel as it was last seen; `UPDATE_SNAPSHOTS=1` sees them anew."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from limpet.render.lexer import highlighted
from limpet.render.live import live_view
from limpet.render.paint import paint
from render.examples import DIFF, PANELS, live

SNAPSHOTS = Path(__file__).with_name("snapshots")
COLOURED = [
    "report", "report-json", "running", "streaming", "blocked-part", "verdict", "tasks",
    "background",
]  # fmt: skip


def agrees(name: str, text: str) -> bool:
    path = SNAPSHOTS / name
    if os.getenv("UPDATE_SNAPSHOTS"):
        path.write_text(text)
    return path.read_text() == text


@pytest.mark.parametrize("width", [80, 40])
@pytest.mark.parametrize("name", PANELS)
def test_a_panel_is_as_it_was(name: str, width: int) -> None:
    text = paint(PANELS[name](), width=width)
    assert "\x1b" not in text
    assert agrees(f"{name}-{width}.txt", text), text


@pytest.mark.parametrize("name", COLOURED)
def test_a_panel_has_the_colours_it_had(name: str) -> None:
    text = paint(PANELS[name](), width=80, colours="standard").replace("\x1b", "␛")
    assert agrees(f"{name}.ansi.txt", text), text


def test_a_diff_has_the_colours_of_a_diff() -> None:
    text = paint(highlighted(DIFF, "diff"), width=80, colours="standard")
    assert agrees("diff.ansi.txt", text.replace("\x1b", "␛")), text


SIZES = [(80, 24), (40, 10), (20, 3), (20, 1), (8, 2), (1, 1)]


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_the_live_view_is_as_it_was(columns: int, rows: int) -> None:
    state = live(columns, rows, "an earlier line", "\x1b[32mcompiling\x1b[0m 日本語 " * 8)
    text = paint(live_view(state), width=columns)
    assert agrees(f"live-{columns}x{rows}.txt", text), text


def test_the_live_view_has_the_colours_it_had() -> None:
    state = live(60, 10, "\x1b[32mcompiling\x1b[0m 日本語")
    text = paint(live_view(state), width=60, colours="standard").replace("\x1b", "␛")
    assert agrees("live.ansi.txt", text), text


def test_a_panel_as_a_picture_is_as_it_was() -> None:
    console = Console(record=True, width=80, file=io.StringIO(), force_terminal=True,
                      color_system="truecolor", legacy_windows=False)  # fmt: skip
    console.print(PANELS["report-json"](), PANELS["verdict"](), PANELS["tasks"]())
    picture = console.export_svg(title="limpet", unique_id="limpet")
    assert agrees("panels.svg", picture)


def test_no_snapshot_is_of_nothing() -> None:
    names = {f"{name}-{width}.txt" for name in PANELS for width in (80, 40)}
    names |= {f"{name}.ansi.txt" for name in [*COLOURED, "diff", "live"]} | {"panels.svg"}
    names |= {f"live-{columns}x{rows}.txt" for columns, rows in SIZES}
    assert {path.name for path in SNAPSHOTS.iterdir()} == names
