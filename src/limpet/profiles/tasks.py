"""The `tasks` profile: milliseconds, background tasks by id, and a tool to read them."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from typing import Any

from pydantic import Field

from limpet.events import Event, Finished, Output
from limpet.policy import Policy
from limpet.profiles import blocked, cut
from limpet.profiles.answer import Answer, hint_of, kept_in
from limpet.profiles.asks import Read, Run, Start, TaskFacts, TaskReading
from limpet.profiles.input import Input, Variables
from limpet.profiles.toolbox import Profile, Tool
from limpet.result import Outcome, Result
from limpet.tasks.reader import Part
from limpet.verdict import Verdict

LONGEST_MS = 600_000
_READ_MS = 30_000
_SEEN_BYTES = 1 << 20
"""Of each end of a stream: so far characters are counted as such, between them bytes."""


@dataclass(frozen=True, kw_only=True)
class BashConfig:
    """What a host may set."""

    default_timeout: float = 120_000
    max_timeout: float = LONGEST_MS
    """In milliseconds."""
    max_output_size: int = 30_000
    """Of each stream, in characters."""
    blocked_commands: tuple[str, ...] = ("rm -rf /", "mkfs", "dd if=/dev/zero", ":(){:|:&};:")
    """These four are taken by what they mean, others as text that no command may contain."""
    require_description: bool = False
    sandbox_mode: bool = False
    """Whether commands write in their workspace only, and have no network."""


class BashInput(Input):
    """Of `Bash`."""

    command: str = Field(min_length=1, description="The command to execute.")
    description: str | None = Field(None, description="What this command does; recommended.")
    timeout: float | None = Field(
        None, ge=0, le=LONGEST_MS, description="In milliseconds: 120000 if not given."
    )
    run_in_background: bool = Field(
        False, description="Do not wait for its end: returns a task_id for TaskOutput."
    )
    cwd: str | None = Field(None, description="Where to execute it, if not in the usual place.")
    env: Variables | None = Field(None, description="Variables to set over the inherited ones.")


class TaskOutputInput(Input):
    """Of `TaskOutput`."""

    task_id: str = Field(description="The task_id that Bash has returned.")
    block: bool = Field(True, description="Whether to wait for the task's end.")
    timeout: float = Field(
        _READ_MS, ge=0, le=LONGEST_MS, description="How long to wait, in milliseconds."
    )


@dataclass(frozen=True, kw_only=True)
class BashOutput:
    """What a call of `Bash` comes to."""

    success: bool
    stdout: str
    stderr: str
    exit_code: int
    """-1 if it was refused."""
    duration_ms: int = 0
    truncated: bool = False
    task_id: str | None = None
    output_file: str | None = None
    """The whole output of a task, or of a call that was cut."""


@dataclass(frozen=True, kw_only=True)
class TaskOutput:
    """What a call of `TaskOutput` comes to."""

    task_id: str
    status: str
    exit_code: int | None
    output: str
    duration_ms: int
    truncated: bool
    output_file: str


def build(*, config: BashConfig | None = None) -> Profile:
    """Return the profile.

    Args:
        config: What the host sets; see `BashConfig`.
    """
    chosen = config or BashConfig()

    def tell(given: BashInput, value: Result | TaskFacts) -> Answer:
        return _started(value) if isinstance(value, TaskFacts) else _ended(value, chosen)

    def tell_output(given: TaskOutputInput, value: TaskReading) -> Answer:
        return _read(value, chosen.max_output_size)

    return Profile(
        name="tasks",
        shape=lambda policy: _shape(policy, chosen),
        event=stream_event,
        tools=(
            Tool("Bash", _BASH, BashInput, lambda given: _ask(given, chosen), tell,
                 title="Run a command", data=BashOutput),
            Tool("TaskOutput", _TASK_OUTPUT, TaskOutputInput, _ask_output, tell_output,
                 title="Read a task's output", effect="reads", data=TaskOutput),
        ),
    )  # fmt: skip


_BASH = """\
Execute a shell command.

- command: what to execute (required)
- description: what it does (recommended)
- timeout: in milliseconds, 120000 if not given, at most 600000
- run_in_background: start it and return its task_id; TaskOutput reads what it prints
- cwd: another working directory
- env: more environment variables

Quote paths that have spaces, and prefer absolute ones to `cd`. Chain with && what depends on each \
other, with ; what does not. Use dedicated tools instead of find, grep, cat, head and tail where \
there are any. Each stream is cut in the middle if it is long."""
_TASK_OUTPUT = """\
Return what a background task has printed, and whether it has ended. Waits for its end unless \
block is false."""


def _shape(policy: Policy, config: BashConfig) -> Policy:
    half = max(_SEEN_BYTES, 4 * config.max_output_size)
    output = replace(
        policy.output,
        streams="separate",
        head_bytes=half,
        tail_bytes=half,
        save_bytes=config.max_output_size,
        cut_mark=cut.JOIN,
    )
    shaped = replace(blocked.shaped(policy, config.blocked_commands), output=output)
    if config.sandbox_mode and policy.sandbox.mode == "off":
        shaped = replace(shaped, sandbox=replace(policy.sandbox, mode="workspace"))
    return shaped


def _ask(given: BashInput, config: BashConfig) -> Run | Start:
    if config.require_description and not (given.description or "").strip():
        raise ValueError("description is required: say in a few words what the command does")
    if given.run_in_background:
        return Start(given.command, None, given.env, given.cwd, given.description)
    limit_ms = min(given.timeout or config.default_timeout, config.max_timeout)
    return Run(given.command, limit_ms / 1000, given.env, given.cwd, given.description)


def stream_event(event: Event) -> dict[str, Any] | None:
    """Return an event of a running command in this profile's form; None if it has none for it."""
    match event:
        case Output():
            return {"type": event.stream, "data": event.text}
        case Finished(result):
            return {"type": "exit", "code": _exit_code(result)}
        case _:
            return None


