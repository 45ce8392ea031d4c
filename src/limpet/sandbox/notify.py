"""The kernel's side of asking: a system call that waits until somebody outside has answered it."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import struct
from contextlib import suppress
from typing import NamedTuple

from limpet.process import kernel

_RECEIVE, _SEND, _IS_VALID = 0xC050_2100, 0xC018_2101, 0x4008_2102
_REQUEST = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")
_PATH_MAX = 4096


class Call(NamedTuple):
    """A system call that waits for its answer."""

    id: int
    tid: int
    number: int
    arguments: tuple[int, ...]


def receive(listener: int) -> Call | None:
    """Return a call that waits; None if the caller has been killed meanwhile."""
    buffer = bytearray(_REQUEST.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, buffer)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EINTR):
            return None
        raise
    call_id, tid, _, number, _, _, *arguments = _REQUEST.unpack(buffer)
    return Call(call_id, tid, number, tuple(arguments))


def answer(listener: int, call: Call, code: int) -> None:
    """Let a call return: 0, or an error."""
    with suppress(OSError):  # the caller has been killed meanwhile
        fcntl.ioctl(listener, _SEND, _ANSWER.pack(call.id, 0, -code, 0))


class Caller:
    """The process whose call waits: its memory and its descriptors, as long as it does.

    All of it may be changed by its other threads at any moment: what was read is decided on, and
    what was opened is acted on, never looked up again.
    """

    _OWN_DESCRIPTOR = re.compile(rb"/(?:proc/(?:self|thread-self)|dev)/fd/(\d{1,9})")

    def __init__(self, listener: int, call: Call) -> None:
        self._listener = listener
        self._call = call
        self._opened: list[int] = []

    def _check(self) -> None:
        """Make sure that the thread id was the caller's when we used it."""
        fcntl.ioctl(self._listener, _IS_VALID, struct.pack("=Q", self._call.id))

    def memory(self, address: int, size: int) -> bytes:
        """Return a piece of its memory."""
        fd = os.open(f"/proc/{self._call.tid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            found = os.pread(fd, size, address)
        finally:
            os.close(fd)
        self._check()
        return found

    def path(self, address: int) -> bytes:
        """Return a path from its memory; it may end at the end of a page, so that is read first."""
        rest_of_page = _PATH_MAX - address % _PATH_MAX
        text = self.memory(address, rest_of_page)
        if b"\0" not in text:
            text += self.memory(address + rest_of_page, _PATH_MAX)
        name, end, _ = text.partition(b"\0")
        if not end or len(name) >= _PATH_MAX:
            raise OSError(errno.ENAMETOOLONG, "path")
        return name

    @staticmethod
    def leader_of(tid: int) -> int:
        """Return the id of the process that a thread belongs to."""
        with open(f"/proc/{tid}/status", "rb") as file:
            status = file.read()
        return int(status.partition(b"\nTgid:\t")[2].split(maxsplit=1)[0])

    def descriptor(self, number: int) -> int:
        """Return a duplicate of one of its descriptors, to be closed by `close`."""
        pidfd = os.pidfd_open(self.leader_of(self._call.tid))
        try:
            self._check()
            return self._keep(kernel.call("pidfd_getfd", pidfd, number, 0))
        finally:
            os.close(pidfd)

    def open(self, directory: int, path: bytes, *, follow: bool) -> int:
        """Return a descriptor of a file as the caller names it, to be closed by `close`.

        The links in /proc that are no paths are not followed: `self` would be us. But the caller's
        own descriptors are known by such names, too.
        """
        if own := self._OWN_DESCRIPTOR.fullmatch(path):
            return self.descriptor(int(own[1]))
        if path.startswith(b"/"):
            base = os.open("/", os.O_PATH | os.O_CLOEXEC)
        elif directory == _AT_FDCWD:
            base = os.open(f"/proc/{self._call.tid}/cwd", os.O_PATH | os.O_CLOEXEC)
        else:
            base = self.descriptor(directory)
        self._keep(base)
        self._check()
        flags = os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
        how = struct.pack("=QQQ", flags, 0, _NO_MAGIC_LINKS)
        name = ctypes.c_char_p(path or b".")
        return self._keep(kernel.call("openat2", base, name, how, len(how)))

    def _keep(self, fd: int) -> int:
        if fd not in self._opened:
            self._opened.append(fd)
        return fd

    def close(self) -> None:
        """Close what was opened."""
        for fd in self._opened:
            os.close(fd)


_AT_FDCWD = -100
_NO_MAGIC_LINKS = 0x02


def signed(value: int) -> int:
    """Return an argument that is a C int."""
    return (value & 0xFFFF_FFFF ^ 0x8000_0000) - 0x8000_0000
