"""What kind of text an output is, where that is certain; and its colours."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from limpet.render.safe import plain

if TYPE_CHECKING:
    from rich.text import Text

_MOST_CHARS = 1 << 16
"""Of a longer text only the beginning is looked at."""
_MOST_COLOURED = 1 << 15
_SIGNS = (
    ("diff", re.compile(r"\Adiff --git a/|^--- .+\n\+\+\+ .+\n@@ -\d", re.MULTILINE)),
    ("pytb", re.compile(r"^Traceback \(most recent call last\):\n  File ", re.MULTILINE)),
    ("html", re.compile(r"\A\s*<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE)),
    ("xml", re.compile(r"\A\s*<\?xml\s")),
    ("xml", re.compile(r"\A\s*<([A-Za-z][\w:.-]*)[\s>][^\0]*</\1>\s*\Z")),
    ("yaml", re.compile(r"\A(?:%YAML .*\n)?---\n[\w-]+:(?: |\n)")),
    ("yaml", re.compile(r"\AapiVersion: \S+\n(?:[\w-]+:.*|[ #-].*|\n)")),
    # Of what is too long to be read as a whole: two rows as they are printed for people.
    ("json", re.compile(r'\A(?:\{\n +"[^"\n]*": ?\S|\[\n +[\[{"\d-])')),
)


def lexer_of(text: str) -> str | None:
    """Return the name of the lexer for a text, or None where it is not certain."""
    start = text[:_MOST_CHARS]
    if len(text) <= _MOST_CHARS and _is_json(text):
        return "json"
    return next((name for name, sign in _SIGNS if sign.search(start)), None)


def _is_json(text: str) -> bool:
    """True for an object or a list, or several, a line each."""
    stripped = text.strip()
    if stripped[:1] not in ("{", "[") or len(stripped) < len("[1]"):
        return False
    try:
        json.loads(stripped)
    except RecursionError:
        return False
    except ValueError:
        return _are_json_lines(stripped.split("\n"))
    return True


def _are_json_lines(lines: list[str]) -> bool:
    if len(lines) < 2 or not all(line[:1] == "{" for line in lines):
        return False
    try:
        for line in lines:
            json.loads(line)
    except (RecursionError, ValueError):
        return False
    return True


def highlighted(text: str, lexer: str | None, style: str = "") -> Text:
    """Return printable text in the colours of its kind; the text itself is never changed."""
    shown = plain(text, style)
    if lexer is None or len(text) > _MOST_COLOURED:
        return shown
    from rich.syntax import Syntax

    painted = Syntax("", lexer, theme="ansi_dark").highlight(shown.plain)
    if painted.plain == f"{shown.plain}\n":
        painted.right_crop(1)  # a lexer ends what it is given with a line's end
    painted.no_wrap = None
    return painted if painted.plain == shown.plain else shown
