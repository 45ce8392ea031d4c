"""`Task`: a handle on a background task, for any program, whoever has started it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, TypeVar, Unpack

from limpet.loop import GuardedLoop, Loop, SelectorLoop
from limpet.tasks import input as typing_
from limpet.tasks import record
from limpet.tasks.reader import Output, Reading, read
from limpet.tasks.record import INPUT, OUTPUT, State, TaskStatus
from limpet.tasks.screen import Screen, draw
from limpet.tasks.shelf import Shelf
from limpet.tasks.stop import Stopped, Stopping
from limpet.tasks.wait import Until, Waited, Waiting, check_wait, conditions

if TYPE_CHECKING:
    import asyncio

_Value = TypeVar("_Value")
_Begin = Callable[[Loop, Callable[[_Value], None]], "_Machine"]
"""Begins something on a loop that calls back once."""


class _OtherPart(TypedDict, total=False):
    """All of `Part` but for the cursor, which is also the first argument."""

    last: int | None
    lines: tuple[int, int] | None
    search: str | re.Pattern[str] | None
    context: int
    limit: int
    cut_mark: str | None


class _Machine(Protocol):
    def close(self) -> None:
        """Go on no more."""


class Task:
    """One background task. It keeps nothing but the id: all else is asked of the disk each time."""

    def __init__(self, shelf: Shelf, task_id: str) -> None:
        """Find a task.

        Raises:
            TaskNotFound: There is none of that id, or it is no id.
        """
        self._shelf = shelf
        self._directory = shelf.find(task_id)
        self.id = task_id
        self.output_path = str(self._directory / OUTPUT)
        """All that it has written, raw; when it has ended, with a line at the end that says how."""

    def __repr__(self) -> str:
        return f"<Task {self.id}: {self.status}>"

    def state(self) -> State:
        """Return its record and its status, as they are now.

        Raises:
            OSError: It was removed.
        """
        return record.state_of(str(self._directory))

    @property
    def status(self) -> TaskStatus:
        """What it is doing, or how it ended."""
        return self.state().status

    @property
    def pid(self) -> int:
        """Its shell's."""
        return self.state().record.shell.pid

    @property
    def pgid(self) -> int:
        """Its process group: `kill -9 -<pgid>` ends it, and is recorded."""
        return self.pid

    @property
    def command(self) -> str:
        """What it runs."""
        return self.state().record.command

    @property
    def exit_code(self) -> int | None:
        """Its shell's exit code, 128+n after signal n; None as long as there is none."""
        end = self.state().record.end
        return None if end is None else end.exit_code

    def to_dict(self) -> dict[str, Any]:
        """Return all that is known of it, as JSON-ready values."""
        return record.to_dict(self.state(), self.output_path)

    # Reading

    def output(self, cursor: int | None = None, **part: Unpack[_OtherPart]) -> Reading:
        """Return what it has printed, cleaned and bounded; it can be awaited, too.

        Args:
            cursor: From here on, as an earlier reading returned it: nothing twice, nothing missed.
            **part: See `Part`: `last`, `lines`, `search`, `context`, `limit`.

        Raises:
            OSError: It was removed.
            ValueError: An argument is out of range, or more than one way is asked for.
        """
        with self._open() as output:
            return read(output, {"cursor": cursor, **part})

    def _open(self) -> Output:
        output = Output(self.output_path)
        try:
            state = self.state()
        except BaseException:
            output.__exit__()
            raise
        if state.status is not TaskStatus.RUNNING:
            output.ends(None if state.record.end is None else state.record.end.output_bytes)
        return output

    def screen(self) -> Screen:
        """Return what a person would see on its terminal; ValueError if it has none."""
        found = self.state().record
        if found.input != "terminal":
            raise ValueError(f"{self.id} has no terminal: start it with pty=True")
        with self._open() as output:
            return draw(output, found.columns, found.rows)

    # Waiting

    async def wait(
        self,
        until: Until | Iterable[Until] = "exit",
        timeout_s: float | None = None,
        *,
        cursor: int | None = None,
    ) -> Waited:
        """Wait for its end, for quiet, a line or a port, and return what matched and what is new.

        Args:
            until: `exit`, `quiet:SECONDS`, `/REGEX/`, `port:NUMBER`, a pattern, or several of them;
                its end ends every wait.
            timeout_s: How long at most; 600 if nothing is said.
            cursor: From where on output is new, and looked through for a line; else from the start.

        Raises:
            OSError: It was removed.
            ValueError: There is no such condition.
        """
        return await wait_for([(self, cursor)], until, timeout_s)

    def wait_sync(
        self,
        until: Until | Iterable[Until] = "exit",
        timeout_s: float | None = None,
        *,
        cursor: int | None = None,
    ) -> Waited:
        """Do the same without an event loop, blocking the thread."""
        return wait_for_sync([(self, cursor)], until, timeout_s)

    # Typing

    async def send(
        self, text: str | bytes = "", *, key: str | None = None, eof: bool = False
    ) -> None:
        """Type text, then a key (`ctrl-c`, `enter`, `up` …), then the end of the input.

        On a terminal a key is what it sends; without one `ctrl-c` is a signal, and `ctrl-d` is the
        end of the input.

        Raises:
            ValueError: It takes no input, or no more; or there is no such key.
        """
        _check_sent(await _on_asyncio(self._sending(text, key, eof=eof)), self.id)

    def send_sync(
        self, text: str | bytes = "", *, key: str | None = None, eof: bool = False
    ) -> None:
        """Do the same without an event loop, blocking the thread."""
        _check_sent(_on_selector(self._sending(text, key, eof=eof)), self.id)

    def _sending(
        self, text: str | bytes, key: str | None, *, eof: bool
    ) -> _Begin[Exception | None]:
        if self.state().record.input == "none":
            raise ValueError(f"{self.id} takes no input: start it with stdin=True or pty=True")
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        frames = typing_.text_frames(data)
        if key is not None:
            frames.append(typing_.key_frame(key))
        if eof:
            frames.append(typing_.end_frame())
        place = self._directory / INPUT
        return lambda loop, on_done: typing_.Sending(loop, place, frames, on_done)

    async def resize(self, columns: int, rows: int) -> None:
        """Give its terminal another size.

        Raises:
            ValueError: It has no terminal, or has ended.
        """
        if self.state().record.input != "terminal":
            raise ValueError(f"{self.id} has no terminal: start it with pty=True")
        frames = [typing_.size_frame((columns, rows))]
        place = self._directory / INPUT

        def begin(loop: Loop, on_done: Callable[[Exception | None], None]) -> _Machine:
            return typing_.Sending(loop, place, frames, on_done)

        _check_sent(await _on_asyncio(begin), self.id)

    # Stopping

    async def stop(self) -> Stopped:
        """End it: SIGTERM, a grace, SIGKILL, a sweep; then say what was done.

        To stop it twice, or when it has ended, does nothing, and says so.

        Raises:
            OSError: It was removed.
        """
        return _value(await _on_asyncio(self.stopping()))

    def stop_sync(self) -> Stopped:
        """Do the same without an event loop, blocking the thread."""
        return _value(_on_selector(self.stopping()))

    def stopping(self) -> _Begin[Stopped | OSError]:
        """Return what begins to stop it on any loop."""
        return lambda loop, on_done: Stopping(loop, self._shelf, self._directory, on_done)

    @property
    def directory(self) -> str:
        """Where its files are."""
        return str(self._directory)


