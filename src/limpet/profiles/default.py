"""The `default` profile: what we would hand to our own agent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from limpet.policy import Policy
from limpet.profiles import cut
from limpet.profiles.answer import Answer
from limpet.profiles.asks import (
    List,
    Read,
    Run,
    Send,
    Start,
    Stop,
    TaskFacts,
    TaskReading,
    TaskWaited,
    Wait,
)
from limpet.profiles.input import Count, Input, Several
from limpet.profiles.toolbox import Profile, Tool
from limpet.result import Outcome, Result
from limpet.tasks.notices import Notice
from limpet.tasks.reader import Part
from limpet.tasks.stop import Stopped

BUDGET_CHARS = 30_000
LONGEST_S = 3600.0
_SEEN_BYTES = 128 * 1024
"""Of each end of the output: where lines that tell of trouble are looked for."""
_LONGEST_WAIT_S = 600.0

_TASK = Field(description="The id of the task, such as bash-k3f9q2.")


class BashInput(Input):
    """Of `bash`."""

    command: str = Field(min_length=1, description="The command line for bash.")
    description: str | None = Field(None, description="What it is for, in a few words.")
    timeout_s: float | None = Field(
        None,
        gt=0,
        le=LONGEST_S,
        description="When to kill it, in seconds: 120 if not given; a background task is not"
        " killed unless this is given.",
    )
    background: bool = Field(
        False, description="Start it as a task that goes on, and return its id at once."
    )


class OutputInput(Input):
    """Of `bash_output`."""

    task: str = _TASK
    cursor: Count | None = Field(
        None, description="From here on, as the last answer said: only what is new."
    )
    lines: Count | str | None = Field(
        None,
        description="The last so many lines, or a range such as '10:40'.",
    )
    search: str | None = Field(
        None, description="A regular expression: the lines that match, numbered."
    )


class WaitInput(Input):
    """Of `bash_wait`."""

    task: str | Several = Field(
        description="The id of the task, or several: then the first that is ready."
    )
    until: str | Several = Field(
        "exit",
        description="What for: exit, quiet:SECONDS, /REGEX/ in its output, port:NUMBER that it"
        " listens on; or several, whichever comes first.",
    )
    timeout_s: float = Field(
        60.0, gt=0, le=_LONGEST_WAIT_S, description="How long at most, in seconds."
    )
    cursor: Count | None = Field(None, description="From where on output is new.")


class SendInput(Input):
    """Of `bash_send`."""

    task: str = _TASK
    text: str = Field("", description="What to type; end a line with a newline.")
    key: str | None = Field(None, description="A key after the text: ctrl-c, ctrl-d, enter, up …")
    eof: bool = Field(False, description="End its input after that.")
    wait_s: float = Field(
        1.0, ge=0, le=60, description="How long to wait for what it says to that, in seconds."
    )


class StopInput(Input):
    """Of `bash_stop`."""

    task: str = _TASK


class ListInput(Input):
    """Of `bash_list`."""

    status: Literal["running", "exited", "signaled", "stopped", "timed_out", "lost"] | None = Field(
        None, description="Only tasks of this status."
    )


def build(*, budget_chars: int = BUDGET_CHARS) -> Profile:
    """Return the profile.

    Args:
        budget_chars: How long an answer may be, in characters.
    """

    def shape(policy: Policy) -> Policy:
        output = replace(
            policy.output,
            streams="merged",
            head_bytes=max(_SEEN_BYTES, policy.output.head_bytes),
            tail_bytes=max(_SEEN_BYTES, policy.output.tail_bytes),
            save_bytes=budget_chars,
        )
        return replace(policy, output=output)

    def tell_bash(given: BashInput, value: Result | TaskFacts) -> Answer:
        return _started(value) if isinstance(value, TaskFacts) else _ended(value, budget_chars)

    def ask_output(given: OutputInput) -> Read:
        return Read(given.task, _part(given, budget_chars))

    def tell_waited(given: Input, found: TaskWaited) -> Answer:
        return _tell_waited(given, found, budget_chars)

    def tell_list(given: ListInput, tasks: tuple[TaskFacts, ...]) -> Answer:
        return _tell_list(tasks, budget_chars)

    return Profile(
        name="default",
        shape=shape,
        ended=_tell_end,
        tools=(
            Tool("bash", _BASH.format(budget=budget_chars), BashInput, _ask_bash, tell_bash,
                 title="Run a command"),
            Tool("bash_output", _OUTPUT, OutputInput, ask_output, _tell_output,
                 title="Read a task's output", effect="reads"),
            Tool("bash_wait", _WAIT, WaitInput, _ask_wait, tell_waited,
                 title="Wait for a task", effect="reads"),
            Tool("bash_send", _SEND, SendInput, _ask_send, tell_waited,
                 title="Type into a task", effect="acts"),
            Tool("bash_stop", _STOP, StopInput, lambda given: Stop(given.task), _tell_stopped,
                 title="Stop a task", effect="acts"),
            Tool("bash_list", _LIST, ListInput, lambda given: List(given.status), tell_list,
                 title="List tasks", effect="reads"),
        ),
    )  # fmt: skip


_BASH = """\
Run a command with bash and return what it prints, stdout and stderr in order.

