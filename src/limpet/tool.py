"""`Bash`: run, run_sync, stream, check. Orchestration only; `run.py` does the work."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Unpack

from limpet.attempt import Attempt, Call, workspace_of
from limpet.context import ToolContext
from limpet.errors import TaskNotFound
from limpet.events import Event, Finished, RawEvent
from limpet.loop import Loop, SelectorLoop
from limpet.policy import Approval, Pack, PermissionPolicy, Policy, RulePolicy
from limpet.result import Result
from limpet.run import Run
from limpet.starting import StartCall, prepare
from limpet.turns import Turns
from limpet.verdict import Verdict

if TYPE_CHECKING:
    import asyncio

    from limpet.safety.guard import Guard
    from limpet.tasks.notices import Notice
    from limpet.tasks.reader import Part, Reading
    from limpet.tasks.task import Task
    from limpet.tasks.wait import Until, Waited


_STARTS_AT_ONCE = 32
"""How many tasks are on their way to a supervisor: each holds descriptors until it is answered."""


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
        self._starts = Turns(_STARTS_AT_ONCE)
        has_rules = self.policy.rules != RulePolicy(pack="none")
        self._is_checked = has_rules or self.policy.permissions != PermissionPolicy()
        self._guard: Guard | None = None

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
        self._ask_now(attempt)
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

    async def tap(
        self, command: str, listener: Callable[[RawEvent], None], **call: Unpack[Call]
    ) -> Result:
        """Do the same as `run`, and hand a listener all that is written, raw, as it is read."""
        return await self._drive(Attempt(self.policy, command, call, listener))

    async def stream(self, command: str, **call: Unpack[Call]) -> AsyncGenerator[Event, None]:
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
        question = attempt.check(self._get_guard())
        if question is not None and not await _approved(self.policy, question):
            attempt.decline(question)
        has_turn = self._turns.take() or await _await_turn(self._turns, loop, attempt)
        try:
            if self.policy.environment.login:
                from limpet import login

                attempt.inherited = await login.read(loop, self.policy)
            attempt.is_alone = self._turns.in_use == 1
            return await attempt.on_asyncio(loop)
        finally:
            if has_turn:
                self._turns.give_back()

    # Background tasks

    async def start(self, command: str, **call: Unpack[StartCall]) -> Task:
        """Start a command as a background task, and return at once.

        It goes on when this program has ended, however that ends.

        Raises:
            CommandRefused: A rule forbids it, or nobody approved it; nothing ran.
            SpawnFailed: It could not be started, or as many tasks run as may.
            SandboxUnavailable: The kernel cannot do what the policy asks for.
            TypeError: An argument is of the wrong type; nothing ran.
            ValueError: An argument is out of range; nothing ran.
        """
        import asyncio

        loop = asyncio.get_running_loop()
        attempt, begin = prepare(self.policy, command, call)
        question = attempt.check(self._get_guard())
        if question is not None and not await _approved(self.policy, question):
            attempt.decline(question)
        if self.policy.environment.login:
            from limpet import login

            attempt.inherited = await login.read(loop, self.policy)
        has_turn = self._starts.take() or await _await_turn(self._starts, loop, attempt)
        try:
            return await begin().on_asyncio(loop)
        finally:
            if has_turn:
                self._starts.give_back()

    def start_sync(self, command: str, **call: Unpack[StartCall]) -> Task:
        """Do the same as `start` without an event loop."""
        attempt, begin = prepare(self.policy, command, call)
        self._ask_now(attempt)
        if self.policy.environment.login:
            from limpet import login

            attempt.inherited = login.read_sync(self.policy)
        return begin().on_selector()

    def task(self, task_id: str) -> Task:
        """Return a task by its id, whoever has started it.

        Raises:
            TaskNotFound: There is none, or it is no id; the message lists those that there are.
        """
        from limpet.tasks.shelf import Shelf
        from limpet.tasks.task import Task

        return Task(Shelf.of_this_user(), task_id)

    def tasks(self) -> list[Task]:
        """Return all tasks of this user, the latest first, also those that have ended."""
        from limpet.tasks.shelf import Shelf
        from limpet.tasks.task import Task

        shelf = Shelf.of_this_user()
        found = []
        for task_id in shelf.ids():
            with suppress(TaskNotFound):  # another program removes some at this moment
                found.append(Task(shelf, task_id))
        return found

    def read(self, saved: Result | str, **part: Unpack[Part]) -> Reading:
        """Return a part of the output that a call has saved, as `Task.output` does for a task.

        Args:
            saved: The result of the call, or its `spill_path`.
            **part: `cursor`, `last`, `lines`, `search`, `context`, `limit`.

        Raises:
            OSError: It is not kept any more.
            ValueError: The call has saved nothing, since `output` is all; or see `Task.output`.
        """
        from limpet.tasks import reader

        path = saved.spill_path if isinstance(saved, Result) else saved
        if path is None:
            raise ValueError("nothing was saved: the result's output is all there was")
        with reader.Output(path) as output:
            output.ends()
            return reader.read(output, part)

    async def wait(
        self,
        tasks: Iterable[Task],
        until: Until | Iterable[Until] = "exit",
        timeout_s: float | None = None,
        *,
        cursors: Mapping[str, int] | None = None,
    ) -> Waited:
        """Wait for the first of several tasks to meet a condition, as `Task.wait` does for one.

        Args:
            tasks: Which.
            until: What for.
            timeout_s: How long at most.
            cursors: By the ids of tasks, from where on their output is new.
        """
        from limpet.tasks.task import wait_for

        places = [(task, (cursors or {}).get(task.id)) for task in tasks]
        return await wait_for(places, until, timeout_s)

    def take_notices(self, session_id: str | None = None) -> list[Notice]:
        """Return the ends of tasks that nobody was told of, each only once.

        Args:
            session_id: Of this conversation; None is all that this program has begun, and those
                whose program has ended since.
        """
        from limpet.tasks.notices import take
        from limpet.tasks.shelf import Shelf

        return list(take(Shelf.of_this_user(), session_id))

    async def notices(self, session_id: str | None = None) -> AsyncIterator[Notice]:
        """Yield a notice when a task ends, each only once; first of those that ended before."""
        from limpet.tasks.notices import subscribe
        from limpet.tasks.shelf import Shelf

        async for notice in subscribe(Shelf.of_this_user(), session_id):
            yield notice

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
        attempt = Attempt(self.policy, command, call, listener)
        self._ask_now(attempt)
        return attempt.begin(loop, on_done, on_crash)

    def check(self, command: str) -> Verdict:
        """Return what the policy's rules and permissions say of a command; nothing runs."""
        guard = self._get_guard()
        return Verdict(command, "allow") if guard is None else guard.check(command)

    def constraints(self, ctx: ToolContext | None = None) -> str:
        """Return what a model should be told of the sandbox and the limits; empty without any."""
        policy = self.policy.restricted() if ctx is not None and ctx.restricted else self.policy
        limits = policy.effective_limits
        if policy.sandbox.mode == "off" and limits is None:
            return ""
        from limpet.sandbox.description import describe

        return describe(policy.sandbox, limits, workspace_of(ctx))

    def _get_guard(self) -> Guard | None:
        """Return what checks commands; None if the policy has nothing to check."""
        if self._guard is None and self._is_checked:
            from limpet.safety.guard import Guard  # slow to import, and not needed before

            self._guard = Guard(self.policy.rules, self.policy.permissions)
        return self._guard

    def _ask_now(self, attempt: Attempt) -> None:
        """Have a command approved where nothing can be awaited."""
        question = attempt.check(self._get_guard())
        if question is None or self.policy.approve is None:
            return
        answer = self.policy.approve(question)
        if not isinstance(answer, bool):
            raise TypeError("approve must return a bool here; with `run` it may be awaitable")
        if not answer:
            attempt.decline(question)

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


