"""A run that is over for its caller becomes a task: handed over to a supervisor, byte for byte."""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
import time
from contextlib import ExitStack

from limpet.handover import Handover
from limpet.launch import Launched
from limpet.process import env, reap
from limpet.tasks import nursery, record
from limpet.tasks.order import Adopted, Order, describe
from limpet.tasks.record import OUTPUT, Mark
from limpet.tasks.shelf import Shelf


def adopt(handover: Handover, session_id: str | None) -> str:
    """Make a task of what a run leaves, and return its id.

    Raises:
        OSError: It cannot be done; nothing has changed.
    """
    shelf = Shelf.of_this_user()
    request, child = handover.request, handover.launched.child
    if not shelf.has_room(request.policy):
        raise OSError(f"{request.policy.max_tasks} tasks are running: stop one first")
    task_id, draft = shelf.draft()
    log = handover.log
    marks = tuple(Mark.of(process) for process in handover.processes)
    started_at = time.time() - (time.monotonic() - handover.launched.started_s)
    confinement = handover.launched.confinement
    estate, heirlooms = (confinement and confinement.estate()) or (None, ())
    order = Order(
        shelf=str(shelf.path),
        environment=env.host_environment(),
        request=request._replace(stdin=None),
        timeout_s=None,
        origin=handover.origin,
        session_id=session_id,
        host=os.getpid(),
        adopted=Adopted(
            task_id,
            child,
            started_at,
            marks,
            tuple(pipe.mask for pipe in handover.pipes),
            estate,
        ),
    )
    shell = next((mark for mark in marks if mark.pid == child.pid), Mark(child.pid, 0))
    with ExitStack() as on_failure:
        on_failure.callback(_undo, shelf, task_id, handover, str(log.path))
        read_end, write_end = os.pipe()
        on_failure.callback(os.close, read_end)
        with ExitStack() as on_sent:
            on_sent.callback(os.close, write_end)
            # Whoever has this file open runs the task, and it is on its way to the supervisor.
            fcntl.flock(log.fd, fcntl.LOCK_EX)
            os.rename(log.path, draft / OUTPUT)  # noqa: PTH104 -- its own path stays as it is
            begun = describe(order, task_id, started_at, Mark(0, 0))
            record.write(draft, begun.with_shell(shell, child))
            shelf.note_start(task_id)
            sent = [write_end, log.fd, *(pipe.fd for pipe in handover.pipes)]
            if estate is not None:
                host = os.pidfd_open(os.getpid())
                on_sent.callback(os.close, host)
                sent += [host, *heirlooms]
            # Before this there is no task, and after it there is one, whatever becomes of us.
            nursery.send(order, sent)
        on_failure.pop_all()
    log.path = shelf.publish(task_id, draft) / OUTPUT
    if handover.origin == "promoted":
        _leave(handover.launched, read_end)
    else:
        os.close(read_end)
    return task_id


def _undo(shelf: Shelf, task_id: str, handover: Handover, was_at: str) -> None:
    draft = shelf.path / f".{task_id}"
    if (draft / OUTPUT).exists():
        (draft / OUTPUT).rename(was_at)
    shutil.rmtree(draft, ignore_errors=True)
    shelf.note_end(task_id)
    shelf.claim(task_id)


def _leave(launched: Launched, done: int) -> None:
    """Let the shell go on, and reap it when its supervisor has seen how it ended.

    Until then it stays a zombie: from that, and from nothing else, can a program that is not its
    parent tell its exit code on every kernel.
    """
    pid = launched.child.pid
    reap.let_go(pid)

    def wait() -> None:
        os.read(done, 1)
        os.close(done)
        reap.reap_late(pid)
        launched.close()

    threading.Thread(target=wait, name=f"limpet-task-{pid}", daemon=True).start()
