"""Which of some processes listens on a port, as the kernel tells."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

_LISTENS = "0A"


def listens(pids: Iterable[int], port: int) -> bool:
    """True if one of the processes has a TCP socket that listens on a port, of any address.

    Nothing is connected to: a server may serve its first visitor only. Each is asked about its own
    network, as that may not be ours.
    """
    return any(_inodes(pid, port) & _sockets_of(pid) for pid in pids)


def _inodes(pid: int, port: int) -> set[str]:
    """Return the inodes of all that listens on a port in the network of a process."""
    found = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError), open(f"/proc/{pid}/net/{table}") as file:
            next(file, None)
            for line in file:
                fields = line.split()
                if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(fields[9])
    return found


def _sockets_of(pid: int) -> set[str]:
    found = set()
    with suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 -- strings
            with suppress(OSError):
                target = os.readlink(f"/proc/{pid}/fd/{fd}")  # noqa: PTH115 -- a string
                if target.startswith("socket:["):
                    found.add(target[8:-1])
    return found
