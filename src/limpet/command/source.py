"""The text as tree-sitter is given it: what its grammar misreads is masked, byte for byte.

The grammar loses a pipeline after a here-document's operator, does not look for backticks in a
body, and knows neither `<>` nor `${ list; }`. So bodies are taken out here: the operator becomes
an input redirect of the same length, the body blanks, and offsets stay what they were.
"""

from __future__ import annotations

import re

from limpet.command.scanner import DEEPEST, Masked, Scanner

_MAY_NEED_MASK = re.compile(r"[<{\\]|\(\(|&-|!\s|time|coproc")
_NEEDS_MASK = re.compile(
    r"""<<|<>|[<>]&-|\(\(|\$\{[\s|{]|(?<!\$)\{[^\s{}]|\n[ \t]*+\\.
    |\b(?:time|coproc)\b|!\s""",
    re.X,
)
_OPERATORS_ONLY = re.compile(r"(?:[<>|&;()] ?+){100}")


def mask(text: str) -> Masked:
    """Return the text in the form that the parser reads rightly."""
    pipes = text.count("|")
    needs_mask = (pipes >= 2 and _has_line_of_pipes(text)) or bool(
        _MAY_NEED_MASK.search(text) and _NEEDS_MASK.search(text)
    )
    if len(text) >= 100 and _OPERATORS_ONLY.search(text):
        return Masked(text, {}, True)
    hard = text.count("(") + text.count(")") + text.count("{") + pipes
    if not needs_mask and hard < DEEPEST:
        return Masked(text, {}, False)
    return Scanner(text).scan()


def _has_line_of_pipes(text: str) -> bool:
    """Tell whether a line before another has a pipeline that may run on into it."""
    *lines, _last = text.replace("|\n", "|").split("\n")
    return any(line.count("|") >= 2 for line in lines)


def closing_bracket(text: str, place: int, end: int) -> int:
    """Return where the `)` or backtick is that closes what was opened just before a place."""
    closer = "`" if text[place - 1] == "`" else ")"
    return Scanner(text[:end]).closing(place, closer)


def split(text: str) -> list[tuple[int, int]]:
    """Return the parts of a masked line between its outermost `;`, `&&`, `|` and ends of lines."""
    return Scanner(text).split()
