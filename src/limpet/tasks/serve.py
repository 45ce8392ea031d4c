"""The nursery's own side: it has supervisors ready, forked and rehearsed."""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import traceback
from contextlib import suppress

import limpet.hint  # noqa: F401 -- so that not every supervisor has to load it
from limpet.launch import Request
from limpet.loop import SelectorLoop
from limpet.output.capture import Capture, Pipe
from limpet.policy import Policy
from limpet.process import env, kernel, spawn
from limpet.tasks import record
from limpet.tasks.adopted import AdoptedTask
from limpet.tasks.nursery import MOST_DESCRIPTORS
from limpet.tasks.order import Order, pack, unpack, unpack_environment
from limpet.tasks.record import Mark
from limpet.tasks.started import Started, rehearse
from limpet.tasks.supervisor import Groundwork

_READY = 2
"""How many supervisors wait for a task: to fork one takes a part of a task's own start."""
_REHEARSALS = 8
"""So often must a function be called before Python leaves its code as it is."""
_DEATHS_AT_MOST = 3
_NO_MORE = b"-"
_BECOME_REAPER, _SET_NAME = 36, 15


def serve(*, jails: bool) -> None:
    """Be the nursery: have supervisors ready, until the host is gone."""
    if jails:
        import limpet.sandbox.confine  # noqa: F401 -- for the supervisors
        from limpet.sandbox import ground

        # What it tries, it tries in threads; they have ended when this returns, so forking is safe.
        ground.look()
        ground.has_cgroup()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors need nobody to reap them
    signal.signal(signal.SIGINT, lambda *_: None)  # ignored, commands would have to ignore it too
    orders = socket.socket(fileno=os.dup(0))
    _point_to_nothing(0)
    message, descriptors, _, _ = socket.recv_fds(orders, 1, MOST_DESCRIPTORS)
    if not message:
        return
    with open(descriptors[0], "rb") as file:
        env.become(unpack_environment(file.read()))
    groundwork = Groundwork(SelectorLoop(), orders.fileno())
    for _ in range(_REHEARSALS):
        _rehearse(groundwork)
    gc.freeze()  # so that a collection does not copy every page of it
    ready = select.poll()
    for _ in range(_READY):
        ready.register(_wait_for_order(orders))
    deaths = 0
    while True:
        for fd, _ in ready.poll():
            said = os.read(fd, 1)
            ready.unregister(fd)
            os.close(fd)
            deaths = 0 if said else deaths + 1
            # Those that die before they have an order would be forked for ever.
            if said == _NO_MORE or deaths > _DEATHS_AT_MOST:
                return
            ready.register(_wait_for_order(orders))


def _wait_for_order(orders: socket.socket) -> int:
    """Fork a supervisor that waits for an order, and return what tells that it does so no more."""
    read_end, write_end = os.pipe()
    if spawn.split() != 0:
        os.close(write_end)
        return read_end
    os.close(read_end)
    _be_alone()
    groundwork = Groundwork.lay()
    _rehearse(groundwork)
    message, descriptors, _, _ = socket.recv_fds(orders, 1, MOST_DESCRIPTORS)
    orders.close()
    with suppress(BrokenPipeError):  # the nursery is gone, but this order is to be carried out
        os.write(write_end, message or _NO_MORE)
    os.close(write_end)
    if message:
        letter, *others = descriptors
        with open(letter, "rb") as file:
            order = unpack(file.read(), env.host_environment())
        _supervise(order, others, groundwork)
    sys.exit()


def _supervise(order: Order, descriptors: list[int], groundwork: Groundwork) -> None:
    """See to one task, until it has ended."""
    env.become(order.environment)
    supervisor = (
        Started(order, groundwork)
        if order.adopted is None
        else AdoptedTask(order, groundwork, order.adopted)
    )
    try:
        supervisor.run(descriptors)
    except Exception:
        supervisor.give_up(traceback.format_exc(limit=-3))


def _rehearse(groundwork: Groundwork) -> None:
    """Do what a start does, to no effect: then less memory has to be copied when it counts."""
    environment = env.host_environment()
    request = Request(":", "/", "/", 1.0, Policy(), environment)
    order = Order("/", environment, request, None, "started", None, Mark(0, 0))
    order = unpack(pack(order, environment), environment)
    rehearse(order, groundwork)
    spawn.find_program("bash")
    read_end, write_end = os.pipe()
    loop, pipe = groundwork.loop, Pipe(read_end, "stdout")
    loop.add_reader(pipe.fd, Capture("", order.request.policy.output).read, pipe)
    os.write(write_end, b"\n")
    os.close(write_end)
    loop.run_until(lambda: loop.remove_reader(pipe.fd))
    pipe.close()


def _point_to_nothing(fd: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, fd)
    os.close(null)


def _be_alone() -> None:
    """Leave the nursery's session, and get the orphans of what will be started."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with suppress(OSError, AttributeError):  # not on macOS
        kernel.prctl(_BECOME_REAPER, 1)
        kernel.libc().prctl(_SET_NAME, record.SUPERVISOR.encode(), 0, 0, 0)
