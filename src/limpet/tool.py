"""`Bash`: run, run_sync, stream. Orchestration only; `run.py` does the work."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, TypedDict, Unpack

from limpet.backlog import Backlog
from limpet.context import ToolContext
from limpet.events import Event, Finished
from limpet.loop import Loop, SelectorLoop
from limpet import login
from limpet.policy import Policy, check_timeout
from limpet.process import env as environment

from limpet.result import Outcome, Result
from limpet.run import Request, Run
from limpet.turns import Turns

if TYPE_CHECKING:
    import asyncio

CANCEL_POLL_S = 0.05
"""How often a cancel that cannot be awaited (a threading.Event, or no asyncio loop) is looked at."""


class Call(TypedDict, total=False):
    """What `run`, `run_sync` and `stream` take beside the command."""

    timeout_s: float | None
    """The limit of this call; None is the policy's."""
    env: Mapping[str, str] | None
    """Added to the environment, over everything else."""
    stdin: str | bytes | None
    """What the command reads; None is the empty /dev/null."""
    description: str | None
    """What the command is for, kept in the result."""
    ctx: ToolContext | None
    """The conversation that the call belongs to."""


class Bash:
    """Runs shell commands under one policy.

    It keeps no state of a conversation: share one between conversations, threads and loops.
    """

    def __init__(self, policy: Policy | None = None, **fields: object) -> None:
        """Take a policy, or the fields of one: `Bash(timeout_s=30)`."""
        if policy is not None and fields:
            raise TypeError("give a Policy or the fields of one, not both")
        self.policy = policy or Policy(**fields)  # type: ignore[arg-type]  # checked by Policy itself
        self._turns = Turns(self.policy.max_concurrent)

    async def run(self, command: str, **call: Unpack[Call]) -> Result:
        """Run a command and return what it came to, whatever that is.

        Raises:
            RunCancelled: The awaiting task was cancelled; all the command started is dead, and the
                error carries the result.
            TypeError: An argument is of the wrong type; nothing ran.
            ValueError: An argument is out of range; nothing ran.
        """
        import asyncio

        loop = asyncio.get_running_loop()
        attempt = _Attempt(self, command, call)
        if not self._turns.take():
            await self._await_turn(loop)
        try:
            if self.policy.environment.login:
                attempt.inherited = await login.read(loop, self.policy)
            return await attempt.on_asyncio(loop)
        finally:
            self._turns.give_back()

    def run_sync(self, command: str, **call: Unpack[Call]) -> Result:
        """Do the same as `run` without an event loop, blocking the thread."""
        attempt = _Attempt(self, command, call)
        self._wait_for_turn()
        loop = SelectorLoop()
        try:
            if self.policy.environment.login:
                attempt.inherited = login.read_sync(loop, self.policy)
            return attempt.on_selector(loop)
        finally:
            self._turns.give_back()

    async def stream(self, command: str, **call: Unpack[Call]) -> AsyncIterator[Event]:
        """Run a command and yield its events as they happen, `Finished` last.

        A slow consumer misses output (`Output.skipped_bytes`), but never blocks the command; the
        result has it. To stop iterating kills the command.
        """
        import asyncio

        loop = asyncio.get_running_loop()
        news = asyncio.Event()
        backlog = Backlog(news.set)
        attempt = _Attempt(self, command, call, backlog.put)
        if not self._turns.take():
            await self._await_turn(loop)
        running = None
        try:
            if self.policy.environment.login:
                attempt.inherited = await login.read(loop, self.policy)
            running = loop.create_task(attempt.on_asyncio(loop))
            running.add_done_callback(lambda _: news.set())
            while True:
                await news.wait()
                news.clear()
                while (event := backlog.take()) is not None:
                    yield event
                    if isinstance(event, Finished):
                        return
                if running.done():
                    running.result()  # what kept it from finishing
        finally:
            if running is not None:
                running.cancel()
                await asyncio.wait([running])
            self._turns.give_back()

    def launch(
        self,
        command: str,
        loop: Loop,
        on_done: Callable[[Result], None],
        listener: Callable[[Event], None],
        **call: Unpack[Call],
    ) -> Run | None:
        """Start a command on a loop of the caller's own, who drives it; None if it never starts."""
        return _Attempt(self, command, call, listener).begin(loop, on_done)

    async def _await_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        turn: asyncio.Future[None] = loop.create_future()

        def on_turn() -> None:
            loop.call_soon_threadsafe(lambda: turn.done() or turn.set_result(None))

        if self._turns.take(on_turn):
            return
        try:
            await turn
        except BaseException:
            if not self._turns.withdraw(on_turn):
                self._turns.give_back()
            raise

    def _wait_for_turn(self) -> None:
        turn = threading.Event()
        on_turn = turn.set
        if self._turns.take(on_turn):
            return
        try:
            turn.wait()
        except BaseException:
            if not self._turns.withdraw(on_turn):
                self._turns.give_back()
            raise


