"""A task's supervisor: a process of its own that starts it, keeps its output, and sees its end.

It is forked by the nursery, in a session of its own, and does not know whether the host is alive.
The command is its child, so its exit code is known; what the command leaves behind becomes its
child too, so nothing escapes it.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import struct
import termios
import time
import traceback
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from limpet.errors import SandboxUnavailable
from limpet.launch import Request, Terminal
from limpet.loop import SelectorLoop
from limpet.output.capture import Capture, Pipe
from limpet.output.spill import OPEN_FLAGS, CappedFile
from limpet.policy import Policy
from limpet.process import env, reap
from limpet.process.table import NOBODY, look_up, now_ticks
from limpet.result import Outcome, Result
from limpet.run import Run
from limpet.tasks import reader, record, takeover
from limpet.tasks.input import Keyboard
from limpet.tasks.order import HELD, WITHDRAWN, Adopted, Order, describe
from limpet.tasks.record import INPUT, OUTPUT, End, Mark, Record, TaskStatus
from limpet.tasks.shelf import Shelf

if TYPE_CHECKING:
    from limpet.sandbox.broker import Estate

FOREVER_S = 1e9
"""A task without a time limit has one of thirty years."""
_MEASURE_AFTER = 1 << 20
"""An output that stays short is not worth a look at all others."""
_ROOM_FOR_NOTES = 512
_WRITE_TRIES = 600
_STATUS = {
    Outcome.EXITED: TaskStatus.EXITED,
    Outcome.SIGNALED: TaskStatus.SIGNALED,
    Outcome.TIMED_OUT: TaskStatus.TIMED_OUT,
    Outcome.CANCELLED: TaskStatus.STOPPED,
}


class Groundwork(NamedTuple):
    """What a supervisor has ready before it knows its task."""

    loop: SelectorLoop
    signals: int
    """What can be read when there was a signal: it is dealt with in the loop."""

    @classmethod
    def lay(cls) -> Groundwork:
        """Make it."""
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        os.set_blocking(write_end, False)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        return cls(SelectorLoop(), read_end)


def supervise(order: Order, descriptors: list[int], groundwork: Groundwork) -> None:
    """See to one task, until it has ended."""
    env.become(order.environment)
    supervisor = (
        _Started(order, groundwork)
        if order.adopted is None
        else _Adopted(order, groundwork, order.adopted)
    )
    try:
        supervisor.run(descriptors)
    except Exception:
        supervisor.give_up(traceback.format_exc(limit=-3))


def rehearse(order: Order, groundwork: Groundwork) -> None:
    """Do as much of a start as leaves no trace."""
    started = _Started(order, groundwork)
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


class _Supervisor:
    """What is the same for tasks that it has started, and for those that it has taken over."""

    def __init__(self, order: Order, groundwork: Groundwork) -> None:
        self._order = order
        self._policy = order.request.policy
        self._shelf = Shelf(Path(order.shelf))
        self._loop, self._signals = groundwork
        self._directory: Path | None = None
        self._record: Record | None = None
        self._log: CappedFile | None = None
        self._lock = -1
        """As long as it is open, the task is said to run."""
        self._notes = -1
        """The output file again, for the note of the end."""
        self._is_done = False
        self._shell = 0
        self._loop.add_reader(self._signals, self._on_signal)

    def run(self, descriptors: list[int]) -> None:
        """See to the task until it has ended."""
        raise NotImplementedError

    def stop(self) -> None:
        """End the task."""
        raise NotImplementedError

    def _on_signal(self) -> None:
        """Stop on SIGTERM, and reap orphans."""
        received = b""
        with suppress(BlockingIOError):
            received = os.read(self._signals, 4096)
        if signal.SIGTERM in received:
            self.stop()
        if self._shell:
            reap.reap_all_but(self._shell)

    def _take_log(self, fd: int, path: Path) -> CappedFile:
        os.fchmod(fd, 0o600)
        policy = self._policy.output
        # Room for what the file says of its cap, and of the end.
        room = max(policy.spill_bytes - _ROOM_FOR_NOTES, policy.spill_bytes // 2)
        said = f"{room} bytes"
        self._log = CappedFile(
            fd,
            path,
            replace(policy, spill_bytes=room),
            self._shelf,
            measure_after=_MEASURE_AFTER,
            last_words=lambda cap: (
                "\n[limpet: the output has reached its cap of"
                f" {cap.replace(said, f'{policy.spill_bytes} bytes')}; what follows is not kept]\n"
            ).encode(),
        )
        self._notes = os.dup(fd)
        return self._log

    def describe(self, task_id: str, started_at: float) -> Record:
        """Return what is known of the task before it begins."""
        return describe(self._order, task_id, started_at, Mark.of_this())

    def _conclude(self, end: End) -> None:
        """Record the end, then add the note of it to the output, then let others go on."""
        if self._directory is None or self._record is None:
            self._is_done = True
            return
        path = self._directory / OUTPUT
        is_capped = self._log is not None and self._log.is_capped
        end = end._replace(last_line=reader.last_line(str(path)), is_capped=is_capped)
        self._write_last(self._record._replace(end=end))
        self._is_done = True
        with suppress(OSError):  # a full disk
            newline = "" if reader.ends_a_line(str(path), end.output_bytes) else "\n"
            os.write(self._notes, (newline + record.note_of(end)).encode())
        self._shelf.note_end(self._record.id)
        os.close(self._lock)
        self._shelf.sweep(self._policy)

    def _write_last(self, last: Record) -> None:
        """Write the last record; on a disk that is full for a while, when it no longer is."""
        assert self._directory is not None  # noqa: S101 -- for the type checker
        for _ in range(_WRITE_TRIES):
            try:
                record.write(self._directory, last)
            except FileNotFoundError:
                return  # somebody has removed it
            except OSError:
                time.sleep(1.0)
            else:
                return

    def give_up(self, why: str) -> None:
        """Say that this supervisor has failed; its processes are ended, if they can be."""
        if self._record is None or self._is_done:
            return
        size = self._log.size if self._log is not None else 0
        self._conclude(self._end_of(TaskStatus.LOST, f"its supervisor has failed: {why}", size))

    def _end_of(self, status: TaskStatus, reason: str | None, output_bytes: int) -> End:
        started_at = self._record.started_at if self._record is not None else time.time()
        now = time.time()
        return End(
            status=status,
            exit_code=None,
            signal=None,
            reason=reason,
            ended_at=now,
            duration_s=max(0.0, now - started_at),
            output_bytes=output_bytes,
            last_line="",
        )


def _too_many(policy: Policy) -> dict[str, object]:
    return {
        "failed": f"{policy.max_tasks} tasks are running, which is as many as may"
        " (max_tasks): stop one first"
    }


class _Started(_Supervisor):
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
            self._record = self._record._replace(shell=Mark.of(shell))
            with suppress(OSError):
                record.write(self._directory, self._record)
            record.reserve(self._directory, self._record)
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
        if self._record is not None and self._directory is not None:
            self._record = self._record._replace(columns=columns, rows=rows)
            record.write(self._directory, self._record)

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


class _Adopted(_Supervisor):
    """Goes on with what the host has started."""

    def __init__(self, order: Order, groundwork: Groundwork, adopted: Adopted) -> None:
        super().__init__(order, groundwork)
        self._adopted = adopted
        self._takeover: takeover.Takeover | None = None

    def stop(self) -> None:
        """End the task."""
        if self._takeover is not None:
            self._takeover.stop(self._policy.kill_grace_s)

    def run(self, descriptors: list[int]) -> None:
        """See to the task until it has ended; then the host may reap its shell."""
        adopted = self._adopted
        sent: dict[str, list[int]] = {}
        for what, fd in zip(adopted.sent, descriptors, strict=True):
            sent.setdefault(what, []).append(fd)
        (done,), (self._lock,), (log_fd,) = sent["done"], sent["lock"], sent["log"]
        # The host may have been killed before it could do so.
        draft = self._shelf.path / f".{adopted.task_id}"
        self._directory = directory = self._shelf.publish(adopted.task_id, draft)
        log = self._take_log(log_fd, directory / OUTPUT)
        mark = next((m for m in adopted.processes if m.pid == adopted.child.pid), None)
        shell = mark or Mark(adopted.child.pid, 0)
        begun = self.describe(adopted.task_id, adopted.started_at)
        self._record = begun.with_shell(shell, adopted.child)
        with suppress(OSError):  # that of the host says nearly the same
            record.write(directory, self._record)
        record.reserve(directory, self._record)
        pipes = []
        for fd, mask in zip(sent.get("pipe", ()), adopted.masks, strict=True):
            pipe = Pipe(fd, "stdout")
            pipe.mask = mask
            pipes.append(pipe)
        found = [mark.find() for mark in adopted.processes]
        self._takeover = takeover.Takeover(
            self._loop,
            adopted.child,
            [process for process in found if process is not None],
            (adopted.told, next(iter(sent.get("told", ())), -1)),
            pipes,
            Capture(adopted.child.run_id, self._policy.output, log=log),
            self._on_outcome,
        )
        with suppress(BrokenPipeError):  # the host has ended meanwhile
            os.write(done, HELD)
        if adopted.estate is not None:
            self._inherit(adopted.estate, *sent["host"], *sent["listener"], *sent["sockets"])
        self._loop.run_until(lambda: self._is_done)
        os.close(done)
        if adopted.temp is not None:
            from limpet.sandbox.jail import remove_unused

            os.close(*sent["temp"])
            remove_unused(adopted.temp)

    def _inherit(self, estate: Estate, host: int, listener: int, sockets: int) -> None:
        """When the host has ended, do what it did for the jail."""

        def on_end() -> None:
            self._loop.remove_reader(host)
            estate.take(listener, sockets)

        self._loop.add_reader(host, on_end)

    def _on_outcome(self, outcome: takeover.Outcome) -> None:
        if outcome.stopped_with:
            status = TaskStatus.STOPPED
        else:
            status = TaskStatus.SIGNALED if outcome.signal else TaskStatus.EXITED
        reasons = []
        if outcome.left:
            pids = ", ".join(str(process.pid) for process in outcome.left)
            reasons.append(f"not even SIGKILL ended {pids}")
        if outcome.exit_code is None:
            reasons.append("its exit code is not known: it was not a child of its supervisor")
        if self._log is not None and self._log.error is not None:
            reasons.append(f"the full output could not be saved: {self._log.error}")
        size = self._log.size if self._log is not None else 0
        end = self._end_of(status, "; ".join(reasons) or None, size)
        self._conclude(
            end._replace(
                exit_code=outcome.exit_code,
                signal=outcome.signal,
                stopped_with=outcome.stopped_with,
            )
        )
