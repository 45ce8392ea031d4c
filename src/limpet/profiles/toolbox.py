"""A profile at work: what a model is offered, and what becomes of its calls."""

from __future__ import annotations

import logging
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from limpet.attempt import CANCEL_POLL_S
from limpet.context import ToolContext
from limpet.errors import SandboxUnavailable, TaskNotFound
from limpet.events import Event, Finished, Started
from limpet.output.spill import path_of
from limpet.policy import Policy
from limpet.profiles.answer import Answer, failure
from limpet.profiles.asks import Ask, Run, Start, ended_in
from limpet.profiles.input import Input, InvalidInput, data_schema_of, schema_of, validated
from limpet.profiles.reach import OutOfReach
from limpet.result import Result
from limpet.tasks.notices import Notice
from limpet.tool import Bash

_Given = TypeVar("_Given", bound=Input)
_Value = TypeVar("_Value")
_log = logging.getLogger("limpet")

Effect = Literal["runs", "types", "stops", "reads"]
"""What a tool can do: run any command, type into one that runs, end one, or only look."""


@dataclass(frozen=True)
class Tool(Generic[_Given, _Value]):
    """One tool as data: its name, what it takes, what that asks of the engine, how it is told."""

    name: str
    description: str
    input: type[_Given]
    ask: Callable[[_Given], Ask[_Value]]
    """Which call of the engine an input stands for; ValueError if it cannot stand for one."""
    tell: Callable[[_Given, _Value], Answer]
    """What the model reads of what came of it: a pure function."""
    title: str = ""
    effect: Effect = "runs"
    data: type[Any] | None = None
    """What `Answer.data` is when all went well, as a dataclass or a pydantic model."""


@dataclass(frozen=True)
class Profile:
    """What one kind of agent sees: its tools, and what they make of the host's policy."""

    name: str
    tools: tuple[Tool[Any, Any], ...]
    shape: Callable[[Policy], Policy] = lambda policy: policy
    """Returns the policy that the tools need."""
    event: Callable[[Event], Any] = lambda event: event
    """How an event of a running command is told to whoever streams a call; None leaves it out."""
    removes_saved: bool = False
    """Whether saved outputs go when the toolbox is closed, and at once those that an answer does
    not name; else they are kept for the policy's time."""
    ended: Callable[[Notice], str] | None = None
    """How a conversation that has a name is told, once and below its next answer, that a task of
    its own has ended; None tells nothing."""
    offers_restricted: bool = False
    """Whether its users count on restricted conversations: warn if there are none here."""


class Hints(NamedTuple):
    """What a tool can do at worst, in one conversation."""

    is_read_only: bool
    is_destructive: bool
    is_idempotent: bool
    is_open_world: bool
    """Whether it reaches beyond this machine."""


class Definition(NamedTuple):
    """A tool as a model is told of it."""

    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    """Of `Answer.data`, unless it is an error."""
    hints: Hints


