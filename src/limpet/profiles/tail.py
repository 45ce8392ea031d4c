"""The `tail` profile: a summary and the last lines; all of a long output stays on disk."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from pydantic import Field

from limpet.policy import Policy
from limpet.profiles import cut
from limpet.profiles.answer import Answer, failure
from limpet.profiles.asks import Run
from limpet.profiles.blocked import shaped
from limpet.profiles.input import Input, Whole
from limpet.profiles.toolbox import Profile, Tool
from limpet.result import Outcome, Result

TIMEOUT_S, LEAST_S, MOST_S = 120, 1, 600
TAIL_LINES = 80
INLINE_BYTES = 12 * 1024
READ_BYTES = 256 * 1024
"""How much of the end of a long output is looked at."""
_SUMMARY_CHARS, _SHORT_CHARS = 80, 77


class BashInput(Input):
    """Of `Bash`."""

    command: str = Field(description="The shell command, passed to `bash -c` as it is.")
    timeout: Whole | None = Field(
        None,
        description=f"In seconds: {TIMEOUT_S} if not given, at least {LEAST_S}, at most {MOST_S}.",
    )


@dataclass(frozen=True)
class ToolOutput:
    """What a call comes to."""

    summary: str
    content: str | None
    """None if there was no output."""


def build(*, output_dir: str | None = None) -> Profile:
    """Return the profile.

    Args:
        output_dir: Where long outputs are saved; limpet's own place if not given.
    """

    def shape(policy: Policy) -> Policy:
        output = replace(
            policy.output,
            streams="merged",
            head_bytes=0,
            tail_bytes=READ_BYTES,
            save_bytes=0,
            cut_mark="",
            directory=output_dir or policy.output.directory,
        )
        return replace(shaped(policy, ()), output=output, survivors="wait")

    return Profile(
        name="tail",
        shape=shape,
        removes_saved=True,
        tools=(
            Tool("Bash", _BASH, BashInput, _ask, _tell, title="Run a command", data=ToolOutput),
        ),
    )


_BASH = f"""\
Execute a shell command via bash: pipes, redirects, substitutions, `&&` and `||` all work. Each \
call is a fresh shell in the workspace; chain `cd DIR && COMMAND` to work elsewhere. stdout and \
stderr are merged, and jobs that the command leaves in the background are waited for. It may take \
{TIMEOUT_S} seconds, or `timeout`, at most {MOST_S}.

Output of more than {TAIL_LINES} lines or 12 KiB is saved to a file; only its LAST {TAIL_LINES} \
lines are returned, below the file's path, which can be read or searched by a later command.

Use dedicated tools for reading, editing and finding files where there are any; this one is for \
building, testing, version control and packages."""


def seconds(given: int | None) -> int:
    """Return the time limit that holds."""
    return min(max(TIMEOUT_S if given is None else given, LEAST_S), MOST_S)


def _ask(given: BashInput) -> Run:
    return Run(given.command, float(seconds(given.timeout)))


def _tell(given: BashInput, result: Result) -> Answer:
    match result.outcome:
        case Outcome.REFUSED:
            return failure("refused", result.hint or "refused", can_retry=True)
        case Outcome.FAILED_TO_START:
            text = f"the command could not be started: {result.hint}"
            return failure("failed_to_start", text, can_retry=True)
    summary = f"$ {_one_line(given.command)}{_ending(given, result)}"
    content = _content(result)
    return Answer(
        summary if content is None else f"{summary}\n{content}",
        is_error=result.outcome in (Outcome.CANCELLED, Outcome.OUTPUT_CAPPED),
        data=asdict(ToolOutput(summary, content)),
        can_retry=result.outcome is Outcome.TIMED_OUT,
    )


def _one_line(command: str) -> str:
    first = command.partition("\n")[0].removesuffix("\r")
    return first if len(first) <= _SUMMARY_CHARS else f"{first[:_SHORT_CHARS]}..."


def _ending(given: BashInput, result: Result) -> str:
    match result.outcome:
        case Outcome.EXITED if result.exit_code == 0:
            return ""
        case Outcome.EXITED:
            return f" (exit {result.exit_code})"
        case Outcome.SIGNALED:
            return " (terminated by signal)"
        case Outcome.TIMED_OUT:
            return f" (timed out after {seconds(given.timeout)}s)"
        case outcome:
            return f" ({outcome.value.replace('_', ' ')})"


def _content(result: Result) -> str | None:
    if not result.total_bytes:
        return None
    path, size = result.spill_path, result.total_bytes
    where = f"at {path}" if path else f"was not saved: {result.hint}"
    last = cut.last_lines(result.output, TAIL_LINES)
    if result.outcome in (Outcome.TIMED_OUT, Outcome.CANCELLED, Outcome.OUTPUT_CAPPED):
        before = "timeout" if result.outcome is Outcome.TIMED_OUT else "it was stopped"
        return f"[partial output before {before} — full {where}]\n{last}"
    lines = cut.count_lines(result.output)
    if result.truncated:
        shown = f"showing last {TAIL_LINES} lines (tail of {size}-byte output)"
        return f"[{shown} — full {where}]\n{last}"
    if size <= INLINE_BYTES and lines <= TAIL_LINES:
        return result.output
    shown = f"showing last {TAIL_LINES} of {lines} lines"
    return f"[{shown} — full output ({size} bytes) {where}]\n{last}"
