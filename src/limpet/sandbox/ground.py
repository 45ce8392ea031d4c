"""What this kernel, and this user, have to build a jail on. The one seam for tests of others."""

from __future__ import annotations

import functools
import os
import sys
import threading
from typing import NamedTuple

from limpet.sandbox import capabilities, cgroup, kernel, landlock, mounts, seccomp


class Ground(NamedTuple):
    """The facts that a jail depends on."""

    abi: int
    """Landlock's version; 0 where there is none."""
    has_seccomp: bool
    can_mount: bool
    """Whether a thread can take a mount namespace of its own."""
    is_root: bool
    """Whether the user is exempt from the limit on processes."""


_forced: list[Ground] = []
"""What tests put in place of the facts."""


def look() -> Ground:
    """Return the facts."""
    return _forced[-1] if _forced else _look()


@functools.cache
def _look() -> Ground:
    if sys.platform != "linux" or kernel.machine() is None:
        return Ground(0, has_seccomp=False, can_mount=False, is_root=os.geteuid() == 0)
    return Ground(
        abi=landlock.abi(),
        has_seccomp=seccomp.is_available(),
        can_mount=_can_mount(),
        is_root=os.getuid() == 0,
    )


@functools.cache
def has_cgroup() -> bool:
    """True if a control group for the number of processes can be made."""
    return cgroup.is_available()


def _can_mount() -> bool:
    """Try it in a thread that ends with it; a container may forbid what root may else do."""
    if not capabilities.effective() >> capabilities.SYS_ADMIN & 1:
        return False
    failed = []

    def try_it() -> None:
        try:
            mounts.take_own_view()
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=try_it, daemon=True)
    thread.start()
    thread.join()
    return not failed
