"""Answers the calls of a jail that neither Landlock nor seccomp can decide on.

- Modes and times of files, where there is no mount namespace: allowed inside the workspace.
- On which processors a thread runs: allowed for the caller's own threads.
- Connections: allowed to unix sockets of the jail itself, and, as seccomp lets other sockets be
  made only where the network is the jail's own, to anything there.

It is sound because it performs what it allows itself, on the file or socket that it has looked at;
the caller's own call never goes on. It has no more rights than the caller but for the sandbox, as
both are of one user. If this program ends, the supervisors of what it leaves behind go on with it.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import stat
import struct
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

from limpet.process import kernel
from limpet.sandbox import protected, seccomp
from limpet.sandbox.notify import Call, Caller, answer, receive, signed
from limpet.sandbox.unixsockets import Sockets

_AT_FDCWD, _AT_SYMLINK_NOFOLLOW, _AT_EMPTY_PATH = -100, 0x100, 0x1000
_LONGEST_ADDRESS = 128
_LARGEST_MASK = 1024
_CONNECTS_AT_ONCE = 64
"""Of one jail: each has a thread of ours while it waits."""
_CONNECT = kernel.numbers(frozenset(["connect"]))


class Estate(NamedTuple):
    """What another program needs to go on with a broker's work when this one has ended."""

    roots: tuple[str, ...]
    names: tuple[str, ...]
    is_own: bool
    of_jail: tuple[int, ...]

    def take(self, listener: int, sockets: int) -> None:
        """Begin to answer, with the two descriptors that the other has passed on."""
        asked = Sockets(is_own=self.is_own, fd=sockets, of_jail=self.of_jail)
        Broker(listener, asked, self.roots, self.names)


class Broker:
    """Listens to one jail for as long as there is anybody in it."""

    def __init__(
        self,
        listener: int,
        sockets: Sockets,
        roots: Iterable[str],
        names: Iterable[str],
    ) -> None:
        """Begin to answer.

        Args:
            listener: The descriptor that seccomp gave; closed at the end.
            sockets: Those in the jail's network; closed at the end.
            roots: Where modes and times may be changed.
            names: What in them is protected.
        """
        self._listener = listener
        self._sockets = sockets
        self._roots = tuple(roots)
        self._protected = tuple(f"{root}/{name}" for root in self._roots for name in names)
        self._places = threading.BoundedSemaphore(_CONNECTS_AT_ONCE)
        self._handlers = {
            number: handler
            for names_of, handler in self._table()
            for number in kernel.numbers(names_of)
        }
        threading.Thread(target=self._serve, name="limpet-broker", daemon=True).start()

    def _table(self) -> list[tuple[frozenset[str], Callable[[Caller, Call], None]]]:
        return [
            (frozenset(["connect"]), self._connect),
            (frozenset(["listen"]), self._listen),
            (frozenset(["sched_setaffinity"]), self._set_affinity),
            (frozenset(["chmod"]), _at(self._chmod, path=0, value=1)),
            (frozenset(["fchmod"]), _of_descriptor(self._chmod, value=1)),
            (frozenset(["fchmodat"]), _at(self._chmod, directory=0, path=1, value=2)),
            (frozenset(["fchmodat2"]), _at(self._chmod, directory=0, path=1, value=2, flags=3)),
            (frozenset(["utime"]), _at(self._utime, path=0, value=1)),
            (frozenset(["utimes"]), _at(self._utimes, path=0, value=1)),
            (frozenset(["futimesat"]), _at(self._utimes, directory=0, path=1, value=2)),
            (frozenset(["utimensat"]), _at(self._utimens, directory=0, path=1, value=2, flags=3)),
        ]

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        # The kernel hangs up when the last process of the jail is gone.
        while any(event & select.POLLIN for _, event in poll.poll()):
            try:
                call = receive(self._listener)
            except OSError:
                break
            if call is None:
                continue
            if call.number in _CONNECT:
                self._answer_beside(call)
            else:
                self._answer(call)
        self._sockets.close()
        os.close(self._listener)

    def _answer_beside(self, call: Call) -> None:
        """Answer in a thread: it may wait for who listens, and nobody else should."""

        def work() -> None:
            try:
                self._answer(call)
            finally:
                self._places.release()

        if not self._places.acquire(blocking=False):
            answer(self._listener, call, errno.EAGAIN)
            return
        try:
            threading.Thread(target=work, name="limpet-connect", daemon=True).start()
        except RuntimeError:  # this program has no room for another thread
            self._places.release()
            answer(self._listener, call, errno.EAGAIN)

    def _answer(self, call: Call) -> None:
        caller = Caller(self._listener, call)
        code = 0
        try:
            self._handlers[call.number](caller, call)
        except OSError as error:
            code = error.errno or errno.EPERM
        except Exception:
            code = errno.EPERM  # whatever it was made to stumble over
        finally:
            caller.close()
        answer(self._listener, call, code)

    # Modes and times

    def _allowed(self, fd: int) -> str:
        """Return a path to a file that is open, if its mode and times may be changed."""
        link = f"/proc/self/fd/{fd}"
        target = os.readlink(link)  # noqa: PTH115 -- a string
        is_inside = self._is_inside(target)
        is_protected = any(protected.is_beneath(target, path) for path in self._protected)
        # What has no path is in no directory: a pipe, or memory.
        is_anonymous = not target.startswith("/") or target.startswith("/memfd:")
        if is_anonymous or (is_inside and not is_protected):
            return link
        raise PermissionError(errno.EPERM, "outside the workspace")

    def _is_inside(self, path: str) -> bool:
        return any(protected.is_beneath(path, root) for root in self._roots)

    def _chmod(self, caller: Caller, fd: int, mode: int) -> None:
        del caller
        if mode & seccomp.SET_ID and not stat.S_ISDIR(os.fstat(fd).st_mode):
            raise PermissionError(errno.EPERM, "a file that runs as its owner")
        os.chmod(self._allowed(fd), mode & 0o7777)  # noqa: PTH101 -- a link that is no path

    def _utime(self, caller: Caller, fd: int, address: int) -> None:
        self._set_times(fd, address and _times(caller.memory(address, 16), "=qq", 0))

    def _utimes(self, caller: Caller, fd: int, address: int) -> None:
        self._set_times(fd, address and _times(caller.memory(address, 32), "=qqqq", 1000))

    def _utimens(self, caller: Caller, fd: int, address: int) -> None:
        self._set_times(fd, address and _times(caller.memory(address, 32), "=qqqq", 1))

    def _set_times(self, fd: int, times: bytes | int) -> None:
        path = os.fsencode(self._allowed(fd))
        kernel.call("utimensat", _AT_FDCWD, path, times or None, 0)

    # Sockets

    def _listen(self, caller: Caller, call: Call) -> None:
        """Have a socket listen, and remember it as one of the jail's."""
        fd = caller.descriptor(signed(call.arguments[0]))
        self._sockets.remember(os.fstat(fd).st_ino)
        kernel.call("listen", fd, signed(call.arguments[1]))

    def _connect(self, caller: Caller, call: Call) -> None:
        size = call.arguments[2] & 0xFFFF_FFFF
        if not 2 <= size <= _LONGEST_ADDRESS:
            raise OSError(errno.EINVAL, "address")
        address = caller.memory(call.arguments[1], size)
        fd = caller.descriptor(signed(call.arguments[0]))
        with socket.socket(fileno=os.dup(fd)) as ours:
            is_unix = ours.family == socket.AF_UNIX
        if is_unix:
            address = self._unix_address(caller, address)
        kernel.call("connect", fd, address, len(address))

    def _unix_address(self, caller: Caller, address: bytes) -> bytes:
        """Return the address to connect to, if who listens there is in the jail."""
        if struct.unpack_from("=H", address)[0] != socket.AF_UNIX or not address[2:]:
            raise OSError(errno.EINVAL, "address")
        name = address[2:]
        if name.startswith(b"\0"):
            if self._sockets.owner(name=name) == "jail":
                return address
            raise PermissionError(errno.EPERM, "a socket outside")
        file = caller.open(_AT_FDCWD, name.partition(b"\0")[0], follow=True)
        owner = self._sockets.owner(file=os.fstat(file))
        if owner == "nobody" and self._is_inside(os.readlink(f"/proc/self/fd/{file}")):  # noqa: PTH115
            raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody listens")
        if owner != "jail":
            raise PermissionError(errno.EPERM, "a socket outside")
        # By the descriptor, so that it is the very socket that was looked at.
        return struct.pack("=H", socket.AF_UNIX) + b"/proc/self/fd/%d\0" % file

    # Processors

    def _set_affinity(self, caller: Caller, call: Call) -> None:
        """Set on which processors a thread of the caller's own runs."""
        tid, size = signed(call.arguments[0]), call.arguments[1]
        if size > _LARGEST_MASK:
            raise OSError(errno.EINVAL, "mask")
        if caller.leader_of(tid) != caller.leader_of(call.tid):
            raise PermissionError(errno.EPERM, "another process")
        mask = caller.memory(call.arguments[2], size)
        kernel.call("sched_setaffinity", tid, len(mask), mask)