class Toolbox:
    """The tools of a profile under one policy. It keeps no state of a conversation: share it."""

    def __init__(self, profile: Profile, policy: Policy | None = None) -> None:
        self.profile = profile
        self.bash = Bash(profile.shape(policy or Policy()))
        self._tools = {tool.name: tool for tool in profile.tools}
        self._saved: list[str] = []
        self._finalizer = weakref.finalize(self, _remove, self._saved)
        self._missing: str | None = None
        if profile.offers_restricted:
            self._missing = _missing_sandbox()

    # What a model is told

    @property
    def name(self) -> str:
        """The name of the first tool, which runs commands."""
        return self.profile.tools[0].name

    @property
    def description(self) -> str:
        """The description of the first tool, where the host is now."""
        return self.definitions()[0].description

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the first tool's parameters."""
        return schema_of(self.profile.tools[0].input)

    def definitions(self, ctx: ToolContext | None = None) -> list[Definition]:
        """Return all tools, with what holds in one conversation."""
        ctx = ctx or ToolContext()
        here = self._here(ctx)
        return [
            Definition(
                tool.name,
                tool.title or tool.name,
                f"{tool.description}\n\n{here}" if tool.effect == "runs" else tool.description,
                schema_of(tool.input),
                None if tool.data is None else data_schema_of(tool.data),
                self._hints(tool.effect, ctx),
            )
            for tool in self.profile.tools
        ]

    def _hints(self, effect: Effect, ctx: ToolContext) -> Hints:
        if effect == "reads":
            return Hints(True, False, True, False)
        if effect == "stops":
            return Hints(False, True, True, False)
        policy = self.bash.policy.restricted() if ctx.restricted else self.bash.policy
        sandbox = policy.sandbox
        looks_only = sandbox.mode == "read-only" and not sandbox.degrade
        is_closed = sandbox.mode != "off" and not (sandbox.network or sandbox.ports)
        return Hints(looks_only, not looks_only, False, not is_closed)

    def _here(self, ctx: ToolContext) -> str:
        where = Path(ctx.cwd or ".").expanduser().absolute()
        parts = [f"Working directory: {where}", self.bash.constraints(ctx)]
        if self._missing is not None:
            parts.append(f"Restricted mode is not available here: it needs {self._missing}.")
        return "\n".join(part for part in parts if part)

    # What becomes of its calls

    async def call(
        self,
        arguments: Mapping[str, Any] | str | bytes,
        ctx: ToolContext | None = None,
        *,
        tool: str | None = None,
    ) -> Answer:
        """Do what a model has called for, and return what it reads; bad input is an answer too.

        Args:
            arguments: What the model gave, as an object or as the text of one.
            ctx: The conversation.
            tool: Which tool; the first one if nothing is said.

        Raises:
            LookupError: There is no such tool.
            asyncio.CancelledError: The awaiting task was cancelled; all that ran is dead.
        """
        used, ctx = self._find(tool), ctx or ToolContext()
        try:
            given = validated(used.input, arguments)
            self._check_restricted(ctx)
            value = await _performed(used.ask(given), self.bash, ctx)
        except Exception as error:
            return _explained(error).writable()
        except BaseException as error:  # the awaiting task was cancelled, and has the result
            result = getattr(error, "result", None)
            if self.profile.removes_saved and isinstance(result, Result) and result.spill_path:
                _remove([result.spill_path])
            raise
        return self._told(used, given, value, ctx).writable()

    def call_sync(
        self,
        arguments: Mapping[str, Any] | str | bytes,
        ctx: ToolContext | None = None,
        *,
        tool: str | None = None,
    ) -> Answer:
        """Do the same without an event loop, or inside of one, blocking the thread."""
        import asyncio

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.call(arguments, ctx, tool=tool))
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(self.call_sync, arguments, ctx, tool=tool).result()

    async def stream(
        self,
        arguments: Mapping[str, Any] | str | bytes,
        ctx: ToolContext | None = None,
        *,
        tool: str | None = None,
    ) -> AsyncGenerator[Any, None]:
        """Do the same, and yield what happens meanwhile in the profile's form; the answer last.

        To stop iterating kills the command.
        """
        async with aclosing(self.watch(arguments, ctx, tool=tool)) as events:
            async for event in events:
                told = event if isinstance(event, Answer) else self.profile.event(event)
                if told is not None:
                    yield told

    async def watch(
        self,
        arguments: Mapping[str, Any] | str | bytes,
        ctx: ToolContext | None = None,
        *,
        tool: str | None = None,
    ) -> AsyncGenerator[Event | Answer, None]:
        """Do the same, and yield the engine's own events; the answer last."""
        used, ctx = self._find(tool), ctx or ToolContext()
        try:
            given = validated(used.input, arguments)
            self._check_restricted(ctx)
            ask = used.ask(given)
            if not isinstance(ask, Run):
                value = await _performed(ask, self.bash, ctx)
            else:
                async with aclosing(self._events(ask, ctx)) as events:
                    async for event in events:
                        yield event
                        if isinstance(event, Finished):
                            value = event.result
        except Exception as error:
            yield _explained(error).writable()
            return
        yield self._told(used, given, value, ctx).writable()

    async def _events(self, ask: Run, ctx: ToolContext) -> AsyncGenerator[Event, None]:
        run_id = None
        try:
            async with aclosing(
                ask.shaped(self.bash).stream(ask.command, **ask.call(ctx))
            ) as events:
                async for event in events:
                    if isinstance(event, Started):
                        run_id = event.run_id
                    elif isinstance(event, Finished):
                        run_id = None
                    yield event
        finally:
            if run_id is not None and self.profile.removes_saved:  # nobody will hear of it
                with suppress(OSError):
                    _remove([str(path_of(run_id, self.bash.policy.output))])

    def _check_restricted(self, ctx: ToolContext) -> None:
        if ctx.restricted and self._missing is not None:
            raise SandboxUnavailable(
                f"restricted mode is not available here: it needs {self._missing}. Nothing ran."
            )

    def _find(self, name: str | None) -> Tool[Any, Any]:
        if name is None:
            return self.profile.tools[0]
        if name not in self._tools:
            names = ", ".join(self._tools)
            raise LookupError(f"the profile {self.profile.name} has no tool {name!r}: {names}")
        return self._tools[name]

    def _told(self, tool: Tool[Any, Any], given: Input, value: object, ctx: ToolContext) -> Answer:
        answer = tool.tell(given, value)
        if self.profile.removes_saved and isinstance(value, Result) and value.spill_path:
            if value.spill_path in answer.text:
                self._saved.append(value.spill_path)
            else:
                _remove([value.spill_path])  # nobody will ask for it
        if self.profile.ended is None or ctx.session_id is None:
            return answer
        news: list[str] = []
        with suppress(OSError):  # there is no place for tasks, so there were none
            known = ended_in(value)
            notices = self.bash.take_notices(str(ctx.session_id))
            news = [self.profile.ended(one) for one in notices if one.task_id not in known]
        if not news:
            return answer
        return answer._replace(text="\n".join([answer.text.removesuffix("\n"), *news]))

    # Its end

    def close(self) -> None:
        """Remove what the profile has saved for as long as it is used."""
        _remove(self._saved)

    def keep(self) -> None:
        """Leave what was saved so far to the policy's time."""
        self._saved.clear()

    def __enter__(self) -> Toolbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _remove(paths: list[str]) -> None:
    while paths:
        with suppress(OSError):
            Path(paths.pop()).unlink(missing_ok=True)


