"""A task's supervisor: a process of its own that keeps its output and sees its end.

It is forked by the nursery, in a session of its own, and does not know whether the host is alive.
It starts the command itself (`started`), or goes on with what the host has started (`adopted`).
"""

from __future__ import annotations

import os
import signal
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from limpet.loop import SelectorLoop
from limpet.output.spill import CappedFile
from limpet.process import reap
from limpet.tasks import reader, record
from limpet.tasks.order import Order, describe
from limpet.tasks.record import OUTPUT, End, Mark, Record, TaskStatus
from limpet.tasks.shelf import Shelf

_MEASURE_AFTER = 1 << 20
"""An output that stays short is not worth a look at all others."""
_ROOM_FOR_NOTES = 512
_WRITE_TRIES = 600
"""How often, once a second, the last record is tried to be written."""


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


class Supervisor(ABC):
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

    @abstractmethod
    def run(self, descriptors: list[int]) -> None:
        """See to the task until it has ended."""

    @abstractmethod
    def stop(self) -> None:
        """End the task."""

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

    def _update(self, changed: Record) -> None:
        """Record what has changed, and have room for the last record again."""
        self._record = changed
        if self._directory is not None:
            with suppress(OSError):  # the disk is full: the record that there is still holds
                record.write(self._directory, changed)
            record.reserve(self._directory, changed)

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