_Change = Callable[[Caller, int, int], None]


def _at(
    change: _Change,
    *,
    path: int,
    value: int,
    directory: int | None = None,
    flags: int | None = None,
) -> Callable[[Caller, Call], None]:
    """Return a handler for a call that names a file, given where its arguments stand."""

    def handle(caller: Caller, call: Call) -> None:
        arguments = call.arguments
        base = _AT_FDCWD if directory is None else signed(arguments[directory])
        options = 0 if flags is None else arguments[flags] & 0xFFFF_FFFF
        if options & ~(_AT_SYMLINK_NOFOLLOW | _AT_EMPTY_PATH):
            raise OSError(errno.EINVAL, "flags")
        name = b"" if arguments[path] == 0 else caller.path(arguments[path])
        if (
            not name
            and directory is not None
            and (arguments[path] == 0 or options & _AT_EMPTY_PATH)
        ):
            fd = caller.descriptor(base)
        elif not name:
            raise FileNotFoundError(errno.ENOENT, "path")
        else:
            fd = caller.open(base, name, follow=not options & _AT_SYMLINK_NOFOLLOW)
        change(caller, fd, arguments[value])

    return handle


def _of_descriptor(change: _Change, *, value: int) -> Callable[[Caller, Call], None]:
    def handle(caller: Caller, call: Call) -> None:
        change(caller, caller.descriptor(signed(call.arguments[0])), call.arguments[value])

    return handle


def _times(raw: bytes, layout: str, nanoseconds: int) -> bytes:
    """Return times as `utimensat` takes them; `nanoseconds` is the unit of their fractions."""
    values = struct.unpack(layout, raw)
    if len(values) == 2:
        values = (values[0], 0, values[1], 0)
    first_s, first, second_s, second = values
    if nanoseconds == 1000 and not (0 <= first < 10**6 and 0 <= second < 10**6):
        raise OSError(errno.EINVAL, "times")
    unit = nanoseconds or 1
    return struct.pack("=qqqq", first_s, first * unit, second_s, second * unit)
