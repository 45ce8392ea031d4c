"""The `modes` profile: a command and one of three modes; restricted is up to the conversation."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from pydantic import Field

from limpet.policy import Policy
from limpet.profiles import cut
from limpet.profiles.answer import Answer, hint_of, kept_in
from limpet.profiles.asks import Run, Start, TaskFacts
from limpet.profiles.input import Input
from limpet.profiles.toolbox import Profile, Tool
from limpet.result import Outcome, Result

TIMEOUTS_S = {"default": 30.0, "slow": 900.0}
LONGEST_BYTES = 128 * 1024
END_BYTES = 4 * 1024
"""Of longer output, what is kept of each end."""


class BashInput(Input):
    """Of `bash`."""

    command: str = Field(min_length=1, description="The shell command to execute.")
    mode: Literal["default", "slow", "background"] = Field(
        "default",
        description="default: killed after 30 seconds; slow: after 15 minutes; background: starts"
        " it detached and returns at once with its process group and output file.",
    )


@dataclass(frozen=True)
class BashData:
    """What a call comes to."""

    command: str
    display: str
    """The command without a `cd` to where it ran anyway."""
    mode: str
    output: str = ""
    exit_code: int | None = None
    truncated: bool = False
    timed_out: bool = False
    pid: int | None = None
    pgid: int | None = None
    """Of a background process; `kill -9 -<pgid>` ends it."""
    output_file: str | None = None


def build() -> Profile:
    """Return the profile."""
    return Profile(
        name="modes",
        shape=_shape,
        offers_restricted=True,
        tools=(Tool("bash", _BASH, BashInput, _ask, _tell, title="Run a command", data=BashData),),
    )


_BASH = """\
Execute a shell command with `bash -c` and return its stdout and stderr together.

There is no terminal: nothing can prompt. Use mode slow for builds and tests that take longer than \
30 seconds, and background for servers and other processes that go on; those are stopped with \
`kill -9 -<pgid>`, and their output file ends with how they ended. Output over 128 KB is cut to \
its first and last 4 KB. Some dangerous commands are refused with advice: blind `git add`, forced \
pushes, removing whole trees."""


def _shape(policy: Policy) -> Policy:
    output = replace(
        policy.output,
        streams="merged",
        head_bytes=LONGEST_BYTES // 2,
        tail_bytes=LONGEST_BYTES // 2,
        cut_mark=cut.JOIN,
    )
    return replace(policy, output=output)


def _ask(given: BashInput) -> Run | Start:
    if given.mode == "background":
        return Start(given.command)
    return Run(given.command, TIMEOUTS_S[given.mode])


def _tell(given: BashInput, value: Result | TaskFacts) -> Answer:
    if isinstance(value, TaskFacts):
        return _started(given, value)
    output = _shortened(value)
    notes = _notes(given, value)
    body = output if not output or output.endswith("\n") or not notes else f"{output}\n"
    return Answer(
        body + "\n".join(f"[{note}]" for note in notes) or "(no output)",
        is_error=value.is_error,
        data=_data(given, value, output),
        can_retry=value.outcome in (Outcome.REFUSED, Outcome.FAILED_TO_START, Outcome.TIMED_OUT),
    )


def _shortened(result: Result) -> str:
    if not result.truncated:
        return result.output
    head, tail = cut.ends_in_bytes(result.output, END_BYTES, END_BYTES)
    omitted = result.total_bytes - 2 * END_BYTES
    said = "; ".join(filter(None, [f"{omitted} bytes truncated", kept_in(result)]))
    return f"{head}\n[… {said} …]\n{tail}"


def _notes(given: BashInput, result: Result) -> list[str]:
    match result.outcome:
        case Outcome.EXITED:
            code = "unknown" if result.exit_code is None else result.exit_code
            notes = [] if result.exit_code == 0 else [f"exit code: {code}"]
        case Outcome.SIGNALED:
            notes = [f"exit code: {result.exit_code}, killed by {result.signal}"]
        case Outcome.TIMED_OUT:
            after = f"timed out after {TIMEOUTS_S[given.mode]:g} seconds"
            notes = [f"{after}; the process group was terminated; the output is partial"]
        case Outcome.REFUSED:
            return [f"not executed: {result.hint}"]
        case Outcome.FAILED_TO_START:
            return [f"system error, nothing was executed: {result.hint}"]
        case outcome:
            notes = [outcome.value.replace("_", " ")]
    other = "slow" if given.mode == "default" else "background"
    hint = hint_of(result, f"use mode {other} if it needs longer")
    return notes + ([hint] if hint else [])


def _data(given: BashInput, result: Result, output: str) -> dict[str, Any]:
    return asdict(
        BashData(
            command=given.command,
            display=result.display or given.command,
            mode=given.mode,
            output=output,
            exit_code=result.exit_code,
            truncated=result.truncated,
            timed_out=result.outcome is Outcome.TIMED_OUT,
            output_file=result.spill_path,
        )
    )


def _started(given: BashInput, task: TaskFacts) -> Answer:
    text = (
        f"[started in the background: pid {task.pid}, process group {task.pgid}]\n"
        f"[output file: {task.output_path}]\n"
        f"[stop it with: kill -9 -{task.pgid}]"
    )
    if task.sandbox != "off":
        text += f"\n[from inside the sandbox that fails: the host can, with limpet stop {task.id}]"
    data = BashData(
        command=given.command,
        display=task.display,
        mode=given.mode,
        pid=task.pid,
        pgid=task.pgid,
        output_file=task.output_path,
    )
    return Answer(text, data=asdict(data))
