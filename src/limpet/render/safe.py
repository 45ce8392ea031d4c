"""Text from outside, made unable to do anything to a terminal but to be read.

A command, a description, a path and a rule's message may hold anything. Here controls become
pictures of themselves; what reorders or hides text becomes a replacement character; nothing is
taken for markup. Of escape sequences only colour is ever kept, and no link.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from limpet.output.text import TerminalText, last_frame

if TYPE_CHECKING:
    from rich.text import Text

_TAB = 8
_LONGEST_COLOUR = 64
"""A longer sequence is no colour that any program asks for."""
_COLOUR = re.compile(r"(\x1b\[[0-9;:]*m)")
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_KEPT_CONTROLS = "\t\n"
_REORDERING = "[\u202a-\u202e\u2066-\u2069]"
# Terminals do not agree on how wide these make their neighbours.
_JOINING = "[\u00ad\u200d\ufe00-\ufe0f]"
_HIDING = "[\u2028\u2029\ud800-\udfff\ufff9-\ufffb\U000e0000-\U000e0fff]"
_ODD = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f]|{_REORDERING}|{_JOINING}|{_HIDING}")
_IS_JOINING = re.compile(_JOINING)


def printable(text: str) -> str:
    """Return text that only shows; of the controls it has newline and tab."""
    return _ODD.sub(_picture, text) if _ODD.search(text) else text


def _picture(match: re.Match[str]) -> str:
    character = match.group()
    if character < " ":
        return chr(0x2400 + ord(character))
    if character == "\x7f":
        return "␡"
    return "" if _IS_JOINING.match(character) else _UNKNOWN


def one_line(text: str) -> str:
    """Return text that fits in one row of a table: a new line is a mark in it."""
    lines = (" ".join(line.split()) for line in printable(text).strip().split("\n"))
    return " ⏎ ".join(lines)


def plain(text: str, style: str = "") -> Text:
    """Return text as it is, in one style."""
    from rich.text import Text

    shown = Text(printable(text), style)
    shown.expand_tabs(_TAB)
    return shown


def coloured(text: str) -> Text:
    """Return output in the colours that it asks for; of a line drawn anew the last frame."""
    from rich.text import Text

    shown = Text.from_ansi(only_colours(text))
    shown.expand_tabs(_TAB)
    return shown


def only_colours(text: str, *, is_coloured: bool = True) -> str:
    """Return output as it may be written to a terminal: lines, and colours if they are wanted."""
    kept = TerminalText().feed(text.encode("utf-8", "replace"), final=True)
    return lines_of_terminal(kept, is_coloured=is_coloured)


def lines_of_terminal(text: str, *, is_coloured: bool) -> str:
    """Do the same with what `TerminalText` returned."""
    if "\r" in text:
        text = "\n".join(map(last_frame, text.split("\n")))
    pieces = _COLOUR.split(text)
    pieces[::2] = map(printable, pieces[::2])
    pieces[1::2] = [
        piece if is_coloured and len(piece) <= _LONGEST_COLOUR else "" for piece in pieces[1::2]
    ]
    return "".join(pieces)


def colour_after(text: str, before: str) -> str:
    """Return the sequences that are in force after text was written; empty if there are none."""
    for sequence in _COLOUR.findall(text):
        is_reset = not sequence[2:-1].strip("0;")
        before = "" if is_reset else (before + sequence)[-_LONGEST_COLOUR * 4 :]
    return before[before.find("\x1b") :] if before else ""


def end_of(text: str, most: int) -> str:
    """Return so many characters from the end of terminal text, and no part of a sequence."""
    start = max(0, len(text) - most)
    for sequence in _COLOUR.finditer(text, max(0, start - _LONGEST_COLOUR)):
        if sequence.start() >= start:
            break
        start = max(start, sequence.end())
    return text[start:]