class _Attempt:
    """One call: its arguments checked, its run driven, its conversation moved."""

    def __init__(
        self,
        bash: Bash,
        command: str,
        call: Call,
        listener: Callable[[Event], None] | None = None,
    ) -> None:
        if not isinstance(command, str):
            raise TypeError(f"the command must be a string, not {type(command).__name__}")
        stdin = call.get("stdin")
        if stdin is not None and not isinstance(stdin, str | bytes):
            raise TypeError(f"stdin must be text or bytes, not {type(stdin).__name__}")
        timeout_s = call.get("timeout_s")
        self._policy = bash.policy
        self._timeout_s = check_timeout(bash.policy.timeout_s if timeout_s is None else timeout_s)
        self._env = call.get("env")
        environment.check_variables(self._env or {})
        self._stdin = os.fsencode(stdin) if isinstance(stdin, str) else stdin
        self._command = command
        self._description = call.get("description")
        self._ctx = call.get("ctx") or ToolContext()
        self._listener = listener
        self.inherited: Mapping[bytes, bytes] | None = None

    def begin(self, loop: Loop, on_done: Callable[[Result], None]) -> Run | None:
        """Start the run, unless the conversation is cancelled already: then it never starts."""
        start = self._ctx.cwd
        request = self._request(start)

        def finish(result: Result) -> None:
            on_done(self._move(start, result))

        if self._ctx.cancel is not None and self._ctx.cancel.is_set():
            self._never_start(request, on_done)
            return None
        run = Run(loop, request, finish, self._listener)
        run.start()
        return run

    def _request(self, start: str | None) -> Request:
        inherited = self.inherited
        return Request(
            command=self._command,
            cwd=_absolute(start),
            timeout_s=self._timeout_s,
            policy=self._policy,
            inherited=environment.host_environment() if inherited is None else inherited,
            env=self._env,
            stdin=self._stdin,
            description=self._description,
        )

    def _never_start(self, request: Request, on_done: Callable[[Result], None]) -> None:
        result = Result(
            command=request.command,
            display=request.command,
            description=request.description,
            outcome=Outcome.CANCELLED,
            cwd=request.cwd,
            hint="cancelled before it started: nothing ran",
        )
        if self._listener is not None:
            self._listener(Finished(result))
        on_done(result)

    def _move(self, start: str | None, result: Result) -> Result:
        if not self._policy.persist_cwd:
            return result
        if result.cwd_changed:
            self._ctx.move(start, result.cwd)
        elif result.outcome is Outcome.FAILED_TO_START and not os.path.isdir(result.cwd):  # noqa: PTH112 -- a string
            # The directory that an earlier call moved to is gone: go back to where it began.
            self._ctx.move(start, None)
        return result

    async def on_asyncio(self, loop: asyncio.AbstractEventLoop) -> Result:
        """Drive the run on a running asyncio loop; killed and awaited if the task is cancelled."""
        import asyncio

        done = loop.create_future()
        results: list[Result] = []

        def on_done(result: Result) -> None:
            results.append(result)
            if not done.done():
                done.set_result(None)

        run = self.begin(loop, on_done)
        if results:
            return results[0]
        assert run is not None  # noqa: S101 -- for the type checker: what never starts has a result
        stop_watching = self._watch_cancel_on_asyncio(loop, run)
        try:
            await done
        except asyncio.CancelledError:
            from limpet.cancelled import RunCancelled

            run.cancel()
            # The kill is bounded; a second cancel must not leave it half done.
            while not results:
                done = loop.create_future()
                try:
                    await done
                except asyncio.CancelledError:
                    continue
            raise RunCancelled(results[0]) from None
        finally:
            stop_watching()
        return results[0]

    def _watch_cancel_on_asyncio(
        self, loop: asyncio.AbstractEventLoop, run: Run
    ) -> Callable[[], object]:
        import asyncio

        cancel = self._ctx.cancel
        if isinstance(cancel, asyncio.Event):
            waiting = loop.create_task(cancel.wait())
            waiting.add_done_callback(lambda task: task.cancelled() or run.cancel())
            return waiting.cancel
        return self._poll_cancel(loop, run)

    def _poll_cancel(self, loop: Loop, run: Run) -> Callable[[], object]:
        cancel = self._ctx.cancel
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
        """Drive the run on a loop of its own; killed and awaited on any exception."""
        results: list[Result] = []
        run = self.begin(loop, results.append)
        if run is not None and not results:
            stop_watching = self._poll_cancel(loop, run)
            try:
                loop.run_until(lambda: bool(results))
            except BaseException:
                run.cancel()
                loop.run_until(lambda: bool(results))
                raise
            finally:
                stop_watching()
        return results[0]


def _absolute(path: str | None) -> str:
    if path is None:
        try:
            return os.getcwd()  # noqa: PTH109 -- a string is wanted
        except FileNotFoundError:
            return os.getenv("PWD") or "the host's own, which was deleted"
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 -- a string is wanted
