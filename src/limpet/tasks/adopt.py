"""A run that is over for its caller becomes a task: handed over to a supervisor, byte for byte."""

from __future__ import annotations

import os
import select
import threading
import time
from contextlib import ExitStack, suppress

from limpet.handover import Handover
from limpet.launch import Launched
from limpet.process import env, reap
from limpet.tasks import nursery, record
from limpet.tasks.order import HELD, Adopted, Order, describe
from limpet.tasks.record import OUTPUT, Mark
from limpet.tasks.shelf import Shelf


def adopt(handover: Handover, session_id: str | None) -> str:
    """Make a task of what a run leaves, and return its id.

    Raises:
        OSError: It cannot be done; nothing has changed.
    """
    shelf = Shelf.of_this_user()
    request, launched, log = handover.request, handover.launched, handover.log
    if not shelf.has_room(request.policy):
        raise OSError(f"{request.policy.max_tasks} tasks are running: stop one first")
    task_id, draft = shelf.draft()
    with ExitStack() as on_failure:
        on_failure.callback(_undo, shelf, task_id, handover, str(log.path))
        escort = _Escort(handover)
        on_failure.callback(escort.close)
        escort.keep("lock", record.take_lock(draft))
        os.rename(log.path, draft / OUTPUT)  # noqa: PTH104 -- its own path stays as it is
        escort.keep("log", os.dup(log.fd))
        for pipe in handover.pipes:
            escort.keep("pipe", os.dup(pipe.fd))
        order = escort.order(shelf, task_id, session_id)
        begun = describe(order, task_id, _started_at(launched), Mark(0, 0))
        shell = next((m for m in escort.marks if m.pid == launched.child.pid), None)
        record.write(draft, begun.with_shell(shell or Mark(launched.child.pid, 0), launched.child))
        shelf.note_start(task_id)
        # Before this there is no task, and after it there is one, whatever becomes of us.
        escort.send()
        on_failure.pop_all()
    log.path = shelf.publish(task_id, draft) / OUTPUT
    if handover.origin == "promoted":
        reap.let_go(launched.child.pid)
    escort.start()
    return task_id


def _started_at(launched: Launched) -> float:
    return time.time() - (time.monotonic() - launched.started_s)


def _undo(shelf: Shelf, task_id: str, handover: Handover, was_at: str) -> None:
    draft = shelf.path / f".{task_id}"
    if (draft / OUTPUT).exists():
        (draft / OUTPUT).rename(was_at)
    shelf.withdraw(task_id)


class _Escort(threading.Thread):
    """Sees that what is handed over arrives, and reaps the shell when its end is known.

    Until then the shell stays a zombie: from that, and before Linux 6.15 from nothing else, can a
    program that is not its parent tell its exit code.
    """

    def __init__(self, handover: Handover) -> None:
        super().__init__(name="limpet-escort", daemon=True)
        self._handover = handover
        self._kept: list[tuple[str, int]] = []
        self._order: Order | None = None
        self._done = -1
        self.marks = tuple(Mark.of(process) for process in handover.processes)
        self._told = self.marks[0] if handover.origin == "promoted" else None
        if len(self.marks) == 1:
            self._told = self.marks[0]

    def keep(self, what: str, fd: int) -> None:
        """Take a descriptor that is to be handed over, and close it when it was."""
        self._kept.append((what, fd))

    def order(self, shelf: Shelf, task_id: str, session_id: str | None) -> Order:
        """Return what is asked of the supervisor."""
        handover, launched = self._handover, self._handover.launched
        estate = None
        if self._told is not None and hasattr(os, "pidfd_open"):
            with suppress(OSError):
                self.keep("told", os.pidfd_open(self._told.pid))
        if launched.prelude is not None and launched.prelude.reader is not None:
            self.keep("report", os.dup(launched.prelude.reader))
        temp = None
        if launched.confinement is not None and (own := launched.confinement.temp):
            temp, lock = own
            self.keep("temp", os.dup(lock))
        if launched.confinement is not None and (found := launched.confinement.estate()):
            estate, (listener, sockets) = found
            self.keep("host", os.pidfd_open(os.getpid()))
            self.keep("listener", os.dup(listener))
            self.keep("sockets", os.dup(sockets))
        self._order = Order(
            shelf=str(shelf.path),
            environment=env.host_environment(),
            request=handover.request._replace(stdin=None),
            timeout_s=None,
            origin=handover.origin,
            session_id=session_id,
            host=Mark.of_this(),
            adopted=Adopted(
                task_id=task_id,
                child=launched.child,
                started_at=_started_at(launched),
                processes=self.marks,
                told=self._told,
                sent=("done", *(what for what, _ in self._kept)),
                masks=tuple(pipe.mask for pipe in handover.pipes),
                estate=estate,
                temp=temp,
            ),
        )
        return self._order

    def send(self) -> None:
        """Send all of it.

        Raises:
            OSError: It could not be sent.
        """
        assert self._order is not None  # noqa: S101 -- for the type checker
        read_end, write_end = os.pipe()
        try:
            nursery.send(self._order, [write_end, *(fd for _, fd in self._kept)])
        except BaseException:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        self._done = read_end

    def run(self) -> None:
        """Wait for the supervisor's word, and then for its last."""
        launched = self._handover.launched
        if not self._has_arrived():
            os.close(self._done)
            with suppress(OSError):
                nursery.close()
                self.send()
            if not self._has_arrived():
                self._read_on()
        self.close()
        if self._handover.origin == "promoted":
            with suppress(OSError):
                os.read(self._done, 1)
            reap.reap_late(launched.child.pid)
            launched.close()
        with suppress(OSError):
            os.close(self._done)

    def _has_arrived(self) -> bool:
        with suppress(OSError):
            return os.read(self._done, 1) == HELD
        return False

    def _read_on(self) -> None:
        """With nobody to supervise it, at least read what it writes, or it would die of that."""
        log = next(fd for what, fd in self._kept if what == "log")
        masks = {
            fd: pipe.mask
            for fd, pipe in zip(
                (fd for what, fd in self._kept if what == "pipe"), self._handover.pipes, strict=True
            )
        }
        poll = select.poll()
        for fd in masks:
            os.set_blocking(fd, True)
            poll.register(fd, select.POLLIN)
        left = len(masks)
        while left:
            for fd, _ in poll.poll():
                data = os.read(fd, 1 << 16)
                mask = masks[fd]
                with suppress(OSError):
                    os.write(log, data if mask is None else mask.feed(data, final=not data))
                if not data:
                    poll.unregister(fd)
                    left -= 1

    def close(self) -> None:
        """Give up what was to be handed over."""
        for _, fd in self._kept:
            os.close(fd)
        self._kept.clear()
