"""Gives up what a thread may do beyond an ordinary user, for itself and for all that it starts."""

from __future__ import annotations

import os
import struct
from contextlib import suppress

from limpet.process import kernel

SYS_ADMIN = 21
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAPBSET_READ, _PR_CAPBSET_DROP = 23, 24
_PR_SET_SECUREBITS = 28
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_WITHOUT_ROOT = 0b1110_1111
"""Root is nobody special, setuid keeps nothing, nothing is raised, and none of it can be undone."""
_VERSION_3 = 0x20080522


def effective() -> int:
    """Return the capabilities of the calling thread, a bit each."""
    try:
        with open("/proc/thread-self/status", "rb") as status:
            lines = status.read().splitlines()
    except OSError:
        return 0
    return next((int(line[7:], 16) for line in lines if line.startswith(b"CapEff:")), 0)


def drop_all() -> None:
    """Drop every capability, and the ways to get one back by running a program."""
    kernel.prctl(_PR_SET_NO_NEW_PRIVS, 1)
    with suppress(OSError):
        kernel.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    if effective() or os.geteuid() == 0:
        _forget_root()
    header = struct.pack("=II", _VERSION_3, 0)
    kernel.call("capset", header, bytes(24))


def _forget_root() -> None:
    """Keep root's programs from being given capabilities again by the mere fact of their user."""
    # no_new_privs does that too. A container may have taken the right to do this away.
    with suppress(OSError):
        kernel.prctl(_PR_SET_SECUREBITS, _WITHOUT_ROOT)
    for capability in range(64):
        try:
            if kernel.prctl(_PR_CAPBSET_READ, capability):
                kernel.prctl(_PR_CAPBSET_DROP, capability)
        except OSError:
            break
