"""Limits that a child sets itself before it becomes another program."""

from __future__ import annotations

import errno
import functools
import os
import resource
import struct
import sys
import time
from collections.abc import Iterator

from limpet.confinement import LimitPolicy
from limpet.process.steps import Step

_KINDS = {
    # RLIMIT_AS would keep runtimes from starting that reserve addresses they never use.
    "memory_bytes": resource.RLIMIT_DATA,
    "cpu_s": resource.RLIMIT_CPU,
    "processes": resource.RLIMIT_NPROC,
    "file_bytes": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
}
_CPU_GRACE_S = 5
"""Between SIGXCPU, which a program may handle, and SIGKILL."""


def steps(limits: LimitPolicy) -> tuple[Step, ...]:
    """Return what a child does to limit itself, and with that all that it starts."""
    # The kernel counts all tasks of the user.
    return _steps(limits, _tasks_of_user(), tuple(map(resource.getrlimit, _KINDS.values())))


@functools.lru_cache(maxsize=64)
def _steps(limits: LimitPolicy, tasks: int, own: tuple[tuple[int, int], ...]) -> tuple[Step, ...]:
    """Return the limits, none above this program's own."""
    # A crash would write a file, or wake a service that does: which only a limit of 1 prevents.
    found = {resource.RLIMIT_CORE: (1, 1)}
    for (name, kind), (soft, hard) in zip(_KINDS.items(), own, strict=True):
        if (value := getattr(limits, name)) is None:
            continue
        wanted = int(value) + (tasks if name == "processes" else 0)
        highest = min(wanted + (_CPU_GRACE_S if name == "cpu_s" else 0), _finite(hard))
        found[kind] = min(wanted, _finite(soft), highest), highest
    return tuple(
        ("prlimit64", (0, kind, struct.pack("=QQ", *values), 0)) for kind, values in found.items()
    )


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
