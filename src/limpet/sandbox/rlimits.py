"""Limits on a process that is waiting to begin, and which of them ended it."""

from __future__ import annotations

import errno
import os
import resource
import sys
import time
from collections.abc import Iterator

from limpet.confinement import LimitPolicy

_KINDS = {
    # RLIMIT_AS would keep runtimes from starting that reserve addresses they never use.
    "memory_bytes": resource.RLIMIT_DATA,
    "cpu_s": resource.RLIMIT_CPU,
    "processes": resource.RLIMIT_NPROC,
    "file_bytes": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
}
_OPTIONS = {
    # bash's letter, and how many of the kernel's units make one of bash's
    resource.RLIMIT_CORE: ("c", 1024),
    resource.RLIMIT_DATA: ("d", 1024),
    resource.RLIMIT_CPU: ("t", 1),
    resource.RLIMIT_NPROC: ("u", 1),
    resource.RLIMIT_FSIZE: ("f", 1024),
    resource.RLIMIT_NOFILE: ("n", 1),
}
_CPU_GRACE_S = 5
"""Between SIGXCPU, which a program may handle, and SIGKILL."""


def apply(pid: int, limits: LimitPolicy) -> None:
    """Set the limits of a process of ours, which all that it starts inherits."""
    if sys.platform == "linux":
        for kind, value in _values(limits):
            resource.prlimit(pid, kind, value)


def commands(limits: LimitPolicy) -> bytes:
    """Return the same as commands of bash, for who may not set the limits of another process."""
    lines = []
    for kind, (soft, hard) in _values(limits):
        option, unit = _OPTIONS[kind]
        lines.append(f"ulimit -H{option} {hard // unit}; ulimit -S{option} {soft // unit}")
    return ("\n".join(lines) + "\n").encode()


def _values(limits: LimitPolicy) -> list[tuple[int, tuple[int, int]]]:
    """Return each kind of limit with its soft and hard value, none above this program's own."""
    # A crash would write a file, or wake a service that does: which only a limit of 1 prevents.
    found = [(resource.RLIMIT_CORE, (1, 1))]
    for name, kind in _KINDS.items():
        if (value := getattr(limits, name)) is None:
            continue
        # The kernel counts all tasks of the user.
        wanted = int(value) + (_tasks_of_user() if name == "processes" else 0)
        soft, hard = (_finite(own) for own in resource.getrlimit(kind))
        highest = min(wanted + (_CPU_GRACE_S if name == "cpu_s" else 0), hard)
        found.append((kind, (min(wanted, soft, highest), highest)))
    return found


def _finite(limit: int) -> int:
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


_COUNT_S = 60.0
"""For how long a count of the user's tasks serves."""
_counted = (-_COUNT_S, 0)


def _tasks_of_user() -> int:
    """Return how many processes and threads this user has, or had a moment ago."""
    global _counted
    now_s = time.monotonic()
    if os.getuid() == 0:
        return 0  # nobody counts
    if now_s - _counted[0] > _COUNT_S:
        own = b"\nUid:\t%d\t" % os.getuid()
        _counted = now_s, sum(_threads(status) for status in _statuses() if own in status)
    return _counted[1]


def _statuses() -> Iterator[bytes]:
    for name in os.listdir("/proc"):  # noqa: PTH208 -- hundreds of Path objects for nothing
        if name.isdigit():
            try:
                with open(f"/proc/{name}/status", "rb") as file:
                    yield file.read()
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ESRCH, errno.EACCES, errno.EPERM):
                    raise


def _threads(status: bytes) -> int:
    _, _, rest = status.partition(b"\nThreads:\t")
    return int(rest.split(maxsplit=1)[0]) if rest else 0
