"""A finished command as one panel of four zones: header, parameters, viewport, status."""

from __future__ import annotations

from typing import NamedTuple

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from limpet.render.safe import one_line, plain
from limpet.render.summary import outcome
from limpet.render.viewport import VIEWPORT_LINES, line_count, viewport
from limpet.render.width import cut
from limpet.result import Outcome, Result

_COMMAND_CHARS = 50
_GAP = "   "
_COLOURS = {Outcome.BACKGROUNDED: "cyan", Outcome.CANCELLED: "yellow"}


class Status(NamedTuple):
    """How a command ended, in a word or two."""

    words: str
    colour: str


def status(result: Result) -> Status:
    """Return `ok`, `exit 3`, `killed by SIGKILL`, or what else became of it."""
    if result.ok:
        return Status("ok", "green")
    words = "background" if result.outcome is Outcome.BACKGROUNDED else outcome(result)
    return Status(words, _COLOURS.get(result.outcome, "red"))


def report_panel(
    result: Result, *, timeout_s: float, viewport_lines: int = VIEWPORT_LINES
) -> Panel:
    """Return the panel of a finished command.

    Args:
        result: What it came to; of its streams, head and tail are shown.
        timeout_s: The time limit that it ran under.
        viewport_lines: How many lines of output are shown at most.
    """
    ended = status(result)
    rows: list[RenderableType] = [
        _Header(result.display or result.command, ended),
        plain(f"cwd: {result.cwd}  timeout: {timeout_s:g}s", "dim"),
        Rule(style="dim"),
        *viewport(result.stdout, result.stderr, viewport_lines),
    ]
    if result.hint:
        rows.append(plain(result.hint, "yellow"))
    rows += [Rule(style="dim"), _status_line(result)]
    return Panel(Group(*rows), box=box.ROUNDED, border_style=ended.colour)


class _Header:
    """The command and how it ended; where there is no room for both, the command gives way."""

    def __init__(self, command: str, ended: Status) -> None:
        self._command = one_line(command)
        if len(self._command) > _COMMAND_CHARS:
            self._command = self._command[: _COMMAND_CHARS - 1] + "…"
        self._ended = ended

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        ended = plain(self._ended.words, f"bold {self._ended.colour}")
        room = options.max_width - ended.cell_len - len(_GAP)
        command = cut(f"$ {self._command}", room)
        header = Text(no_wrap=True, overflow="crop").append(command, "bold")
        yield header.append(_GAP).append_text(ended) if command else ended


def _status_line(result: Result) -> Text:
    counts = (
        f"stdout: {line_count(result.stdout)} lines"
        f" stderr: {line_count(result.stderr)} lines {result.duration_s * 1000:.0f}ms"
    )
    cut_off = "(truncated) " if result.truncated else ""
    return Text.assemble((cut_off, "yellow"), (counts, "dim"))