# What came of it


def _ended(result: Result, config: BashConfig) -> Answer:
    if result.outcome is Outcome.REFUSED:
        reason = _reason(result, config.blocked_commands)
        return Answer(reason, is_error=True, data=_refused(reason), can_retry=True)
    most = config.max_output_size
    stdout, stderr = (
        _shortened(text, most, omitted)
        for text, omitted in zip(
            (result.stdout, result.stderr), result.omitted_by_stream, strict=True
        )
    )
    is_cut = (stdout, stderr) != (result.stdout, result.stderr)
    hint = hint_of(result, "raise timeout if it needs longer")
    if result.is_error and hint:
        stderr += ("\n" if stderr and not stderr.endswith("\n") else "") + hint
    data = BashOutput(
        success=result.ok,
        stdout=stdout,
        stderr=stderr,
        exit_code=_exit_code(result),
        duration_ms=round(result.duration_s * 1000),
        truncated=is_cut,
        task_id=result.task_id,
        output_file=result.spill_path if is_cut else None,
    )
    return Answer(
        _text(result, stdout, stderr, is_cut=is_cut),
        is_error=result.is_error and result.outcome is not Outcome.SIGNALED,
        data=asdict(data),
        can_retry=result.outcome in (Outcome.TIMED_OUT, Outcome.FAILED_TO_START),
    )


def _exit_code(result: Result) -> int:
    if result.outcome is Outcome.REFUSED:
        return -1
    return 1 if result.exit_code is None else result.exit_code


def _refused(reason: str) -> dict[str, Any]:
    return asdict(BashOutput(success=False, stdout="", stderr=reason, exit_code=-1))


_REASONS = {
    r"rm\s+-rf\s+/": "Recursive delete from root",
    r">\s*/dev/sd": "Writing to block device",
    r"chmod\s+-R\s+777": "Insecure permissions",
}


def _reason(result: Result, patterns: tuple[str, ...]) -> str:
    """Say which pattern a refused command has met, and what to do instead."""
    verdict = result.verdict or Verdict(result.command, "deny")
    pattern = blocked.pattern_of(verdict, patterns)
    if pattern is not None:
        first: str | None = f"Command contains blocked pattern: {pattern}"
    else:
        reasons = (why for what, why in _REASONS.items() if re.search(what, verdict.command))
        first = next(reasons, None)
    return "\n".join(part for part in (first, result.hint) if part)


def _shortened(text: str, most: int, omitted_bytes: int) -> str:
    if len(text) <= most and cut.JOIN not in text:
        return text
    half = most // 2
    head, tail, omitted = cut.ends(text, half, half)
    count = max(0, omitted - most % 2) + omitted_bytes
    return f"{head}\n\n... ({count} characters truncated) ...\n\n{tail}"


def _text(result: Result, stdout: str, stderr: str, *, is_cut: bool) -> str:
    parts = [stdout.rstrip("\n")] if stdout.strip() else []
    if stderr.strip():
        parts.append(f"stderr:\n{stderr.rstrip()}")
    if not result.ok:
        parts.append(f"Exit code: {_exit_code(result)}\nDuration: {result.duration_s:.1f}s")
    if result.hint and not result.is_error:
        parts.append(result.hint)
    if is_cut and result.spill_path:
        parts.append(f"Output: {kept_in(result)}")
    return "\n\n".join(parts) or "(no output)"


def _started(task: TaskFacts) -> Answer:
    said = f"Background task started: {task.id}"
    text = f"{said}\nOutput: {task.output_path}\nUse TaskOutput to get results."
    data = BashOutput(
        success=True,
        stdout=said,
        stderr="",
        exit_code=0,
        task_id=task.id,
        output_file=task.output_path,
    )
    return Answer(text, data=asdict(data))


# TaskOutput


def _ask_output(given: TaskOutputInput) -> Read:
    part = Part(limit=2 * _SEEN_BYTES, cut_mark=cut.JOIN)
    return Read(given.task_id, part, given.timeout / 1000 if given.block else 0.0)


def _read(found: TaskReading, most: int) -> Answer:
    task = found.task
    output = _shortened(found.reading.text, most, found.reading.omitted_bytes)
    code = "" if task.exit_code is None else f", exit code {task.exit_code}"
    text = f"Task {task.id}: {task.status}{code} after {task.duration_s:.1f}s"
    data = TaskOutput(
        task_id=task.id,
        status=task.status,
        exit_code=task.exit_code,
        output=output,
        duration_ms=round(task.duration_s * 1000),
        truncated=output != found.reading.text,
        output_file=task.output_path,
    )
    return Answer(f"{text}\n\n{output or '(no output)'}", data=asdict(data))
