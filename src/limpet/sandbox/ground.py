"""What this kernel, and this user, have to build a jail on. The one seam for tests of others."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import NamedTuple

from limpet.process import steps
from limpet.sandbox import capabilities, cgroup, landlock, mounts, seccomp


class Ground(NamedTuple):
    """The facts that a jail depends on."""

    abi: int
    """Landlock's version; 0 where there is none."""
    has_seccomp: bool
    has_broker: bool
    """Whether seccomp can ask; inside another sandbox that asks, it cannot."""
    can_mount: bool
    """Whether a thread can take a mount namespace of its own."""
    own_network: bool
    """Whether it can take a network namespace too."""
    is_root: bool
    """Whether the user is exempt from the limit on processes."""


_forced: list[Ground] = []
"""What tests put in place of the facts."""


def look() -> Ground:
    """Return the facts."""
    return _forced[-1] if _forced else _look(os.geteuid())


@functools.cache
def _look(user: int) -> Ground:
    """Look, once for each user that this program is."""
    del user
    is_root = os.getuid() == 0
    if not steps.can_be_made():
        return Ground(0, False, False, False, False, is_root)
    has_seccomp = seccomp.is_available()
    is_admin = bool(capabilities.effective() >> capabilities.SYS_ADMIN & 1)
    can_mount = is_admin and _can(_take_own_view)
    return Ground(
        abi=landlock.abi(),
        has_seccomp=has_seccomp,
        has_broker=has_seccomp and _can(seccomp.try_to_listen),
        can_mount=can_mount,
        own_network=can_mount and _can(mounts.take_own_network),
        is_root=is_root,
    )


def _take_own_view() -> None:
    mounts.take_own_view()
    mounts.take_own_devices("/dev/shm")  # noqa: S108
    mounts.restrict([], [], [])


def has_cgroup() -> bool:
    """True if a control group for the number of processes can be made."""
    return _has_cgroup(os.geteuid())


@functools.cache
def _has_cgroup(user: int) -> bool:
    del user
    return cgroup.is_available()


def _can(take: Callable[[], None]) -> bool:
    """Try it in a thread that ends with it; a container may forbid what root may else do."""
    failed = []

    def try_it() -> None:
        try:
            take()
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=try_it, daemon=True)
    thread.start()
    thread.join()
    return not failed
