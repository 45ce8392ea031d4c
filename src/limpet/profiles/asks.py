"""What a tool may ask of the engine: values, each with the one way to have it done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from limpet.context import ToolContext
from limpet.errors import CommandRefused, SpawnFailed
from limpet.policy import Policy
from limpet.profiles import reach
from limpet.result import Result
from limpet.tasks import reader, record
from limpet.tasks.reader import Part, Reading
from limpet.tasks.stop import Stopped
from limpet.tasks.task import Task
from limpet.tasks.wait import Waited
from limpet.tool import Bash

_Value = TypeVar("_Value", covariant=True)


class Ask(Protocol[_Value]):
    """Something to be done, and what comes of it."""

    async def perform(self, bash: Bash, ctx: ToolContext) -> _Value:
        """Have the engine do it."""


@dataclass(frozen=True)
class TaskFacts:
    """What is known of a background task at one moment."""

    id: str
    status: str
    exit_code: int | None
    signal: str | None
    reason: str | None
    pid: int
    pgid: int
    output_path: str
    command: str
    display: str
    description: str | None
    sandbox: str
    duration_s: float
    last_line: str

    @classmethod
    def of(cls, task: Task) -> TaskFacts:
        """Look at a task.

        Raises:
            OSError: It was removed.
        """
        state = task.state()
        known = record.to_dict(state, task.output_path)
        end = state.record.end
        known["last_line"] = end.last_line if end else reader.last_line(task.output_path)
        return cls(**{field.name: known[field.name] for field in fields(cls)})


def ended_in(value: object) -> set[str]:
    """Return the tasks of which what came of a call says that they have ended."""
    match value:
        case TaskReading(task=facts) | TaskWaited(task=facts):
            found = [facts]
        case Stopped(task_id=task_id):
            return {task_id}
        case tuple():  # a list of them; all of the above are tuples too
            found = [one for one in value if isinstance(one, TaskFacts)]
        case _:
            return set()
    return {facts.id for facts in found if facts.status != "running"}


class Run(NamedTuple):
    """Run a command to its end."""

    command: str
    timeout_s: float | None = None
    env: Mapping[str, str] | None = None
    cwd: str | None = None
    description: str | None = None
    on_timeout: Literal["kill", "background"] = "kill"
    shape: Callable[[Policy], Policy] | None = None
    """What this one call makes of the policy."""

    async def perform(self, bash: Bash, ctx: ToolContext) -> Result:
        """Run it."""
        return await self.shaped(bash).run(self.command, **self.call(ctx))

    def shaped(self, bash: Bash) -> Bash:
        """Return what is to run it."""
        return bash if self.shape is None else Bash(self.shape(bash.policy))

    def call(self, ctx: ToolContext) -> Any:  # noqa: ANN401 -- a Call, which mypy cannot unpack
        """Return the arguments of `Bash.run` and `Bash.stream`."""
        return {
            "timeout_s": self.timeout_s,
            "env": self.env,
            "description": self.description,
            "on_timeout": self.on_timeout,
            "ctx": ctx.at(self.cwd),
        }


class Start(NamedTuple):
    """Start a command as a background task."""

    command: str
    timeout_s: float | None = None
    env: Mapping[str, str] | None = None
    cwd: str | None = None
    description: str | None = None
    takes_input: bool = False

    async def perform(self, bash: Bash, ctx: ToolContext) -> TaskFacts | Result:
        """Start it, or return why nothing was started."""
        try:
            task = await bash.start(
                self.command,
                timeout_s=self.timeout_s,
                env=self.env,
                description=self.description,
                stdin=True if self.takes_input else None,
                ctx=ctx.at(self.cwd),
            )
        except (CommandRefused, SpawnFailed) as error:
            return error.result
        return TaskFacts.of(task)


class TaskReading(NamedTuple):
    """A part of a task's output, and what it was doing then."""

    task: TaskFacts
    reading: Reading


class Read(NamedTuple):
    """Read the output of a task."""

    task: str
    part: Part
    wait_s: float = 0.0
    """How long to wait for its end before."""

    async def perform(self, bash: Bash, ctx: ToolContext) -> TaskReading:
        """Read it."""
        task = reach.find(bash, ctx, self.task)
        if self.wait_s:
            await task.wait("exit", self.wait_s)
        facts = TaskFacts.of(task)  # before the output: what has ended by then is read whole
        cursor = self.part.get("cursor")
        others = {name: value for name, value in self.part.items() if name != "cursor"}
        return TaskReading(facts, task.output(cursor, **others))  # type: ignore[arg-type]


class TaskWaited(NamedTuple):
    """What a wait came to, and what the task was doing then."""

    task: TaskFacts
    waited: Waited


class Wait(NamedTuple):
    """Wait for the first of several tasks to do something."""

    tasks: tuple[str, ...]
    until: tuple[str, ...] = ("exit",)
    timeout_s: float | None = None
    cursor: int | None = None

    async def perform(self, bash: Bash, ctx: ToolContext) -> TaskWaited:
        """Wait."""
        tasks = [reach.find(bash, ctx, one) for one in self.tasks]
        cursors = {} if self.cursor is None else dict.fromkeys(self.tasks, self.cursor)
        waited = await bash.wait(tasks, self.until, self.timeout_s, cursors=cursors)
        return TaskWaited(TaskFacts.of(bash.task(waited.task_id)), waited)


class Send(NamedTuple):
    """Type something into a task, and see what it says to that."""

    task: str
    text: str = ""
    key: str | None = None
    eof: bool = False
    wait_s: float = 1.0
    """How long to wait for what it says."""
    quiet_s: float = 0.3
    """It has said all once it was quiet for so long."""

    async def perform(self, bash: Bash, ctx: ToolContext) -> TaskWaited:
        """Type it."""
        task = reach.find_to_touch(bash, ctx, self.task)
        end = task.output(last=1).cursor
        await task.send(self.text, key=self.key, eof=self.eof)
        waited = await task.wait("/./", self.wait_s, cursor=end)
        if waited.matched == "regex":  # it has begun to speak: let it finish
            waited = await task.wait(f"quiet:{self.quiet_s}", self.wait_s, cursor=end)
        return TaskWaited(TaskFacts.of(task), waited)


class Stop(NamedTuple):
    """End a task with all that it has started."""

    task: str

    async def perform(self, bash: Bash, ctx: ToolContext) -> Stopped:
        """End it."""
        return await reach.find_to_touch(bash, ctx, self.task).stop()


class List(NamedTuple):
    """List the tasks."""

    status: str | None = None

    async def perform(self, bash: Bash, ctx: ToolContext) -> tuple[TaskFacts, ...]:
        """List them, the latest first."""
        found = []
        for task, state in reach.visible(bash, ctx):
            if self.status in (None, state.status.value):
                with suppress(OSError):  # removed by another program at this moment
                    found.append(TaskFacts.of(task))
        return tuple(found)
