"""Tasks: a table that fits a terminal, plain columns for a pipe, and the lines around an output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from limpet.render.safe import one_line
from limpet.render.summary import seconds
from limpet.render.width import cells, padded
from limpet.tasks.record import State, TaskStatus, duration_s

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.rule import Rule
    from rich.table import Table

_HEADER = ("ID", "STATUS", "AGE", "COMMAND", "LAST LINE")
_COLOURS = {"running": "cyan", "exited": "green", "lost": "yellow"}
_OTHER_COLOUR = "red"
_MOST_ROWS = 500
"""More are too slow to lay out; of those that are older only the running ones are shown."""
_ROOM = {"LAST LINE": 72, "AGE": 56, "COMMAND": 36, "STATUS": 28}
"""How wide a terminal must be to have room for a column; an id there is always."""
_GAP = 3
_LEAST_WIDE = 4
_COMMAND_SHARE = 0.45
_STYLES = {"ID": "bold", "AGE": "", "COMMAND": "", "LAST LINE": "dim"}


class Row(NamedTuple):
    """What is shown of a task."""

    id: str
    status: str
    exit_code: int | None
    age_s: float
    command: str
    last_line: str

    @property
    def state(self) -> str:
        """Its status and exit code."""
        words = self.status.replace("_", " ")
        return words if self.exit_code is None else f"{words} {self.exit_code}"

    @property
    def colour(self) -> str:
        """That of its status; one that failed is not like one that succeeded."""
        if self.status == "exited" and self.exit_code != 0:
            return _OTHER_COLOUR
        return _COLOURS.get(self.status, _OTHER_COLOUR)


def row_of(state: State, last_line: str, now_s: float) -> Row:
    """Return what is shown of a task as it is now."""
    record = state.record
    return Row(
        record.id,
        state.status.value,
        record.end.exit_code if record.end else None,
        max(0.0, now_s - record.started_at),
        one_line(record.description or record.display or record.command),
        one_line(last_line),
    )


def task_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a table without colour, in which nothing is cut."""
    table = [_HEADER, *(_cells(row) for row in rows)]
    widths = [max(cells(line[column]) for line in table) for column in range(len(_HEADER) - 1)]
    for line in table:
        yield "  ".join([*map(padded, line, widths), line[-1]]).rstrip()


def _cells(row: Row) -> tuple[str, str, str, str, str]:
    return row.id, row.state, age(row.age_s), row.command, row.last_line


class TaskTable:
    """The tasks as a table; where there is little room, it has fewer columns."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = [*rows[:_MOST_ROWS], *(r for r in rows[_MOST_ROWS:] if r.status == "running")]
        self._left_out = len(rows) - len(self._rows)

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        yield self._table(options.max_width)
        if self._left_out:
            yield Text(f" and {self._left_out:,} older that have ended: limpet tasks | less", "dim")

    def _table(self, width: int) -> Table:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        names = [name for name in _HEADER if width >= _ROOM.get(name, 0)]
        lines = [[_cells(row)[_HEADER.index(name)] for name in names] for row in self._rows]
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
        for name, size in zip(names, _widths([names, *lines], width), strict=True):
            table.add_column(name, no_wrap=True, overflow="ellipsis", width=size)
        for row, line in zip(self._rows, lines, strict=True):
            styles = _STYLES | {"STATUS": row.colour}
            texts = (Text(value, styles[name]) for name, value in zip(names, line, strict=True))
            table.add_row(*texts)
        return table


def _widths(lines: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return how wide columns are; the command and the last line share what the others leave."""
    wanted = [max(cells(line[column]) for line in lines) for column in range(len(lines[0]))]
    if "COMMAND" not in lines[0]:
        return wanted
    fixed = wanted[: lines[0].index("COMMAND")]
    rest = max(_LEAST_WIDE, width - sum(fixed) - _GAP * (len(wanted) - 1))
    command, *last = wanted[len(fixed) :]
    if not last:
        return [*fixed, min(command, rest)]
    command = min(command, max(int(rest * _COMMAND_SHARE), rest - last[0]))
    return [*fixed, command, min(last[0], max(1, rest - command))]


def age(value: float) -> str:
    """Return how long ago something was, as short as it can be said."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if value >= size:
            return f"{int(value // size)}{unit}"
    return f"{int(value)}s"


def output_header(state: State) -> Rule:
    """Return the line above a task's output: which one it is."""
    from rich.rule import Rule
    from rich.text import Text

    record = state.record
    what = one_line(record.description or record.display or record.command)
    return Rule(Text(f"{record.id} · {what}", "bold"), align="left", style="dim")


def output_footer(state: State) -> Rule:
    """Return the line below a task's output: what it is doing, or how it ended."""
    from rich.rule import Rule
    from rich.text import Text

    row = row_of(state, "", 0.0)
    took = seconds(duration_s(state.record))
    if state.status is TaskStatus.RUNNING:
        words = f"running for {took} · follow it: limpet output {row.id} -f"
    elif state.status is TaskStatus.LOST:
        words = f"lost: {one_line(state.reason or '')}"
    else:
        words = f"{row.state} after {took}"
    return Rule(Text(words, row.colour), align="left", style="dim")
