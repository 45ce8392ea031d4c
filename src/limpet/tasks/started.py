"""A task that its supervisor starts itself.

The command is the supervisor's child, so its exit code is known; what the command leaves behind
becomes its child too, so nothing escapes it.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import termios
import time
import traceback
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from limpet.errors import SandboxUnavailable
from limpet.launch import Request, Terminal
from limpet.output.spill import OPEN_FLAGS
from limpet.policy import Policy
from limpet.process import env, reap
from limpet.process.table import NOBODY, look_up, now_ticks
from limpet.result import Outcome, Result
from limpet.run import Run
from limpet.tasks import record
from limpet.tasks.keyboard import Keyboard
from limpet.tasks.order import WITHDRAWN, Order
from limpet.tasks.record import INPUT, OUTPUT, Mark, TaskStatus
from limpet.tasks.supervisor import Groundwork, Supervisor

FOREVER_S = 1e9
"""A task without a time limit has one of thirty years."""
_STATUS = {
    Outcome.EXITED: TaskStatus.EXITED,
    Outcome.SIGNALED: TaskStatus.SIGNALED,
    Outcome.TIMED_OUT: TaskStatus.TIMED_OUT,
    Outcome.CANCELLED: TaskStatus.STOPPED,
}


def _too_many(policy: Policy) -> dict[str, object]:
    return {
        "failed": f"{policy.max_tasks} tasks are running, which is as many as may"
        " (max_tasks): stop one first"
    }


class Started(Supervisor):
    """Starts the task itself."""

    def __init__(self, order: Order, groundwork: Groundwork) -> None:
        super().__init__(order, groundwork)
        self._run: Run | None = None
        self._result: Result | None = None
        self._keyboard: Keyboard | None = None
        self._host: socket.socket
        self._terminal: Terminal | None = None

    def stop(self) -> None:
        """End the task."""
        if self._run is not None:
            self._run.cancel()

    def run(self, descriptors: list[int]) -> None:
        """Start the task, tell the host, and see to it until it has ended."""
        reply, *others = descriptors
        self._host = socket.socket(fileno=reply)
        self._host.setblocking(False)
        if self._hear() == WITHDRAWN:
            return
        try:
            answer = self._start(others)
        except SandboxUnavailable as error:
            answer = {"unavailable": str(error)}
        except OSError as error:
            answer = {"failed": f"the task has no place to live: {error}"}
        self._say(answer)
        if self._record is None or self._directory is None:
            return
        self._loop.add_reader(reply, self._on_host)
        # To be told of a process that has just begun takes as long as all of the above.
        if not self._is_done and (shell := look_up(self._shell)) is not None:
            self._update(self._record._replace(shell=Mark.of(shell)))
        self._loop.run_until(lambda: self._is_done)

    def _say(self, answer: dict[str, object]) -> None:
        with suppress(OSError):  # the host has ended meanwhile, which is no concern of ours
            self._host.send(json.dumps(answer).encode() + b"\n")

    def _hear(self) -> bytes | None:
        """Return what the host says; empty if it has gone; None if it is silent."""
        try:
            return self._host.recv(1)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def _on_host(self) -> None:
        """Stop what the host does not want any more; but if it was killed, go on."""
        said = self._hear()
        if said is not None:
            self._loop.remove_reader(self._host.fileno())
            self._host.close()
        if said == WITHDRAWN:
            self.stop()

    def _start(self, descriptors: list[int]) -> dict[str, object]:
        policy = self._policy
        if not self._shelf.has_room(policy):
            return _too_many(policy)
        task_id, draft = self._shelf.draft()
        try:
            self._lock = record.take_lock(draft)
            path = self._shelf.path / task_id / OUTPUT
            log = self._take_log(os.open(draft / OUTPUT, OPEN_FLAGS, 0o600), path)
            begun = self.describe(task_id, time.time())
            request = self._request(draft, descriptors)
            self._run = Run(self._loop, request, self._on_result, self._on_crash, log=log)
            child = reap.Child(NOBODY, self._run.run_id, now_ticks())
            record.write(draft, begun.with_shell(Mark(NOBODY, 0), child))
            self._shelf.note_start(task_id)
            directory = self._shelf.publish(task_id, draft)
            if self._shelf.running() > policy.max_tasks:  # others have begun at the same moment
                return _too_many(policy)
            # From here on it is a task, even if this process should be killed by what it starts.
            self._say({"id": task_id})
            self._run.start()
            self._close_their_ends(request)
            if self._run.child is None:
                return {"failed": self._result.hint if self._result is not None else None}
            self._shell = self._run.child.pid
            self._record = begun.with_shell(Mark(self._shell, 0), self._run.child)
            record.write(directory, self._record)
            self._directory = directory
        except BaseException:
            self._abandon()
            raise
        finally:
            if self._directory is None:
                self._shelf.withdraw(task_id)
        if self._result is not None:
            self._finish(self._result)
        return {"id": task_id, "pid": self._shell}

    def _abandon(self) -> None:
        """End what was started, but could not become a task."""
        self._record = None
        if self._run is not None and self._run.child is not None and self._result is None:
            self._run.cancel()
            self._loop.run_until(lambda: self._result is not None)

    def _request(self, draft: Path, descriptors: list[int]) -> Request:
        order = self._order
        output = order.request.policy.output
        request = order.request._replace(
            # It is over when nothing of it is left, and not when its shell has ended.
            policy=replace(
                self._policy, survivors="wait", output=replace(output, streams="merged")
            ),
            timeout_s=order.timeout_s or FOREVER_S,
            reaper=os.getpid(),
        )
        if order.terminal is not None:
            self._terminal = Terminal(*os.openpty())
            self._resize(*order.terminal)
            self._listen(draft, os.dup(self._terminal.ours), is_terminal=True)
            return request._replace(terminal=self._terminal)
        if order.has_input:
            read_end, write_end = os.pipe()
            self._listen(draft, write_end, is_terminal=False)
            return request._replace(stdin=read_end)
        return request._replace(stdin=descriptors[0]) if descriptors else request

    def _listen(self, draft: Path, target: int, *, is_terminal: bool) -> None:
        self._keyboard = Keyboard(
            self._loop,
            draft / INPUT,
            target,
            is_terminal=is_terminal,
            on_signal=lambda number: reap.kill_group(self._shell, number),
            on_size=self._resize,
        )

    def _resize(self, columns: int, rows: int) -> None:
        if self._terminal is not None:
            size = struct.pack("HHHH", rows, columns, 0, 0)
            fcntl.ioctl(self._terminal.ours, termios.TIOCSWINSZ, size)
        if self._record is not None:
            self._update(self._record._replace(columns=columns, rows=rows))

    def _close_their_ends(self, request: Request) -> None:
        """Close what is the command's, or its terminal and its input would never end."""
        if request.terminal is not None:
            os.close(request.terminal.theirs)
        elif isinstance(request.stdin, int):
            os.close(request.stdin)

    def _on_crash(self, error: Exception) -> None:
        self.give_up("".join(traceback.format_exception(error, limit=-3)))
        self._is_done = True

    def _on_result(self, result: Result) -> None:
        self._result = result
        if self._directory is not None:
            self._finish(result)

    def _finish(self, result: Result) -> None:
        if self._keyboard is not None:
            self._keyboard.close()
        is_over = result.outcome is Outcome.CANCELLED and not result.survivors
        reason = None if is_over else result.hint
        end = self._end_of(_STATUS[result.outcome], reason, self._log.size if self._log else 0)
        usage = result.usage
        self._conclude(
            end._replace(
                exit_code=result.exit_code,
                signal=result.signal,
                duration_s=result.duration_s,
                stopped_with=self._run.stopped_with if self._run is not None else None,
                cpu_s=usage.cpu_s if usage is not None else None,
                peak_memory_bytes=usage.peak_memory_bytes if usage is not None else None,
            )
        )


def rehearse(order: Order, groundwork: Groundwork) -> None:
    """Do as much of a start as leaves no trace."""
    started = Started(order, groundwork)
    groundwork.loop.remove_reader(groundwork.signals)
    begun = started.describe("bash-000000", time.time())
    child = reap.Child(NOBODY, "0" * 16, now_ticks())
    record.encode(begun.with_shell(Mark(NOBODY, 0), child))
    request = order.request
    env.build(request.policy.environment, request.inherited, request.env, child.run_id, "/")
    Run(groundwork.loop, request, print, print)
    with suppress(OSError):
        record.read("/")
    with suppress(OSError):
        record.take_lock(Path("/dev/null"))
    record.is_supervised("/")
