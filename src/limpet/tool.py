"""`Bash`: run, run_sync, stream. Orchestration only; `run.py` does the work."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Unpack

from limpet.attempt import Attempt, Call
from limpet.events import Event, Finished, RawEvent
from limpet.loop import Loop, SelectorLoop
from limpet.policy import Policy
from limpet.result import Result
from limpet.run import Run
from limpet.turns import Turns

if TYPE_CHECKING:
    import asyncio


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
            asyncio.CancelledError: The awaiting task was cancelled; all that the command started
                is dead, and the error has the result as its attribute `result`.
            TypeError: An argument is of the wrong type; nothing ran.
            ValueError: An argument is out of range; nothing ran.
        """
        return await self._drive(Attempt(self.policy, command, call))

    def run_sync(self, command: str, **call: Unpack[Call]) -> Result:
        """Do the same as `run` without an event loop, blocking the thread."""
        attempt = Attempt(self.policy, command, call)
        has_turn = self._turns.take() or self._wait_for_turn(attempt)
        try:
            if self.policy.environment.login:
                from limpet import login

                attempt.inherited = login.read_sync(self.policy)
            attempt.is_alone = self._turns.in_use == 1
            return attempt.on_selector(SelectorLoop())
        finally:
            if has_turn:
                self._turns.give_back()

    async def stream(self, command: str, **call: Unpack[Call]) -> AsyncIterator[Event]:
        """Run a command and yield its events as they happen, `Finished` last.

        A slow consumer misses output (`Output.skipped_bytes`), but never blocks the command; the
        result has it. To stop iterating kills the command.
        """
        import asyncio

        from limpet.backlog import Backlog

        news = asyncio.Event()
        backlog = Backlog(news.set)
        attempt = Attempt(self.policy, command, call, backlog.put)
        running = asyncio.create_task(self._drive(attempt))
        running.add_done_callback(lambda _: news.set())
        try:
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
            running.cancel()
            await _end_of(running)

    async def _drive(self, attempt: Attempt) -> Result:
        import asyncio

        loop = asyncio.get_running_loop()
        has_turn = self._turns.take() or await self._await_turn(loop, attempt)
        try:
            if self.policy.environment.login:
                from limpet import login

                attempt.inherited = await login.read(loop, self.policy)
            attempt.is_alone = self._turns.in_use == 1
            return await attempt.on_asyncio(loop)
        finally:
            if has_turn:
                self._turns.give_back()

    def launch(
        self,
        command: str,
        loop: Loop,
        on_done: Callable[[Result], None],
        on_crash: Callable[[Exception], None],
        listener: Callable[[RawEvent], None],
        **call: Unpack[Call],
    ) -> Run | None:
        """Start a command on a loop of the caller's own, who drives it; None if it never starts."""
        return Attempt(self.policy, command, call, listener).begin(loop, on_done, on_crash)

    async def _await_turn(self, loop: asyncio.AbstractEventLoop, attempt: Attempt) -> bool:
        """Wait for a turn; False if the conversation was cancelled before there was one."""
        import asyncio

        turn: asyncio.Future[None] = loop.create_future()

        def begin() -> None:
            if not turn.done():
                turn.set_result(None)

        def on_turn() -> None:
            loop.call_soon_threadsafe(begin)

        if self._turns.take(on_turn):
            return True
        try:
            if attempt.poll_s is None:
                await turn
            while not turn.done():
                await asyncio.wait([turn], timeout=attempt.poll_s)
                if attempt.is_cancelled and self._turns.withdraw(on_turn):
                    return False
        except BaseException:
            if not self._turns.withdraw(on_turn):
                self._turns.give_back()
            raise
        return True

    def _wait_for_turn(self, attempt: Attempt) -> bool:
        turn = threading.Event()
        on_turn = turn.set
        if self._turns.take(on_turn):
            return True
        try:
            while not turn.wait(attempt.poll_s):
                if attempt.is_cancelled and self._turns.withdraw(on_turn):
                    return False
        except BaseException:
            if not self._turns.withdraw(on_turn):
                self._turns.give_back()
            raise
        return True


async def _end_of(task: asyncio.Task[Result]) -> None:
    """Wait for the end of a task that was cancelled, whatever else is cancelled meanwhile."""
    import asyncio

    cancelled = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