async def wait_for(
    tasks: Iterable[tuple[Task, int | None]],
    until: Until | Iterable[Until],
    timeout_s: float | None,
) -> Waited:
    """Wait for the first of several tasks to meet a condition."""
    return _value(await _on_asyncio(_waiting(tasks, until, timeout_s)))


def wait_for_sync(
    tasks: Iterable[tuple[Task, int | None]],
    until: Until | Iterable[Until],
    timeout_s: float | None,
) -> Waited:
    """Do the same without an event loop, blocking the thread."""
    return _value(_on_selector(_waiting(tasks, until, timeout_s)))


def stop_all_sync(tasks: Iterable[Task]) -> list[Stopped]:
    """Stop several tasks, all at once, and return what that came to, in the same order."""
    loop = SelectorLoop()
    found: dict[str, Stopped | OSError] = {}
    wanted = {task.id: task for task in tasks}

    def begin(task: Task) -> _Machine:
        def on_done(stopped: Stopped | OSError) -> None:
            found[task.id] = stopped

        return task.stopping()(loop, on_done)

    machines = [begin(task) for task in wanted.values()]
    try:
        loop.run_until(lambda: len(found) == len(wanted))
    finally:
        for machine in machines:
            machine.close()
    return [_value(found[task_id]) for task_id in wanted]


def _waiting(
    tasks: Iterable[tuple[Task, int | None]],
    until: Until | Iterable[Until],
    timeout_s: float | None,
) -> _Begin[Waited | OSError]:
    places = [(Path(task.directory), cursor) for task, cursor in tasks]
    if not places:
        raise ValueError("there is no task to wait for")
    what, most_s = conditions(until), check_wait(timeout_s)
    return lambda loop, on_done: Waiting(loop, places, what, most_s, on_done)


def _check_sent(error: Exception | None, task_id: str) -> None:
    if error is not None:
        raise ValueError(f"{task_id} takes no input: {error}")


def _value(value: _Value | OSError) -> _Value:
    if isinstance(value, OSError):
        raise value
    return value


async def _on_asyncio(begin: _Begin[_Value]) -> _Value:
    """Have something done on the running loop, and return what it calls back with."""
    import asyncio

    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Value] = loop.create_future()

    def on_done(value: _Value) -> None:
        if not done.done():
            done.set_result(value)

    def on_error(error: Exception) -> None:
        if not done.done():
            done.set_exception(error)

    machine = begin(GuardedLoop(loop, on_error), on_done)
    try:
        return await done
    finally:
        machine.close()


def _on_selector(begin: _Begin[_Value]) -> _Value:
    """Do the same on a loop of its own."""
    loop = SelectorLoop()
    done: list[_Value] = []
    machine = begin(loop, done.append)
    try:
        loop.run_until(lambda: bool(done))
    finally:
        machine.close()
    return done[0]
