"""Colours for what is certainly JSON, a diff, a traceback, XML, HTML or YAML, and for no other."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from limpet.render.lexer import highlighted, lexer_of
from limpet.render.paint import paint
from limpet.render.safe import plain
from render.examples import DIFF

TRACEBACK = """\
starting
Traceback (most recent call last):
  File "x.py", line 1, in <module>
    1 / 0
ZeroDivisionError: division by zero
"""
KINDS = {
    '{"a": 1}': "json",
    '[{"a": [1, 2]}]\n': "json",
    '{"a": 1}\n{"a": 2}\n': "json",
    '{\n  "a": ' + '"x",\n "b":' * 20_000: "json",
    DIFF: "diff",
    "--- a\n+++ b\n@@ -1,2 +1 @@\n-x\n": "diff",
    TRACEBACK: "pytb",
    '<?xml version="1.0"?>\n<a/>': "xml",
    "<project>\n  <name>x</name>\n</project>\n": "xml",
    "<!DOCTYPE html>\n<html></html>": "html",
    "---\nkey: value\n": "yaml",
    "apiVersion: v1\nkind: Pod\n": "yaml",
    "": None,
    "[]": None,
    "[1] 12345\n": None,
    "{ not json }": None,
    "[ok] 3 passed\n[ok] 4 passed\n": None,
    "- a list\n- of things\n": None,
    "--- a heading ---\n": None,
    "key: value\n": None,
    "a < b > c\n": None,
    "[" * 100_000: None,
    "1" * 5000: None,
    '{"a": ' * 5000: None,
}


@pytest.mark.parametrize(("text", "lexer"), KINDS.items(), ids=lambda value: repr(value)[:30])
def test_a_kind_is_found_where_it_is_certain(text: str, lexer: str | None) -> None:
    assert lexer_of(text) == lexer


@pytest.mark.parametrize("lexer", ["json", "diff", "pytb", "xml", "html", "yaml"])
@settings(max_examples=50, deadline=None)
@given(text=st.text("{}[]<>/\"'=:,-+@ \n\t\r\v\x1b&;%ax1日", max_size=60))
@example(text="\ufeff{}")  # pygments leaves out a byte order mark
def test_colours_never_change_the_text(lexer: str, text: str) -> None:
    assert highlighted(text, lexer).plain == plain(text).plain


def test_colours_there_are() -> None:
    painted = paint(highlighted('{"a": 1}', "json"), width=80, colours="standard")
    assert "\x1b[" in painted
    assert "\x1b[" in paint(highlighted(DIFF, "diff"), width=80, colours="standard")


SLOW = ["<" * 30_000, '"' * 30_000, "<a " * 10_000, "\\" * 30_000, "{" * 30_000, "-\n" * 15_000,
        "<a" + " " * 60_000 + "</b>", "<a>" * 20_000, "--- a\n+++ b\n" * 5_000]  # fmt: skip


@pytest.mark.parametrize("text", SLOW, ids=lambda text: repr(text[:6]))
def test_no_text_takes_long(text: str) -> None:
    """A lexer that goes back and forth would hold up whoever looks."""
    started = time.monotonic()
    lexer_of(text)
    for lexer in ("json", "diff", "pytb", "xml", "html", "yaml"):
        highlighted(text[:20_000], lexer)
    assert time.monotonic() - started < 5
