"""Where supervisors come from: a small process beside this program that forks one for each task.

To start a Python of its own for each task would take longer than the task's own start. The nursery
has one thread and little memory, so that to fork it is safe and cheap. It ends with this program;
the supervisors do not.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from limpet.process import env, spawn
from limpet.process.prelude import AnonymousFile
from limpet.process.reap import reap_late
from limpet.tasks.order import Order, pack

MESSAGE = b"o"
MOST_DESCRIPTORS = 8


class _Nursery:
    """The process, as long as our end of the socket is open."""

    def __init__(self) -> None:
        boot = (
            f"import sys; sys.path[:] = {sys.path!r}; from limpet.tasks.serve import serve; serve()"
        )
        self.socket, theirs = socket.socketpair()
        with ExitStack() as on_failure, theirs:
            on_failure.callback(self.socket.close)
            with open(os.devnull, "wb") as null:
                self.pid = spawn.start(
                    _python(),
                    [b"limpet-nursery", b"-I", b"-S", b"-c", boot.encode()],
                    environment=[b"%b=%b" % entry for entry in env.host_environment().items()],
                    cwd="/",
                    stdin=theirs.fileno(),
                    stdout=null.fileno(),
                    stderr=null.fileno(),
                )
            on_failure.pop_all()

    def close(self) -> None:
        self.socket.close()
        reap_late(self.pid)


def _python() -> str:
    if getattr(sys, "frozen", False) or not sys.executable:
        raise OSError("background tasks need a Python interpreter, and this program has none")
    return sys.executable


_lock = threading.Lock()
_nursery: _Nursery | None = None


def send(order: Order, descriptors: Sequence[int]) -> None:
    """Send an order, with what it needs; the supervisor has it even if this program ends now.

    Raises:
        OSError: It could not be sent.
    """
    global _nursery
    letter = AnonymousFile(pack(order), inherited=True)
    try:
        with _lock:
            if _nursery is None:
                _nursery = _Nursery()
            try:
                socket.send_fds(_nursery.socket, [MESSAGE], [letter.rewound(), *descriptors])
            except (BrokenPipeError, ConnectionResetError):  # somebody has killed it
                _nursery.close()
                _nursery = _Nursery()
                socket.send_fds(_nursery.socket, [MESSAGE], [letter.rewound(), *descriptors])
    finally:
        letter.close()


def warm_up() -> None:
    """Start the nursery, if there is none, so that the first order need not wait for it."""
    global _nursery
    with _lock, suppress(OSError):
        if _nursery is None:
            _nursery = _Nursery()


def close() -> None:
    """End the nursery; the tasks go on."""
    global _nursery
    with _lock:
        if _nursery is not None:
            _nursery.close()
            _nursery = None


def _forget() -> None:
    """Leave the nursery to the program that has started it, in a forked child."""
    global _nursery, _lock
    _lock = threading.Lock()
    if _nursery is not None:
        _nursery.socket.close()
        _nursery = None


os.register_at_fork(after_in_child=_forget)