class _Cancelled(Exception):
    """The conversation was cancelled while something was waited for."""


async def _performed(ask: Ask[_Value], bash: Bash, ctx: ToolContext) -> _Value:
    """Have something done; what the engine does not end itself is given up on a cancel."""
    if ctx.cancel is None or isinstance(ask, Run | Start):
        return await ask.perform(bash, ctx)
    import asyncio

    work = asyncio.ensure_future(ask.perform(bash, ctx))
    try:
        while not work.done():
            if ctx.cancel.is_set():
                raise _Cancelled("cancelled: nobody waits for it any more; tasks go on")
            await asyncio.wait([work], timeout=CANCEL_POLL_S)
        return work.result()
    finally:
        work.cancel()
        await asyncio.wait([work])


def _explained(error: Exception) -> Answer:
    """Return what a model is told of a call that came to nothing; raise what is a defect."""
    match error:
        case InvalidInput() | OutOfReach():
            return failure("invalid_input", str(error), can_retry=True)
        case TaskNotFound():
            return failure("not_found", str(error), can_retry=True)
        case _Cancelled():
            return failure("cancelled", str(error), can_retry=False)
        case SandboxUnavailable():
            return failure("sandbox_unavailable", str(error), can_retry=False)
        case ValueError():
            return failure("invalid_input", str(error), can_retry=True)
        case OSError():
            return failure("failed", str(error), can_retry=False)
    raise error


def _missing_sandbox() -> str | None:
    from limpet.sandbox.probe import probe

    needs = probe().needs
    if needs is not None:
        _log.warning("there is no restricted mode here: it needs %s; only the rules guard", needs)
    return needs
