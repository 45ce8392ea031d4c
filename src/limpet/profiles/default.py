"""The `default` profile: what we would hand to our own agent."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import Field

from limpet.policy import Policy
from limpet.profiles.asks import List, Read, Run, Send, Start, Stop, Wait
from limpet.profiles.default_answers import (
    Answers,
    BashData,
    ListData,
    OutputData,
    StopData,
    WaitData,
    ended,
    stopped,
)
from limpet.profiles.input import Count, Input, Several
from limpet.profiles.toolbox import Profile, Tool
from limpet.tasks.reader import Part

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

    def ask_output(given: OutputInput) -> Read:
        return Read(given.task, _part(given, budget_chars))

    tell = Answers(budget_chars)
    return Profile(
        name="default",
        shape=shape,
        ended=ended,
        tools=(
            Tool("bash", _BASH.format(budget=budget_chars), BashInput, _ask_bash, tell.bash,
                 title="Run a command", data=BashData),
            Tool("bash_output", _OUTPUT, OutputInput, ask_output, tell.output,
                 title="Read a task's output", effect="reads", data=OutputData),
            Tool("bash_wait", _WAIT, WaitInput, _ask_wait, tell.waited,
                 title="Wait for a task", effect="reads", data=WaitData),
            Tool("bash_send", _SEND, SendInput, _ask_send, tell.said,
                 title="Type into a task", effect="types", data=WaitData),
            Tool("bash_stop", _STOP, StopInput, lambda given: Stop(given.task), stopped,
                 title="Stop a task", effect="stops", data=StopData),
            Tool("bash_list", _LIST, ListInput, lambda given: List(given.status), tell.listed,
                 title="List tasks", effect="reads", data=ListData),
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


def _ask_bash(given: BashInput) -> Run | Start:
    if given.background:
        return Start(
            given.command, given.timeout_s, description=given.description, takes_input=True
        )
    return Run(given.command, given.timeout_s, description=given.description)


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


def _ask_wait(given: WaitInput) -> Wait:
    tasks = [given.task] if isinstance(given.task, str) else given.task
    until = [given.until] if isinstance(given.until, str) else given.until
    return Wait(tuple(tasks), tuple(until), given.timeout_s, given.cursor)


def _ask_send(given: SendInput) -> Send:
    return Send(given.task, given.text, given.key, given.eof, given.wait_s)
