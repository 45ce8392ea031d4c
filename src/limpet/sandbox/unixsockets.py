"""Whether a unix socket that listens is one of a jail's."""

from __future__ import annotations

import os
import socket
import struct
import threading
from typing import Literal, NamedTuple

_SOCK_DIAG, _BY_FAMILY = 4, 20
_DUMP = 0x301
_DONE, _ERROR = 3, 2
_LISTENING = 1 << 10
_SHOW_NAME, _SHOW_FILE = 1, 2
_NAME, _FILE = 0, 1
_HEADER = struct.Struct("=IHHII")
_QUERY = struct.Struct("=BBHIIIII")
_ENTRY = struct.Struct("=BBBBIII")
_ATTRIBUTE = struct.Struct("=HH")
_TIMEOUT_S = 2.0
_SOCKETS_AT_MOST = 65536


class Listener(NamedTuple):
    """A socket that listens."""

    inode: int
    """Its own, by which it is remembered."""
    name: bytes
    file: tuple[int, int] | None
    """Device and inode of the file that it is bound to."""


class Sockets:
    """Those of the network that the thread is in which makes this, a namespace or the machine's."""

    def __init__(
        self, *, is_own: bool, fd: int | None = None, of_jail: tuple[int, ...] = ()
    ) -> None:
        """Open a way to ask, or go on with one that another program has opened.

        Args:
            is_own: Whether the network is the jail's, and so is all in it.
            fd: What the other has opened.
            of_jail: The inodes that it has remembered.
        """
        self.is_own = is_own
        self._of_jail: dict[int, None] = dict.fromkeys(of_jail)
        # A kernel without it cannot tell which socket a file is of: then each use of this fails.
        self._diagnosis = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG, fileno=fd)
        self._diagnosis.settimeout(_TIMEOUT_S)
        self._lock = threading.Lock()

    def close(self) -> None:
        """Give it up."""
        self._diagnosis.close()

    @property
    def fd(self) -> int:
        """The way to ask."""
        return self._diagnosis.fileno()

    @property
    def of_jail(self) -> tuple[int, ...]:
        """The inodes that were remembered."""
        with self._lock:
            return tuple(self._of_jail)

    def remember(self, inode: int) -> None:
        """Take a socket for one of the jail's."""
        with self._lock:
            self._of_jail[inode] = None
            if len(self._of_jail) > _SOCKETS_AT_MOST:
                self._of_jail.pop(next(iter(self._of_jail)))

    def owner(
        self, *, name: bytes | None = None, file: os.stat_result | None = None
    ) -> Literal["nobody", "others", "jail"]:
        """Say who listens on the socket of a name or file.

        In a network namespace nothing is seen of those outside: they are nobody.
        """
        wanted = None if file is None else (file.st_dev, file.st_ino)
        found = {
            one.inode
            for one in self._listeners()
            if (one.file == wanted if wanted is not None else one.name == name)
        }
        if not found:
            return "nobody"
        return "jail" if self.is_own or found <= self._of_jail.keys() else "others"

    def _listeners(self) -> list[Listener]:
        """Ask the kernel for all unix sockets that listen."""
        query = _QUERY.pack(
            socket.AF_UNIX, 0, 0, _LISTENING, 0, _SHOW_NAME | _SHOW_FILE, 0xFFFF_FFFF, 0xFFFF_FFFF
        )
        header = _HEADER.pack(_HEADER.size + len(query), _BY_FAMILY, _DUMP, 1, 0)
        found: list[Listener] = []
        with self._lock:
            self._diagnosis.send(header + query)
            while True:
                data = self._diagnosis.recv(1 << 16)
                at = 0
                while at < len(data):
                    size, kind, *_ = _HEADER.unpack_from(data, at)
                    if kind in (_DONE, _ERROR):
                        return found
                    found.append(_listener(data[at + _HEADER.size : at + size]))
                    at += size + 3 & ~3


def _listener(data: bytes) -> Listener:
    inode = _ENTRY.unpack_from(data)[4]
    name, file = b"", None
    at = _ENTRY.size
    while at < len(data):
        size, kind = _ATTRIBUTE.unpack_from(data, at)
        value = data[at + _ATTRIBUTE.size : at + size]
        if kind == _NAME:
            name = value
        elif kind == _FILE:
            file_inode, device = struct.unpack("=II", value)
            file = os.makedev(device >> 20, device & 0xF_FFFF), file_inode
        at += size + 3 & ~3
    return Listener(inode, name, file)
