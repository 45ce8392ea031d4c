"""Bytes to text: for a model without any control sequence, for a terminal with colour only."""

from __future__ import annotations

import codecs
import re

SEQUENCE = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: cursor, colour, modes
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # OSC: title, clipboard, links
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c\n]*(?:\x1b\\|\x9c)?"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-Z\\^-~]"  # two-character escapes and charsets
)
_INTRODUCER = re.compile(r"[\x1b\x90\x98\x9b\x9d-\x9f]")
_ESCAPE = re.compile(SEQUENCE)
# In one pass with what is removed anyway: what is left cannot join into a sequence of its own.
_UNSAFE = re.compile(SEQUENCE + r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+?")
_SGR = re.compile(r"\x1b\[[0-9;:]*m")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]+")
_UNFINISHED = re.compile(
    r"(?:\x1b(?:\[[0-?]*[ -/]*|[ -/]+|\][^\x07\x1b\x9c\n]*\x1b?|[PX^_][^\x1b\x9c\n]*\x1b?)?"
    r"|\x9b[0-?]*[ -/]*"
    r"|\x9d[^\x07\x1b\x9c\n]*\x1b?"
    r"|[\x90\x98\x9e\x9f][^\x1b\x9c\n]*\x1b?)\Z"
)
_LONGEST_UNFINISHED = 4096
"""A sequence that does not end within so many characters is not one."""

_BINARY_SHARE = 0.1
_SEPARATOR = re.compile(rb"(?<!\0)\0(?!\0)")
_TEXT_BYTES = bytes(sorted({*b"\t\n\v\f\r\b\x1b\a", *range(32, 127), *range(128, 256)}))


def clean(data: bytes) -> str:
    """Return output as a model should read it; never raises.

    Control sequences are removed, of a line redrawn with carriage returns the last frame is kept,
    and what was struck over is what a person would see. Of the controls only newline and tab
    are left; a NUL, which separates rather than controls, is shown as ␀.
    """
    text = data.decode("utf-8", "replace")
    if _INTRODUCER.search(text):
        text = _ESCAPE.sub("", text)
    if "\r" in text:
        text = "\n".join(map(last_frame, text.split("\n")))
    if "\x08" in text:
        text = _strike_over(text)
    if _CONTROL.search(text):
        text = _CONTROL.sub("", text.replace("\0", "␀"))
    return text


def last_frame(line: str) -> str:
    """Return what is left to be seen of a line that was drawn anew after carriage returns."""
    if "\r" not in line:
        return line
    return next((frame for frame in reversed(line.split("\r")) if frame), "")


def _strike_over(text: str) -> str:
    """Return what backspaces leave to be seen: they move back, and what follows overwrites."""
    lines = []
    for line in text.split("\n"):
        seen: list[str] = []
        place = 0
        for char in line:
            if char == "\x08":
                place = max(0, place - 1)
            else:
                seen[place : place + 1] = [char]
                place += 1
        lines.append("".join(seen))
    return "\n".join(lines)


def is_binary(data: bytes) -> bool:
    """True for what is no text in any common encoding: controls that text has not, and many."""
    odd = len(data.translate(None, _TEXT_BYTES))
    if not odd:
        return False
    # A single NUL separates (`find -print0`); more of them in a row fill, as in no text.
    odd -= len(_SEPARATOR.findall(data))
    odd += data.decode("utf-8", "replace").count("\N{REPLACEMENT CHARACTER}")
    return odd > len(data) * _BINARY_SHARE


def complete(data: bytes) -> int:
    """Return how much of some output does not end within a character or a control sequence."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    text = decoder.decode(data)
    held = len(decoder.getstate()[0])
    unfinished = _UNFINISHED.search(text, max(0, len(text) - _LONGEST_UNFINISHED))
    if unfinished:
        held += len(unfinished.group().encode("utf-8", "surrogateescape"))
    return max(0, len(data) - held)


class TerminalText:
    """Decodes a stream piece by piece into text that is safe to print.

    Characters and control sequences may be split between pieces. Colour, newline, tab and
    carriage return are kept; what could move the cursor elsewhere, retitle the window or touch
    the clipboard is not.
    """

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._held = ""

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """Return the text that these bytes complete."""
        text = self._held + self._decode(data, final)
        self._held = ""
        if not final:
            unfinished = _UNFINISHED.search(text, max(0, len(text) - _LONGEST_UNFINISHED))
            if unfinished:
                self._held = unfinished.group()
                text = text[: unfinished.start()]
        return _UNSAFE.sub(_keep_colour, text) if _CONTROL.search(text) else text


def _keep_colour(match: re.Match[str]) -> str:
    return match.group() if _SGR.fullmatch(match.group()) else ""
