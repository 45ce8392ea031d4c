"""Starting a task: the order goes to the nursery, and the new supervisor answers."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from limpet.conclude import nothing_ran
from limpet.errors import SandboxUnavailable, SpawnFailed
from limpet.launch import Request
from limpet.loop import SelectorLoop
from limpet.process import env, spawn
from limpet.result import Outcome
from limpet.tasks import nursery
from limpet.tasks.order import Order, Size
from limpet.tasks.shelf import Shelf
from limpet.tasks.task import Task

if TYPE_CHECKING:
    import asyncio

ANSWER_S = 30.0
"""How long a supervisor may take to start a command: on a busy machine, with a long mount table."""
_LARGEST_SIDE = 1000
_ON_A_TERMINAL = {"TERM": "xterm-256color", "NO_COLOR": ""}
"""What would else say that there is none."""


class Starting:
    """A task that is about to be."""

    def __init__(
        self,
        request: Request,
        *,
        timeout_s: float | None,
        session_id: str | None,
        has_input: bool,
        terminal: Size | None,
    ) -> None:
        """Send the order.

        Raises:
            SpawnFailed: There is no place for a task, or nobody to supervise it.
        """
        self._request = request
        if terminal is not None:
            request = request._replace(env={**_ON_A_TERMINAL, **(request.env or {})})
        policy = request.policy
        shell = spawn.find_program(policy.shell)
        if shell is not None:
            shell = os.path.abspath(shell)  # noqa: PTH100 -- a string; the nursery is elsewhere
            request = request._replace(policy=replace(policy, shell=shell))
        self._answer = b""
        self._reply, write_end = os.pipe()
        try:
            self._shelf = Shelf.of_this_user()
            order = Order(
                shelf=str(self._shelf.path),
                environment=env.host_environment(),
                request=request,
                timeout_s=timeout_s,
                origin="started",
                session_id=session_id,
                host=os.getpid(),
                has_input=has_input,
                terminal=terminal,
            )
            stdin = [request.stdin] if isinstance(request.stdin, int) else []
            nursery.send(order, [write_end, *stdin])
        except OSError as error:
            os.close(self._reply)
            raise self._failed(f"the task could not be started: {error}") from error
        finally:
            os.close(write_end)

    def _failed(self, why: str) -> SpawnFailed:
        return SpawnFailed(nothing_ran(self._request, Outcome.FAILED_TO_START, why))

    async def on_asyncio(self, loop: asyncio.AbstractEventLoop) -> Task:
        """Wait for the answer on a running asyncio loop."""
        import asyncio

        answered = loop.create_future()

        def on_readable() -> None:
            if self._read() and not answered.done():
                answered.set_result(None)

        loop.add_reader(self._reply, on_readable)
        try:
            async with asyncio.timeout(ANSWER_S):
                await answered
        except TimeoutError:
            pass
        finally:
            loop.remove_reader(self._reply)
            os.close(self._reply)
        return self._task()

    def on_selector(self) -> Task:
        """Wait for the answer on a loop of its own."""
        loop = SelectorLoop()
        done: list[bool] = []
        loop.add_reader(self._reply, lambda: done.append(True) if self._read() else None)
        loop.call_later(ANSWER_S, done.append, True)
        try:
            loop.run_until(lambda: bool(done))
        finally:
            os.close(self._reply)
        return self._task()

    def _read(self) -> bool:
        """Read what there is; True at the end."""
        data = os.read(self._reply, 65536)
        self._answer += data
        return not data

    def _task(self) -> Task:
        """Return the task of the answer.

        Raises:
            SandboxUnavailable: The kernel cannot do what the policy asks for.
            SpawnFailed: The command could not be started.
        """
        try:
            answer = json.loads(self._answer)
        except ValueError:
            raise self._failed(
                "its supervisor has failed: see whether this machine has room"
            ) from None
        if "unavailable" in answer:
            raise SandboxUnavailable(answer["unavailable"])
        if "failed" in answer:
            raise self._failed(str(answer["failed"]))
        return Task(self._shelf, answer["id"])


def check_size(size: object) -> Size:
    """Return a terminal's columns and rows, or say what is wrong with them."""
    match size:
        case (int(columns), int(rows)):
            if 0 < columns <= _LARGEST_SIDE and 0 < rows <= _LARGEST_SIDE:
                return columns, rows
            raise ValueError(f"a terminal has 1 to {_LARGEST_SIDE} columns and rows, not {size!r}")
    raise TypeError(f"size is (columns, rows), not {size!r}")
