"""Starting a task: the order goes to the nursery, and the new supervisor answers."""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from limpet.conclude import nothing_ran
from limpet.errors import SandboxUnavailable, SpawnFailed
from limpet.launch import Request
from limpet.loop import SelectorLoop
from limpet.process import env, spawn
from limpet.result import Outcome
from limpet.tasks import nursery
from limpet.tasks.input import Size
from limpet.tasks.order import WITHDRAWN, Order
from limpet.tasks.record import Mark
from limpet.tasks.shelf import Shelf
from limpet.tasks.task import Task

if TYPE_CHECKING:
    import asyncio

_LAST_WORDS = (b'"pid": ', b'"failed": ', b'"unavailable": ')
ANSWER_S = 30.0
"""How long a supervisor may take to start a command: on a busy machine, with a long mount table."""
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
        theirs = None
        try:
            self._reply, theirs = socket.socketpair()
            self._shelf = Shelf.of_this_user()
            order = Order(
                shelf=str(self._shelf.path),
                environment=env.host_environment(),
                request=request,
                timeout_s=timeout_s,
                origin="started",
                session_id=session_id,
                host=Mark.of_this(),
                has_input=has_input,
                terminal=terminal,
            )
            stdin = [request.stdin] if isinstance(request.stdin, int) else []
            nursery.send(order, [theirs.fileno(), *stdin])
        except OSError as error:
            if theirs is not None:
                self._reply.close()
            raise self._failed(f"the task could not be started: {error}") from error
        finally:
            if theirs is not None:
                theirs.close()

    def _failed(self, why: str) -> SpawnFailed:
        return SpawnFailed(nothing_ran(self._request, Outcome.FAILED_TO_START, why))

    async def on_asyncio(self, loop: asyncio.AbstractEventLoop) -> Task:
        """Wait for the answer on a running asyncio loop."""
        import asyncio

        answered = loop.create_future()

        def on_readable() -> None:
            if self._read() and not answered.done():
                answered.set_result(None)

        loop.add_reader(self._reply.fileno(), on_readable)
        try:
            async with asyncio.timeout(ANSWER_S):
                await answered
        except TimeoutError:
            self._withdraw()
        except BaseException:  # nobody will know its id
            self._withdraw()
            raise
        finally:
            loop.remove_reader(self._reply.fileno())
            self._reply.close()
        return self._task()

    def on_selector(self) -> Task:
        """Wait for the answer on a loop of its own."""
        loop = SelectorLoop()
        done: list[bool] = []
        loop.add_reader(self._reply.fileno(), lambda: done.append(True) if self._read() else None)

        def give_up() -> None:
            self._withdraw()
            done.append(True)

        loop.call_later(ANSWER_S, give_up)
        try:
            loop.run_until(lambda: bool(done))
        except BaseException:
            self._withdraw()
            raise
        finally:
            self._reply.close()
        return self._task()

    def _withdraw(self) -> None:
        """Tell the supervisor, whenever it hears of it, that the task is not wanted any more."""
        self._answer = b""
        with suppress(OSError):
            self._reply.send(WITHDRAWN)

    def _read(self) -> bool:
        """Read what there is; True when all was said."""
        try:
            data = self._reply.recv(65536)
        except OSError:
            data = b""
        self._answer += data
        return not data or any(word in self._answer for word in _LAST_WORDS)

    def _task(self) -> Task:
        """Return the task of the answer.

        Raises:
            SandboxUnavailable: The kernel cannot do what the policy asks for.
            SpawnFailed: The command could not be started.
        """
        try:
            answer = json.loads(self._answer.splitlines()[-1])
        except (ValueError, IndexError):
            raise self._failed(
                "its supervisor has failed: see whether this machine has room"
            ) from None
        if "unavailable" in answer:
            raise SandboxUnavailable(answer["unavailable"])
        if "failed" in answer:
            raise self._failed(str(answer["failed"]))
        return Task(self._shelf, answer["id"])
