"""What the sandbox can promise on this machine."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from limpet.confinement import LimitPolicy, SandboxPolicy
from limpet.sandbox import ground
from limpet.sandbox.promises import Promise, missing, promises


class Probe(NamedTuple):
    """What was found."""

    system: str
    kernel: str
    machine: str
    user: str
    """`root` or `ordinary`: root has means that others have not."""
    landlock_abi: int
    seccomp: bool
    mount_namespace: bool
    available: bool
    """Whether there is a sandbox at all."""
    needs: str | None
    """What is missing, if there is none."""
    modes: dict[str, tuple[Promise, ...]]
    """For each mode, each promise: whether it is kept, and by what or why not."""

    def to_dict(self) -> dict[str, object]:
        """Return it as JSON-ready values."""
        return self._asdict() | {
            "modes": {
                mode: [promise._asdict() for promise in found] for mode, found in self.modes.items()
            }
        }


def probe() -> Probe:
    """Look at the kernel and say what of each mode is enforced here; nothing is changed."""
    facts, uname = ground.look(), os.uname()
    needs = missing(SandboxPolicy(mode="read-only"), facts)
    if sys.platform != "linux":
        needs = "Linux: Landlock is a part of its kernel"
    found = {
        mode: promises(SandboxPolicy(mode=mode, hide=("credentials",)), LimitPolicy(), facts)
        for mode in ("read-only", "workspace")
    }
    return Probe(
        system=uname.sysname,
        kernel=uname.release,
        machine=uname.machine,
        user="root" if facts.is_root else "ordinary",
        landlock_abi=facts.abi,
        seccomp=facts.has_seccomp,
        mount_namespace=facts.can_mount,
        available=needs is None,
        needs=needs,
        modes={} if needs else found,
    )
