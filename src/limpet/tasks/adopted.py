"""A task that a host has started, and its supervisor goes on with."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from limpet.output.capture import Capture, Pipe
from limpet.tasks import takeover
from limpet.tasks.order import HELD, Adopted, Order
from limpet.tasks.record import OUTPUT, Mark, TaskStatus
from limpet.tasks.supervisor import Groundwork, Supervisor

if TYPE_CHECKING:
    from limpet.sandbox.broker import Estate


class AdoptedTask(Supervisor):
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
        self._update(begun.with_shell(shell, adopted.child))
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
