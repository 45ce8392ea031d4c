"""The screens of a host: a command that runs, has ended, goes on in the background, is blocked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from limpet.render.report import status
from limpet.render.safe import one_line, plain
from limpet.render.verdict import Marked
from limpet.result import Result
from limpet.verdict import Verdict

HINTS = (
    "Use limpet tasks to check status",
    "Use limpet output {id} to get results",
    "Use limpet stop {id} to end it",
)
"""How a person on the command line goes on; `{id}` is the task's."""
_INDENT = (0, 0, 0, 2)
_REFUSAL = (
    "This command matches a blocked pattern:",
    "This operation is not allowed for safety.",
)
_APPROVAL = ("This command needs approval:", "Nobody has approved it.")


def running(command: str, description: str | None = None) -> Text:
    """Return what is said when a command starts: what it is for, else what it is."""
    return Text.assemble(("Running: ", "bold"), one_line(description or command))


def completed(result: Result) -> Group:
    """Return how a command ended, and what it printed."""
    ended = status(result)
    took = f"({result.duration_s:.1f}s)"
    first = f"✓ Command completed {took}" if result.ok else f"✗ Command: {ended.words} {took}"
    rows: list[RenderableType] = [plain(first, ended.colour)]
    for name, text, style in (("stdout", result.stdout, ""), ("stderr", result.stderr, "red")):
        if text:
            rows += [plain(f"{name}:", style), _indented(text, style)]
    return Group(*rows)


def streaming(result: Result) -> Group:
    """Return a command that was watched while it ran, with its output between two rules."""
    code = status(result).words if result.exit_code is None else str(result.exit_code)
    return Group(
        running(result.display or result.command, result.description),
        *_between_rules(result.output),
        plain(f"Exit code: {code}", status(result).colour),
        plain(f"Duration: {result.duration_s:.1f}s"),
    )


def truncated(result: Result) -> Group:
    """Return output of which a part is left out; where, it says itself."""
    return Group(plain("Output (truncated):"), *_between_rules(result.output))


def _between_rules(text: str) -> Iterator[RenderableType]:
    yield Rule(style="dim")
    if text:
        yield plain(text.removesuffix("\n"))
    yield Rule(style="dim")


def background_started(
    task_id: str, command: str, output_path: str, *, hints: Sequence[str] = HINTS
) -> Panel:
    """Return the box of a task that goes on by itself, and how to look after it."""
    rows = [
        f"Task ID: {task_id}",
        f"Command: {one_line(command)}",
        f"Output: {output_path}",
        "",
        *(hint.replace("{id}", task_id) for hint in hints),
    ]
    return Panel(
        Group(*(plain(row) for row in rows)),
        title=Text("Background Task Started"),
        title_align="left",
        box=box.SQUARE,
        border_style="cyan",
    )


def blocked(verdict: Verdict, *, more: str = "") -> Group:
    """Return why a command does not run, with the offending part marked, and what to do.

    Args:
        verdict: A refusal.
        more: What else there is to say: how it could be allowed.
    """
    why, so = _APPROVAL if verdict.decision == "ask" else _REFUSAL
    rows: list[RenderableType] = [Text("⚠️ Command Blocked", "bold yellow"), Text()]
    for finding in verdict.findings:
        part = verdict.part(finding)
        if part != verdict.command.strip():
            rows += [Padding(Marked(verdict, finding), _INDENT), Text()]
        reason = f'"{part}" - {finding.message} [{finding.rule}]'
        rows += [plain(why), _indented(reason), Text()]
    rows.append(plain(so))
    rows += [plain(f"{_sentence(finding.advice)}.") for finding in verdict.findings]
    return Group(*rows, *([plain(more)] if more else []))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].removesuffix(".")


def _indented(text: str, style: str = "") -> Padding:
    return Padding(plain(text.removesuffix("\n"), style), _INDENT)
