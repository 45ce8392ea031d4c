"""A cap on the number of processes that binds root too, where a control group can be made."""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress

from limpet.process.steps import Step

_ROOT = "/sys/fs/cgroup"
_TRIES, _TRY_AGAIN_S = 20, 0.002


class ProcessCap:
    """A control group with a limit on how many tasks it has.

    Version 1 takes single threads, so that the thread that starts commands is put in once and all
    of them are born there. Version 2 takes whole processes, so each puts itself in as a first step.
    """

    def __init__(self, limit: int) -> None:
        """Make the group.

        Raises:
            OSError: It cannot be made.
        """
        parent, self.takes_threads = _parent()
        _sweep(parent)
        self._path = os.path.join(parent, f"limpet-{os.getpid()}-{os.urandom(4).hex()}")
        self._entrance: int | None = None
        os.mkdir(self._path, 0o755)  # noqa: PTH102 -- a string
        try:
            # One more for the thread that starts commands.
            _write(self._path, "pids.max", limit + (1 if self.takes_threads else 0))
            if not self.takes_threads:
                procs = os.path.join(self._path, "cgroup.procs")
                self._entrance = os.open(procs, os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            self.close()
            raise

    def add_thread(self, tid: int) -> None:
        """Put a thread in, and all that it will start; version 1 only."""
        _write(self._path, "tasks", tid)

    def steps(self) -> list[Step]:
        """Return what a child has to do to get in."""
        return [] if self._entrance is None else [("write", (self._entrance, b"0", 1))]

    def close(self) -> None:
        """Remove the group; while survivors are in it, it stays with them for a later sweep."""
        if self._entrance is not None:
            os.close(self._entrance)
            self._entrance = None
        for _ in range(_TRIES):
            try:
                os.rmdir(self._path)  # noqa: PTH106 -- a string
            except OSError as error:
                if error.errno != errno.EBUSY:
                    return
                time.sleep(_TRY_AGAIN_S)  # threads that are about to end
            else:
                return
        _left.add(self._path)


_left: set[str] = set()
"""Groups of this program that survivors were in."""


def _sweep(parent: str) -> None:
    """Remove groups that are empty by now: ours, and those of programs that are gone."""
    for path in tuple(_left):
        with suppress(OSError):
            os.rmdir(path)  # noqa: PTH106 -- a string
            _left.discard(path)
    for name in os.listdir(parent):  # noqa: PTH208 -- strings are wanted
        prefix, _, rest = name.partition("-")
        if prefix == "limpet" and not os.path.exists(f"/proc/{rest.partition('-')[0]}"):  # noqa: PTH110
            with suppress(OSError):
                os.rmdir(os.path.join(parent, name))  # noqa: PTH106 -- a string


def is_available() -> bool:
    """True if a group can be made here."""
    try:
        ProcessCap(1000).close()
    except OSError:
        return False
    return True


def _parent() -> tuple[str, bool]:
    """Return where this process's groups are made, and whether they are of version 1."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        lines = [line.rstrip("\n").split(":", 2) for line in file]
    for _, controllers, path in lines:
        if "pids" in controllers.split(","):
            return f"{_ROOT}/pids{path.rstrip('/')}", True
    path = next((path for _, controllers, path in lines if not controllers), "/")
    parent = f"{_ROOT}{path.rstrip('/')}"
    with open(f"{parent}/cgroup.subtree_control", encoding="utf-8") as file:
        if "pids" in file.read().split():
            return parent, False
    raise FileNotFoundError("no control group for processes")


def _write(group: str, name: str, value: int) -> None:
    with open(os.path.join(group, name), "w", encoding="utf-8") as file:
        file.write(str(value))
