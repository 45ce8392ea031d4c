"""Which attempts cannot be shown to work without a sandbox, and which the sandbox lets pass."""

from __future__ import annotations

import os

from security.attacks import metadata
from security.attacks.calls import IS_X86
from security.attacks.privileges import NAMESPACES, NEVER_OUTSIDE

UNLESS_ASKED = {*metadata.MODES_AND_TIMES, *metadata.COMMANDS_OF_MODES_AND_TIMES}
"""In a workspace these need a mount namespace or a broker: seccomp cannot tell files apart."""

_NEEDS_ROOT = {
    "files": {"chroot", "setns", "mknod of a device"},
    "sockets": {"made: raw", "made: packet"},
    "processes": {
        "timerslack_ns", "process_madvise", "perf_event_open",
        # As an ordinary user these would change the targets of other attempts.
        "setpriority of a user", "ioprio_set of a user",
    },
    "privileges": {
        *(f"unshare: {name}" for name in NAMESPACES if name != "users"),
        "setns", "setns of the host", "setns by pidfd", "mount", "mount --bind", "open_tree",
        "open_tree and mount_setattr", "mount_setattr", "fsopen", "fspick", "pivot_root", "chroot",
        "sethostname", "bpf", "perf_event_open", "capset", "any capability", "setuid", "setgroups",
        "keep capabilities", "be more urgent", "real time",
    },
}  # fmt: skip
_NOT_EVERYWHERE = {
    # The kernel may be built without, and root in a container lacks some rights.
    "made: ping", "made: crypto", "made: SCTP", "made: vsock", "made: UDP-Lite", "tcp: MPTCP",
    "raise a limit: files", "raise a limit: CPU", "raise a limit: memory", "raise a limit: core",
    "/dev/userfaultfd", "/dev/loop-control",
    "own oom_score_adj", "a core file", "setxattrat", "removexattrat", "file_setattr",
    # No kernel lets this pass; it is tried since one that did would need no more.
    "stream: from a pair", "seqpacket: from a pair",
}  # fmt: skip


_MADE_BY_ROOT = {"a set-user-ID program", "a program with capabilities"}
"""Programs with privileges to try can be made by root only."""


def has_teeth(user: str, kind: str, name: str) -> bool:
    """True if an attempt has an effect when nothing keeps it from having one."""
    if name in NEVER_OUTSIDE or name in _NOT_EVERYWHERE or "x32" in name:
        return False
    if name.startswith("32 bit") and not IS_X86:
        return False
    if name in _MADE_BY_ROOT and os.geteuid() != 0:
        return False
    return user == "root" or name not in _NEEDS_ROOT[kind]
