"""A verdict for a person: the command with the offending part marked, why, and the safer way."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from limpet.render.safe import printable
from limpet.render.width import cells, cut, cut_start
from limpet.verdict import Finding, Verdict

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult

_WORDS = {"allow": "✓ allowed", "ask": "? needs approval", "deny": "✗ refused"}
_COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}
_INDENT = 2
_PLAIN_WIDTH = 160
_TAB = 8
_MOST_BYTES = 4096
"""Of one line; what is further away from the offending part is never shown."""


class Excerpt(NamedTuple):
    """A line of a command around its offending part, made to fit."""

    before: str
    part: str
    after: str

    @property
    def indent(self) -> str:
        """What stands below the line before the marks."""
        return " " * cells(self.before)

    @property
    def marks(self) -> str:
        """What stands below the part."""
        return "^" * max(1, cells(self.part))


def excerpt(command: str, finding: Finding, width: int) -> Excerpt:
    """Return the line that a finding begins in, in so many columns; its part is cut last."""
    data = command.encode("utf-8", "surrogatepass")
    start = data.rfind(b"\n", 0, finding.start) + 1
    newline = data.find(b"\n", finding.start)
    end = len(data) if newline < 0 else newline
    part_end = min(max(finding.start, finding.end), end)
    before = _shown(data[max(start, finding.start - _MOST_BYTES) : finding.start])
    part = _shown(data[finding.start : min(part_end, finding.start + _MOST_BYTES)], cells(before))
    after = _shown(data[part_end : min(end, part_end + _MOST_BYTES)], cells(before + part))
    part = cut(part, width)
    room = width - max(1, cells(part))
    before = cut_start(before, max(room // 2, room - cells(after)))
    return Excerpt(before, part, cut(after, room - cells(before)))


def _shown(data: bytes, column: int = 0) -> str:
    """Return printable text that begins in a column, with each tab as far as the next stop."""
    shown = ""
    for number, piece in enumerate(printable(data.decode("utf-8", "replace")).split("\t")):
        if number:
            shown += " " * (_TAB - (column + cells(shown)) % _TAB)
        shown += piece.replace("\n", " ")
    return shown


def verdict_lines(verdict: Verdict) -> list[str]:
    """Return what a person reads about a command, as plain text."""
    lines = [_WORDS[verdict.decision]]
    for finding in verdict.findings:
        shown = excerpt(verdict.command, finding, _PLAIN_WIDTH)
        rows = ["".join(shown), shown.indent + shown.marks, *_reasons(finding)]
        lines += ["", *(" " * _INDENT + row for row in rows)]
    return lines


def _reasons(finding: Finding) -> tuple[str, str]:
    return (
        printable(f"{finding.rule}: {finding.message}"),
        printable(f"instead: {finding.advice}"),
    )


class Marked:
    """A command with one offending part highlighted and underlined, as wide as there is room."""

    def __init__(self, verdict: Verdict, finding: Finding) -> None:
        self._command = verdict.command
        self._finding = finding
        self._colour = _COLOURS[verdict.decision]

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        shown = excerpt(self._command, self._finding, options.max_width)
        line = Text(shown.before, no_wrap=True, overflow="crop")
        line.append(shown.part, f"bold {self._colour} reverse").append(shown.after)
        yield line
        below = Text(shown.indent, no_wrap=True, overflow="crop")
        yield below.append(shown.marks, self._colour)


def verdict_view(verdict: Verdict) -> Group:
    """Return what a person sees of a verdict on a terminal."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    rows: list[RenderableType] = [Text(_WORDS[verdict.decision], _COLOURS[verdict.decision])]
    for finding in verdict.findings:
        why, advice = _reasons(finding)
        reasons = Text(why, tab_size=_TAB)
        reasons.highlight_words([finding.rule], "bold")
        found = Group(Marked(verdict, finding), reasons, Text(advice, "dim", tab_size=_TAB))
        rows += [Text(), Padding(found, (0, 0, 0, _INDENT))]
    return Group(*rows)
