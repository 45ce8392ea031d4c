"""Where supervisors come from: a small process beside this program that forks one for each task.

To start a Python of its own for each task would take longer than the task's own start. The nursery
has one thread and little memory, so that to fork it is safe and cheap. It ends with this program;
the supervisors do not.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from limpet.process import env, spawn
from limpet.process.prelude import AnonymousFile
from limpet.process.reap import reap_soon
from limpet.tasks.order import Order, pack, pack_environment

MESSAGE = b"o"
MOST_DESCRIPTORS = 16
_END_S = 2.0
_SEND_S = 30.0
"""How long an order may wait to be sent: a nursery that is stopped reads none."""


class _Nursery:
    """The process, as long as our end of the socket is open."""

    def __init__(self, *, jails: bool) -> None:
        """Start it; with `jails` it has all ready that a sandbox needs."""
        self.jails = jails
        self.circumstances = _circumstances()
        boot = (
            f"import sys; sys.path[:] = {_path()!r};"
            f" from limpet.tasks.serve import serve; serve(jails={jails})"
        )
        python = _python()
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(_SEND_S)
        with ExitStack() as on_failure, theirs:
            on_failure.callback(self.socket.close)
            with open(os.devnull, "wb") as null:
                self.pid = spawn.start(
                    python,
                    [os.fsencode(python), b"-I", b"-S", b"-c", boot.encode()],
                    environment=[
                        b"%b=%b" % (name, value)
                        for name, value in env.host_environment().items()
                        if name in _NEEDED or name.startswith(b"LC_")
                    ],
                    cwd="/",
                    stdin=theirs.fileno(),
                    stdout=null.fileno(),
                    stderr=null.fileno(),
                )
            # What most tasks will have, so that it need not be taken over for each.
            self.known, packed = pack_environment(env.host_environment())
            self.send(AnonymousFile(packed, inherited=True), ())
            on_failure.pop_all()

    def send(self, letter: AnonymousFile, descriptors: Sequence[int]) -> None:
        """Send a letter, and what it needs."""
        try:
            socket.send_fds(self.socket, [MESSAGE], [letter.rewound(), *descriptors])
        finally:
            letter.close()

    def close(self) -> None:
        """Have it end, when it has taken the orders that are on their way."""
        self.socket.close()
        reap_soon(self.pid, _END_S)


def _path() -> list[str]:
    """Return where modules are found, limpet first; the nursery has another working directory."""
    found = [os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))]  # noqa: PTH100
    with suppress(FileNotFoundError):  # our own working directory was deleted
        found += [os.path.abspath(entry) for entry in sys.path]  # noqa: PTH100 -- strings
    return found


def _python() -> str:
    if getattr(sys, "frozen", False) or not sys.executable:
        raise OSError("background tasks need a Python interpreter, and this program has none")
    return sys.executable


_NEEDED = frozenset([b"PATH", b"LANG", b"LD_LIBRARY_PATH"])
"""What Python needs to start. All else is sent: what stands in the environment that a process has
begun with, other processes of the user can read as long as it lives."""

_lock = threading.Lock()
_nursery: _Nursery | None = None


def send(order: Order, descriptors: Sequence[int]) -> None:
    """Send an order, with what it needs; the supervisor has it even if this program ends now.

    Raises:
        OSError: It could not be sent.
    """
    policy = order.request.policy
    jails = order.adopted is None and (policy.sandbox.mode != "off" or policy.limits is not None)
    with _lock:
        try:
            _send(_find(jails=jails), order, descriptors)
        except (BrokenPipeError, ConnectionResetError):  # somebody has killed it
            _drop()
            _send(_find(jails=jails), order, descriptors)


def _send(nursery: _Nursery, order: Order, descriptors: Sequence[int]) -> None:
    nursery.send(AnonymousFile(pack(order, nursery.known), inherited=True), descriptors)


def _find(*, jails: bool) -> _Nursery:
    global _nursery
    if _nursery is not None and jails and not _nursery.jails:
        _drop()  # another that has what it takes: else each supervisor would have to load it
    if _nursery is not None and _nursery.circumstances != _circumstances():
        _drop()  # another that is as free as this program now, and not as it was
    if _nursery is None:
        _nursery = _Nursery(jails=jails)
    return _nursery


_INHERITED = re.compile(rb"^(?:Umask|SigIgn|[UG]id|Groups|Cap\w+|NoNewPrivs|Seccomp\w*):.*", re.M)


def _circumstances() -> tuple[object, ...]:
    """Return what a child inherits from this program, and what may have changed since."""
    found: list[object] = [os.getresuid(), os.getresgid()]
    with suppress(OSError, AttributeError):
        found += [os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0)]
    for name, wanted in (("status", _INHERITED), ("limits", None), ("cgroup", None)):
        with suppress(OSError), open(f"/proc/self/{name}", "rb") as file:
            text = file.read()
            found.append(text if wanted is None else wanted.findall(text))
    return tuple(found)


def _drop() -> None:
    global _nursery
    if _nursery is not None:
        _nursery.close()
        _nursery = None


def close() -> None:
    """End the nursery; the tasks go on."""
    with _lock:
        _drop()


def _forget() -> None:
    """Leave the nursery to the program that has started it, in a forked child."""
    global _nursery, _lock
    _lock = threading.Lock()
    if _nursery is not None:
        _nursery.socket.close()
        _nursery = None


os.register_at_fork(after_in_child=_forget)
