"""Whatever text comes from outside, no panel does anything to a terminal but to be read."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from limpet.render import safe
from limpet.render.paint import Colours, paint
from limpet.render.width import cells, cut, cut_start, folded
from render.examples import hostile

SGR = re.compile(r"\x1b\[[0-9;]*m")
FORBIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
SEQUENCES = [
    "\x1b]0;title\x07", "\x1b]52;c;aGk=\x1b\\", "\x1b[2J", "\x1b[10A", "\x1b[31m", "\x1b[0m",
    "\x9b1;1H", "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "\x1bc", "\x1b(0", "\x1bP+q\x1b\\",
    "\u202e", "\u2066", "\x1b[38;5;300m", "\x1b[38;2;1m", f"\x1b[{'9' * 5000}m", "\x1b[1", "\x1b",
    "\x9d0;t\x9c", "\r", "\n", "\t", "\x08", "[red]", "[/]", "[link=http://evil]x", ":smile:",
    "\ud83d", "\u2028", "👩\u200d💻", "❤\ufe0f", "漢字", "\0", "x" * 300, "\U000e0041", "\x85",
    "e\u0301",
]  # fmt: skip
TEXTS = st.lists(
    st.sampled_from(SEQUENCES) | st.text(st.characters(), max_size=8), max_size=12
).map("".join)


def is_safe(painted: str) -> bool:
    return not FORBIDDEN.search(SGR.sub("", painted))


@settings(max_examples=80, deadline=None)
@given(TEXTS, st.integers(1, 100), st.sampled_from([None, "standard", "truecolor"]))
def test_no_panel_contains_a_control_but_newline_and_colour(
    text: str, width: int, colours: Colours | None
) -> None:
    for name, panel in hostile(text, width, 3).items():
        painted = paint(panel, width=width, colours=colours)
        assert is_safe(painted), (name, painted)
        assert colours is not None or "\x1b" not in painted
        painted.encode()


@settings(max_examples=80, deadline=None)
@given(TEXTS, st.integers(24, 100))
def test_no_panel_is_wider_than_the_terminal(text: str, width: int) -> None:
    for name, panel in hostile(text, width, 3).items():
        for line in paint(panel, width=width).split("\n"):
            assert cell_len(line) <= width, (name, line)


@settings(max_examples=80, deadline=None)
@given(TEXTS, st.integers(1, 100), st.integers(1, 10))
def test_the_live_view_fits_any_terminal(text: str, columns: int, rows: int) -> None:
    lines = (
        paint(hostile(text, columns, rows)["live"], width=columns).removesuffix("\n").split("\n")
    )
    assert len(lines) <= rows
    assert max(map(cell_len, lines)) <= columns


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.booleans())
def test_what_is_streamed_has_lines_and_colours_only(text: str, is_coloured: bool) -> None:
    shown = safe.only_colours(text, is_coloured=is_coloured)
    assert not FORBIDDEN.search(re.sub(r"\x1b\[[0-9;:]*m|\t", "", shown))
    assert is_coloured or "\x1b" not in shown


SHOWN = {
    "a\x1b[2Jb": "a␛[2Jb",
    "\0\x7f\x9b": "␀␡\N{REPLACEMENT CHARACTER}",
    "safe\u202egnp.exe": "safe\N{REPLACEMENT CHARACTER}gnp.exe",
    "\ud83d": "\N{REPLACEMENT CHARACTER}",
    "[bold]x[/] :smile:\n\ty": "[bold]x[/] :smile:\n\ty",
    "👩\u200d💻 ❤\ufe0f": "👩💻 ❤",
    "עברית العربية": "עברית العربية",
}


@pytest.mark.parametrize(("text", "shown"), SHOWN.items())
def test_what_cannot_be_shown_has_a_picture(text: str, shown: str) -> None:
    """Removed altogether it would be a place to hide something in."""
    assert safe.printable(text) == shown
    assert safe.plain(text).plain == shown.expandtabs()


def test_a_line_break_in_a_command_is_seen_in_one_line() -> None:
    assert safe.one_line("  make \t all\n\n rm x\n") == "make all ⏎  ⏎ rm x"


def test_the_colours_of_output_are_kept_and_links_are_not() -> None:
    text = safe.coloured("\x1b[1;31mred\x1b[0m \x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\")
    assert text.plain == "red link"
    assert paint(text, width=80, colours="standard") == "\x1b[1;31mred\x1b[0m link\n"


AFTER = {
    "\x1b[31mred": "\x1b[31m",
    "\x1b[31mred\x1b[0m": "",
    "\x1b[31mred\x1b[m": "",
    "\x1b[31m\x1b[1mx\x1b[00;00mplain\x1b[4m": "\x1b[4m",
    "none": "",
}


@pytest.mark.parametrize(("text", "colour"), AFTER.items())
def test_the_colour_that_goes_on_is_known(text: str, colour: str) -> None:
    assert safe.colour_after(text, "") == colour
    assert len(safe.colour_after("\x1b[31m" * 1000, "")) <= 256
    assert safe.colour_after("\x1b[31m" * 1000, "").startswith("\x1b[")


def test_the_end_of_text_does_not_begin_within_a_colour() -> None:
    text = "before\x1b[38;5;200mafter"
    assert {safe.end_of(text, most) for most in range(5, 16)} == {"after"}
    assert safe.end_of(text, 16) == "\x1b[38;5;200mafter"
    assert safe.end_of(text, 100) == text


@given(
    st.text(st.characters(exclude_categories=["C"]), max_size=30).map(safe.printable),
    st.integers(0, 40),
)
def test_what_is_cut_fits(text: str, width: int) -> None:
    for shown in (cut(text, width), cut_start(text, width)):
        assert cells(shown) <= width
        assert shown == text or cells(text) > width
    rows = folded(safe.plain(text), max(2, width))
    assert "".join(row.plain for row in rows) == text
    assert all(cells(row.plain) <= max(2, width) for row in rows)
