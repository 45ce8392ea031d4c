"""One call: its arguments checked, its run driven on a loop, its conversation moved."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, TypedDict

from limpet.conclude import nothing_ran
from limpet.context import ToolContext
from limpet.events import Finished, RawEvent
from limpet.handover import Handover
from limpet.launch import Request
from limpet.loop import Loop, SelectorLoop
from limpet.policy import Approval, Policy, check_timeout
from limpet.process import env as environment
from limpet.result import Outcome, Result
from limpet.run import Run

if TYPE_CHECKING:
    import asyncio

    from limpet.safety.guard import Guard
    from limpet.tasks.task import Task
    from limpet.verdict import Verdict

CANCEL_POLL_S = 0.05
"""How often a cancel that cannot be awaited is looked at: a threading.Event, or without asyncio."""


_HOW_TO_ALLOW = (
    "Nobody was there to approve it: give the policy an `approve`, add the command to its"
    " permissions' `allow`, or put the rule's id in its rules' `off`."
)


class Call(TypedDict, total=False):
    """What `run`, `run_sync` and `stream` take beside the command."""

    timeout_s: float | None
    """The limit of this call; None is the policy's."""
    env: Mapping[str, str] | None
    """Added to the environment, over everything else."""
    stdin: str | bytes | int | None
    """What the command reads, or a descriptor to read from; None is the empty /dev/null."""
    description: str | None
    """What the command is for, kept in the result."""
    ctx: ToolContext | None
    """The conversation that the call belongs to."""
    on_timeout: Literal["kill", "background"]
    """What becomes of it at its time limit: dead, or a task that goes on."""