def check(command: str, rules: RulePolicy | Pack = "default") -> Verdict:
    """Return what the rules say of a command; nothing runs."""
    if not isinstance(command, str):
        raise TypeError(f"the command must be a string, not {type(command).__name__}")
    if isinstance(rules, RulePolicy):
        return Bash(rules=rules).check(command)
    if rules not in _packs:
        _packs[rules] = Bash(rules=rules)
    return _packs[rules].check(command)


_packs: dict[str, Bash] = {}
"""One for each pack that `check` was asked about."""


async def _await_turn(turns: Turns, loop: asyncio.AbstractEventLoop, attempt: Attempt) -> bool:
    """Wait for a turn; False if the conversation was cancelled before there was one."""
    import asyncio

    turn: asyncio.Future[None] = loop.create_future()

    def begin() -> None:
        if not turn.done():
            turn.set_result(None)

    def on_turn() -> None:
        loop.call_soon_threadsafe(begin)

    if turns.take(on_turn):
        return True
    try:
        if attempt.poll_s is None:
            await turn
        while not turn.done():
            await asyncio.wait([turn], timeout=attempt.poll_s)
            if attempt.is_cancelled and turns.withdraw(on_turn):
                return False
    except BaseException:
        if not turns.withdraw(on_turn):
            turns.give_back()
        raise
    return True


async def _approved(policy: Policy, question: Approval) -> bool:
    assert policy.approve is not None  # noqa: S101 -- for the type checker: else none is asked
    answer = policy.approve(question)
    if not isinstance(answer, bool):
        answer = await answer
    return answer is True


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