Each call is a shell of its own; variables do not carry over. It has no terminal and an empty \
standard input, so nothing can ask questions. At its time limit it is killed with all that it has \
started, and what it printed so far is returned. An exit code other than 0 is named below the \
output. Output over {budget:,} characters is cut in the middle, between lines; the answer names \
the file with all of it.

Use background for servers, watchers and long builds: it returns a task id at once, for \
bash_output, bash_wait, bash_send and bash_stop. What a command leaves running (`server &`) \
becomes a task too."""
_OUTPUT = """\
Read what a background task has printed, while it runs and after: without cursor, lines and search \
all of it, or its head and tail if it is long. The answer names the cursor for the next reading."""
_WAIT = """\
Wait until a background task, or the first of several, ends or does something; returns what it has \
printed since the cursor. Use this instead of sleeping and asking again."""
_SEND = "Type into a background task, and return what it says to that."
_STOP = "End a background task with all that it has started; what it has printed can still be read."
_LIST = "List background tasks, the latest first: status, age, command, last line."


# bash


def _ask_bash(given: BashInput) -> Run | Start:
    if given.background:
        return Start(
            given.command, given.timeout_s, description=given.description, takes_input=True
        )
    return Run(given.command, given.timeout_s, description=given.description)


def _started(task: TaskFacts) -> Answer:
    text = f"[started task {task.id}, pid {task.pid}; its output goes to {task.output_path}]"
    return Answer(text, data=task._asdict())


def _ended(result: Result, budget: int) -> Answer:
    fitted = cut.by_lines(result.output, budget)
    facts = _facts(result, fitted)
    text = fitted.text
    if facts:
        text += "\n" if text and not text.endswith("\n") else ""
        text += f"[{'; '.join(facts)}]"
    is_refused = result.outcome in (Outcome.REFUSED, Outcome.FAILED_TO_START)
    return Answer(
        text or "(no output)",
        is_error=result.is_error,
        data=_data(result, fitted),
        can_retry=is_refused or result.outcome is Outcome.TIMED_OUT,
    )


def _facts(result: Result, fitted: cut.Fitted) -> list[str]:
    """Return what a model must know beside the output; nothing, if all went well."""
    facts = []
    if not result.ok:
        facts.append(_how(result))
    if result.truncated or fitted.is_cut:
        lines = result.omitted_lines + fitted.omitted_lines
        chars = result.omitted_bytes + fitted.omitted_chars
        much = f"{lines:,} lines" if lines else f"{chars:,} characters"
        where = f"; all of it is in {result.spill_path}" if result.spill_path else ""
        facts.append(f"{much} of the output were left out{where}")
    if result.hint:
        facts.append(result.hint)
    return facts


def _how(result: Result) -> str:
    match result.outcome:
        case Outcome.EXITED:
            return f"exit code {'unknown' if result.exit_code is None else result.exit_code}"
        case Outcome.SIGNALED:
            return f"killed by {result.signal}, exit code {result.exit_code}"
        case Outcome.REFUSED:
            return "nothing ran"
        case Outcome.FAILED_TO_START:
            return "could not start, nothing ran"
        case Outcome.TIMED_OUT | Outcome.OUTPUT_CAPPED:
            how = result.outcome.value.replace("_", " ")
            return f"{how} after {result.duration_s:.1f} s"
        case Outcome.CANCELLED | Outcome.BACKGROUNDED:
            return result.outcome.value


_TOLD = (
    "outcome exit_code signal duration_s truncated omitted_bytes omitted_lines total_bytes"
    " spill_path task_id survivors cwd sandbox verdict hint display description"
).split()


def _data(result: Result, fitted: cut.Fitted) -> dict[str, Any]:
    values = result.to_dict()
    return {"output": fitted.text, **{name: values[name] for name in _TOLD}}


# Tasks


def _part(given: OutputInput, budget: int) -> Part:
    part = Part(limit=budget, cursor=given.cursor, search=given.search)
    if isinstance(given.lines, int):
        part["last"] = given.lines
    elif given.lines is not None and given.lines.isdecimal():
        part["last"] = int(given.lines)
    elif given.lines is not None:
        first, colon, last = given.lines.partition(":")
        if not colon or not first.isdecimal() or not (last.isdecimal() or not last):
            raise ValueError(
                f"lines must be a whole number or a range such as '10:40', not {given.lines!r}"
            )
        part["lines"] = int(first), int(last) if last else 1 << 62
    return part


def _tell_output(given: OutputInput, found: TaskReading) -> Answer:
    reading = found.reading
    facts = [_state(found.task), f"cursor {reading.cursor}"]
    if given.search is not None:
        facts.append(f"{reading.matches} lines match")
    if reading.more:
        facts.append("there is more from there")
    data = {
        "task": found.task._asdict(),
        "text": reading.text,
        "cursor": reading.cursor,
        "more": reading.more,
        "matches": reading.matches,
    }
    return Answer(_with_facts(reading.text, facts), data=data)


def _ask_wait(given: WaitInput) -> Wait:
    tasks = [given.task] if isinstance(given.task, str) else given.task
    until = [given.until] if isinstance(given.until, str) else given.until
    return Wait(tuple(tasks), tuple(until), given.timeout_s, given.cursor)


def _ask_send(given: SendInput) -> Send:
    return Send(given.task, given.text, given.key, given.eof, given.wait_s)


def _tell_waited(given: Input, found: TaskWaited, budget: int) -> Answer:
    waited = found.waited
    text = cut.by_lines(waited.text, budget).text
    facts = [_state(found.task), f"cursor {waited.cursor}"]
    if isinstance(given, WaitInput):
        facts.insert(0, _matched(found, given))
    if waited.more:
        facts.append("there is more from there")
    data = {"task": found.task._asdict(), **waited._asdict(), "text": text}
    return Answer(_with_facts(text, facts), data=data)


def _matched(found: TaskWaited, given: WaitInput) -> str:
    match found.waited.matched:
        case "timeout":
            return f"not within {given.timeout_s:g} s"
        case "regex":
            return f"it printed {found.waited.match!r}"
        case "port":
            return f"it listens on port {found.waited.match}"
        case "quiet":
            return "it is quiet"
        case "exit":
            return "it has ended"


def _tell_stopped(given: StopInput, stopped: Stopped) -> Answer:
    still_runs = stopped.status == "running"
    text = f"[task {stopped.task_id}: {stopped.status}: {stopped.what}]"
    return Answer(text, is_error=still_runs, data=stopped._asdict())


def _tell_list(tasks: tuple[TaskFacts, ...], budget: int) -> Answer:
    rows = [_row(task) for task in tasks]
    text = "\n".join(rows) or "(no tasks)"
    return Answer(
        cut.by_lines(text, budget).text, data={"tasks": [task._asdict() for task in tasks]}
    )


_LONGEST_COMMAND = 100


def _row(task: TaskFacts) -> str:
    what = " ".join((task.description or task.command).split())
    if len(what) > _LONGEST_COMMAND:
        what = what[:_LONGEST_COMMAND] + "…"
    last = f" — {task.last_line}" if task.last_line else ""
    return f"{_state(task)}: {what}{last}"


def _state(task: TaskFacts) -> str:
    code = "" if task.exit_code is None else f" {task.exit_code}"
    signal = f" by {task.signal}" if task.signal else ""
    reason = f" ({task.reason})" if task.reason else ""
    return f"{task.id} {task.status}{code}{signal} after {task.duration_s:.1f} s{reason}"


def _tell_end(notice: Notice) -> str:
    code = "" if notice.exit_code is None else f" {notice.exit_code}"
    last = notice.last_lines.strip().rpartition("\n")[2]
    how = f"{notice.status}{code} after {notice.duration_s:.1f} s"
    return f"[meanwhile task {notice.task_id}: {how}{f'; its last line: {last}' if last else ''}]"


def _with_facts(text: str, facts: list[str]) -> str:
    body = text if not text or text.endswith("\n") else f"{text}\n"
    return f"{body}[{'; '.join(facts)}]"