class Attempt:
    """Makes one call, on whichever loop the caller has."""

    def __init__(
        self,
        policy: Policy,
        command: str,
        call: Call,
        listener: Callable[[RawEvent], None] | None = None,
    ) -> None:
        if not isinstance(command, str):
            raise TypeError(f"the command must be a string, not {type(command).__name__}")
        if unknown := call.keys() - Call.__annotations__.keys():
            raise TypeError(f"no such argument: {', '.join(sorted(unknown))}")
        stdin = call.get("stdin")
        if isinstance(stdin, bool) or not isinstance(stdin, str | bytes | int | None):
            raise TypeError(f"stdin must be text or bytes, not {type(stdin).__name__}")
        description = call.get("description")
        if description is not None and not isinstance(description, str):
            raise TypeError(f"description must be text, not {type(description).__name__}")
        timeout_s = call.get("timeout_s")
        extra = call.get("env")
        if extra:
            environment.check_variables(extra)
        self._ctx = call.get("ctx")
        if self._ctx is not None and self._ctx.restricted:
            policy = policy.restricted()
        self._policy = policy
        self._timeout_s = policy.timeout_s if timeout_s is None else check_timeout(timeout_s)
        self._env = extra
        self._stdin = os.fsencode(stdin) if isinstance(stdin, str) else stdin
        self._command = str.__str__(command)  # of a subclass, the text alone
        self._description = description
        self._cancel = None if self._ctx is None else self._ctx.cancel
        self._on_timeout = call.get("on_timeout", "kill")
        if self._on_timeout not in ("kill", "background"):
            raise ValueError(f"on_timeout must be 'kill' or 'background', not {self._on_timeout!r}")
        self._listener = listener
        self._verdict: Verdict | None = None
        self._refusal: str | None = None
        self.inherited: Mapping[bytes, bytes] | None = None
        self.is_alone = False

    @property
    def is_cancelled(self) -> bool:
        """True if the conversation is cancelled: then the call never starts."""
        return self._cancel is not None and self._cancel.is_set()

    @property
    def poll_s(self) -> float | None:
        """How often whoever waits should ask `is_cancelled`; None if there is nothing to ask."""
        return None if self._cancel is None else CANCEL_POLL_S

    def check(self, guard: Guard | None) -> Approval | None:
        """Put the command to the rules; return what must be approved before it may begin."""
        if guard is None:
            return None
        verdict = self._verdict = guard.check(self._command)
        if verdict.decision == "deny":
            self._refusal = verdict.describe()
        elif verdict.decision == "ask" and self._policy.approve is None:
            self._refusal = f"{verdict.describe()} {_HOW_TO_ALLOW}"
        elif verdict.decision == "ask":
            return Approval(
                command=self._command,
                verdict=verdict,
                description=self._description,
                ctx=self._ctx,
            )
        return None

    def decline(self, question: Approval) -> None:
        """Note that a command was not approved: then it never starts."""
        self._refusal = f"not approved. It {question.verdict.describe()}"

    def begin(
        self,
        loop: Loop,
        on_done: Callable[[Result], None],
        on_crash: Callable[[Exception], None],
    ) -> Run | None:
        """Start the run, unless it is cancelled already, or refused: then it never starts."""
        start = self._ctx.cwd if self._ctx else None
        request = self._request(start)
        never = self._never(request)
        if never is not None:
            if self._listener is not None:
                self._listener(Finished(never))
            on_done(never)
            return None
        if self._ctx is not None and self._policy.persist_cwd:
            on_done = self._moving(self._ctx, start, on_done)
        run = Run(loop, request, on_done, on_crash, self._listener, self._adopt)
        run.start()
        return run

    def for_task(self) -> Request | Result:
        """Return what is to be started as a task, or why it never starts."""
        request = self._request(self._ctx.cwd if self._ctx else None)
        return self._never(request) or request

    def _never(self, request: Request) -> Result | None:
        if self.is_cancelled:
            why = "cancelled before it started: nothing ran"
            return nothing_ran(request, Outcome.CANCELLED, why)
        if self._refusal is not None:
            return nothing_ran(request, Outcome.REFUSED, self._refusal)
        return None

    @property
    def session_id(self) -> str | None:
        """The conversation's."""
        own = None if self._ctx is None else self._ctx.session_id
        return None if own is None else str(own)

    def _adopt(self, handover: Handover) -> str:
        from limpet.tasks.adopt import adopt  # slow to import, and rarely needed

        return adopt(handover, self.session_id)

    def _request(self, start: str | None) -> Request:
        inherited = self.inherited
        return Request(
            command=self._command,
            cwd=_absolute(start),
            workspace=workspace_of(self._ctx),
            timeout_s=self._timeout_s,
            policy=self._policy,
            inherited=environment.host_environment() if inherited is None else inherited,
            env=self._env,
            stdin=self._stdin,
            description=self._description,
            on_timeout=self._on_timeout,
            verdict=self._verdict,
            is_alone=self.is_alone,
        )

    @staticmethod
    def _moving(
        ctx: ToolContext, start: str | None, on_done: Callable[[Result], None]
    ) -> Callable[[Result], None]:
        """Return an `on_done` that first moves the conversation to where the command ended."""

        def move(result: Result) -> None:
            if result.cwd_changed:
                ctx.move(start, result.cwd)
            elif result.outcome is Outcome.FAILED_TO_START and not os.path.isdir(result.cwd):  # noqa: PTH112 -- a string
                # The directory that an earlier call moved to is gone: go back to where it began.
                ctx.move(start, None)
            on_done(result)

        return move

    async def on_asyncio(self, loop: asyncio.AbstractEventLoop) -> Result:
        """Drive the run on a running asyncio loop; killed and awaited if the task is cancelled."""
        import asyncio

        done = loop.create_future()
        ended: list[Result | Exception] = []

        def on_end(result: Result | Exception) -> None:
            ended.append(result)
            if not done.done():
                done.set_result(None)

        run = self.begin(loop, on_end, on_end)
        stop_watching = None
        if run is not None and self._cancel is not None and not ended:
            stop_watching = self._watch_cancel_on_asyncio(loop, run)
        try:
            if ended:
                await asyncio.sleep(0)  # others wait for the loop, which was kept from them
            else:
                await done
        except asyncio.CancelledError as error:
            assert run is not None  # noqa: S101 -- for the type checker: else it has ended
            run.cancel()
            # The kill is bounded; a second cancel must not leave it half done.
            while not ended:
                done = loop.create_future()
                try:
                    await done
                except asyncio.CancelledError:
                    continue
            await _stop_promoted(ended[0])
            # No subclass: asyncio.timeout() takes nothing but this very class for its own doing.
            error.result = ended[0]  # type: ignore[attr-defined]
            raise
        finally:
            if stop_watching is not None:
                stop_watching()
        return _result(ended)

    def _watch_cancel_on_asyncio(
        self, loop: asyncio.AbstractEventLoop, run: Run
    ) -> Callable[[], object]:
        import asyncio

        cancel = self._cancel
        if isinstance(cancel, asyncio.Event):

            async def wait() -> None:
                try:
                    await cancel.wait()
                except RuntimeError:  # it belongs to another loop: then it can only be looked at
                    while not cancel.is_set():  # noqa: ASYNC110 -- see above
                        await asyncio.sleep(CANCEL_POLL_S)
                run.cancel()

            return loop.create_task(wait()).cancel
        return self._poll_cancel(loop, run)

    def _poll_cancel(self, loop: Loop, run: Run) -> Callable[[], object]:
        cancel = self._cancel
        if cancel is None:
            return lambda: None
        timer = loop.call_later(CANCEL_POLL_S, lambda: None)

        def look() -> None:
            nonlocal timer
            if cancel.is_set():
                run.cancel()
            else:
                timer = loop.call_later(CANCEL_POLL_S, look)

        look()
        return lambda: timer.cancel()

    def on_selector(self, loop: SelectorLoop) -> Result:
        """Drive the run on a loop of its own; killed and awaited if it is interrupted."""
        ended: list[Result | Exception] = []
        restore = loop.defer_interrupts()
        try:
            run = self.begin(loop, ended.append, ended.append)
            stop_watching = self._poll_cancel(loop, run) if run is not None else None
            try:
                loop.run_until(lambda: bool(ended))
            except KeyboardInterrupt:
                assert run is not None  # noqa: S101 -- for the type checker: else it has ended
                run.cancel()
                # The kill is bounded; a second Ctrl-C must not leave it half done.
                while not ended:
                    with suppress(KeyboardInterrupt):
                        loop.run_until(lambda: bool(ended))
                if (task := _promoted(ended[0])) is not None:
                    task.stop_sync()
                raise
            finally:
                if stop_watching is not None:
                    stop_watching()
        finally:
            restore()
        return _result(ended)


def _result(ended: list[Result | Exception]) -> Result:
    match ended[0]:
        case Result() as result:
            return result
        case error:
            raise error


def _promoted(ended: Result | Exception) -> Task | None:
    """Return the task that a call has become, if it has, at the very moment it was cancelled."""
    if not isinstance(ended, Result) or ended.outcome is not Outcome.BACKGROUNDED:
        return None
    from limpet.tasks.shelf import Shelf
    from limpet.tasks.task import Task

    return Task(Shelf.of_this_user(), ended.task_id or "")


async def _stop_promoted(ended: Result | Exception) -> None:
    import asyncio

    task = _promoted(ended)
    if task is None:
        return
    stopping = asyncio.ensure_future(task.stop())
    while not stopping.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([stopping])


def workspace_of(ctx: ToolContext | None) -> str:
    """Return where a conversation began: where a command moved it to is not for writing."""
    began = None if ctx is None else ctx.working_dir
    return _absolute(None if began is None else str(began))


def _absolute(path: str | None) -> str:
    """Return the full path of a directory; empty if that is relative to one that was deleted."""
    try:
        if path is None:
            return os.getcwd()  # noqa: PTH109 -- a string is wanted
        return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 -- a string
    except FileNotFoundError:
        return ""
