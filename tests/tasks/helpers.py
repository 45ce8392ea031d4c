"""What the tests of background tasks share: hosts that are killed, and questions about tasks."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from support import marked_processes, wait_until

from limpet.process import table
from limpet.tasks.record import TaskStatus
from limpet.tasks.shelf import Shelf
from limpet.tasks.task import Task
from limpet.tasks.wait import Waited

WITHIN_S = 20.0
"""More than anything here takes on a busy machine."""
NOTE = re.compile(r"\[limpet: [^\n]* after [0-9.]+ s\]\n\Z")
_PREAMBLE = "import asyncio, os, signal, sys, time, limpet\nbash = limpet.Bash()\n"


def ended(task: Task) -> Waited:
    """Return how a task ended, with all that it printed."""
    waited = task.wait_sync(timeout_s=WITHIN_S)
    assert waited.matched == "exit", waited
    return waited


def printed(task: Task, text: str) -> None:
    """Wait until a task has printed some text."""
    waited = task.wait_sync(re.compile(re.escape(text)), timeout_s=WITHIN_S)
    assert waited.matched == "regex", waited


def finished_text(task: Task) -> str:
    """Return the output file of a task that has ended, with the note at its end."""
    path = Path(task.output_path)

    def has_note() -> bool:
        return bool(NOTE.search(path.read_text(errors="replace")))

    assert wait_until(has_note), path.read_bytes()
    return path.read_text(errors="replace")


def without_note(text: str) -> str:
    """Return what a task itself has written."""
    return NOTE.sub("", text)


def supervisor_of(task: Task) -> int:
    """Return the pid of a task's supervisor."""
    assert wait_until(lambda: task.state().record.supervisor.find() is not None)
    return task.state().record.supervisor.pid


def kill_supervisor(task: Task) -> None:
    """Kill a task's supervisor, and wait until the task is known to be lost."""
    assert wait_until(lambda: task.state().record.shell.start_ticks > 0)
    os.kill(supervisor_of(task), signal.SIGKILL)
    assert wait_until(lambda: task.status is not TaskStatus.RUNNING)


def end_all() -> None:
    """End what a test has left running on purpose, or because it failed."""

    def have_ended() -> bool:
        for pid in marked_processes():  # one may have forked since the last look
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return all(one.status is not TaskStatus.RUNNING for one in Shelf.of_this_user().states())

    with suppress(OSError):  # a test without a place for tasks
        wait_until(have_ended)


def host(code: str, **environment: str) -> str:
    """Run Python code in a host of its own, to its end, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", _PREAMBLE + code],
        capture_output=True,
        text=True,
        timeout=WITHIN_S * 2,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def killed_host(code: str, after: str, delay_s: float = 0.0) -> list[str]:
    """Run a host, SIGKILL it some time after it has printed a line, and return all its lines."""
    with subprocess.Popen(
        [sys.executable, "-u", "-c", _PREAMBLE + code], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if lines[-1] == after:
                break
        time.sleep(delay_s)  # the moment at random is what is tested
        process.kill()
        lines += process.stdout.read().splitlines()
    return lines


def random_delays(count: int, at_most_s: float, seed: int) -> list[float]:
    """Return moments to kill a host at, the same in every run."""
    chance = random.Random(seed)  # noqa: S311 -- no secret
    return [chance.uniform(0, at_most_s) for _ in range(count)]


class Stranger:
    """A process that has nothing to do with any task."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(["sleep", "300"], start_new_session=True)
        found = table.look_up(self._process.pid)
        assert found is not None
        self.pid, self.start_ticks = found.pid, found.start_ticks

    def __enter__(self) -> Stranger:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def is_alive(self) -> bool:
        """True unless somebody has ended it."""
        return self._process.poll() is None
