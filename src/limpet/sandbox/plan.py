"""A policy and a place become a plan: what is writable, protected and hidden, by which means.

A plan is also the key of the jail that carries it out: it names each place by its device and
inode, so that one which was removed and made again has another plan.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from limpet import state
from limpet.confinement import CREDENTIALS, LimitPolicy, SandboxPolicy
from limpet.process import kernel
from limpet.sandbox import landlock, mounts, protected, seccomp
from limpet.sandbox.ground import Ground

_SHARED_TEMP = ("/tmp", "/dev/shm")  # noqa: S108 -- what programs use
DEVICES = ("/dev/null", "/dev/zero", "/dev/full")
"""Written to by every script; nothing changes."""


class BadPlace(ValueError):
    """A place in the policy makes no sense; the message says what to give instead."""


class Place(NamedTuple):
    """A path, and which file or directory it led to."""

    path: str
    device: int
    inode: int

    @property
    def identity(self) -> tuple[int, int]:
        """What tells it from another file of the same name."""
        return self.device, self.inode


class Plan(NamedTuple):
    """All that a jail is made from."""

    sandbox: SandboxPolicy
    processes: int | None
    """The cap on processes for who is not bound by the user's own limit."""
    ground: Ground
    roots: tuple[Place, ...]
    """Writable, temporary places included."""
    watched: tuple[str, ...]
    """Protected names that there are in them."""
    protected: tuple[Place, ...]
    """Those that are read-only, if the kernel can do that."""
    pinned: tuple[str, ...]
    hidden: tuple[Place, ...]
    opened: tuple[tuple[str, int], ...]
    """Directories that something hidden lies in, whose entries are ruled one by one, and when
    they last changed."""
    readable: tuple[str, ...]
    """Those entries."""
    mounts: int
    """Which state of the mount table it is of."""
    terminal: str | None = None
    """The terminal that its one command is given."""

    @property
    def own_view(self) -> bool:
        """Whether there is a mount namespace of its own."""
        return self.ground.can_mount

    def rules(self) -> list[landlock.Rule]:
        """Return what Landlock allows."""
        everything = landlock.write_rights(self.ground.abi)
        on_devices = landlock.WRITE_FILE | landlock.TRUNCATE
        devices = [landlock.Rule(path, on_devices) for path in DEVICES]
        if self.own_terminals:
            # The kernel finds the terminals beside the file that was opened: the view's own.
            rights = on_devices | landlock.IOCTL_DEV
            devices += [landlock.Rule(path, rights) for path in ("/dev/ptmx", "/dev/pts")]
        if self.terminal is not None:
            rights = on_devices | landlock.IOCTL_DEV
            own = [] if self.own_view else [self.terminal]
            devices += [landlock.Rule(path, rights) for path in ("/dev/tty", *own)]
        if not self.opened:
            return devices + [_rule(root, everything) for root in self.roots]
        rules = devices + [landlock.Rule(path, landlock.READ) for path in self.readable]
        if self.own_view:
            # Hidden directories are empty in the view, so that all may be listed and written.
            rules.append(landlock.Rule("/", landlock.READ_DIR))
            return rules + [_rule(root, everything) for root in self.roots]
        # What is writable is so beneath the same entries, or whole if nothing in it is hidden.
        for root in self.roots:
            inner = [path for path in self.readable if protected.is_beneath(path, root.path)]
            if any(path == root.path for path, _ in self.opened):
                rules += [landlock.Rule(path, everything) for path in inner]
            else:
                rules.append(_rule(root, everything))
        return rules

    def filter(self) -> seccomp.Filter:
        """Return what seccomp denies, and what the broker is asked about."""
        sandbox = self.sandbox
        denied = frozenset() if self.own_view else seccomp.SYSTEM_V
        unsupported: frozenset[str] = frozenset()
        asked = seccomp.AFFINITY
        if sandbox.mode == "read-only":
            denied |= seccomp.METADATA | seccomp.TRACING
        elif not self.own_view:
            denied |= seccomp.OWNERS
            unsupported |= seccomp.ATTRIBUTES
            asked |= seccomp.MODES | seccomp.TIMES
        if self.network in ("off", "loopback"):
            asked |= seccomp.CONNECT
        if not self.ground.has_broker:
            asked = frozenset()
        return seccomp.Filter(
            denied=denied,
            asked=asked,
            unsupported=unsupported,
            network=self.network,
            unix_sockets=sandbox.unix_sockets,
            lacks_truncate=self.ground.abi < landlock.TRUNCATE_ABI,
        )

    @property
    def own_terminals(self) -> bool:
        """Whether there are pseudo terminals, which are the jail's own."""
        return self.own_view and self.sandbox.mode == "workspace"

    @property
    def network(self) -> Literal["off", "loopback", "tcp", "on"]:
        """What there is of a network."""
        if self.sandbox.network:
            return "on"
        if self.sandbox.ports and self.ground.abi >= landlock.NET_ABI:
            return "tcp"
        return "loopback" if self.ground.own_network and self.sandbox.loopback else "off"


def _rule(place: Place, rights: int) -> landlock.Rule:
    return landlock.Rule(place.path, rights, place.identity)


def make(
    sandbox: SandboxPolicy,
    limits: LimitPolicy | None,
    ground: Ground,
    workspace: str,
    inherited: Mapping[bytes, bytes],
) -> Plan:
    """Return the plan of a policy for a conversation that works in a directory.

    Raises:
        BadPlace: A place cannot be what it is meant to be.
    """
    roots = _roots(sandbox, workspace, inherited) if sandbox.mode == "workspace" else []
    own = [root for root in roots if root.path not in _SHARED_TEMP]
    watched = protected_paths(sandbox, own)
    # Who may write to the state can lie about tasks; where it cannot be kept, tasks are on guard.
    kept = _within(own, watched) + _within(roots, state.roots()) if ground.can_mount else []
    hidden = _places(_hidden(sandbox))
    # A view of one's own loses sight of a file that is replaced while a command runs.
    ruled = [one for one in hidden if not ground.can_mount or not os.path.isdir(one.path)]  # noqa: PTH112
    opened, readable = _beside(ruled)
    is_bound = limits is None or not ground.is_root
    pinned = protected.pins(
        [root.path for root in outermost(roots)], [place.path for place in (*kept, *hidden)]
    )
    return Plan(
        sandbox=sandbox,
        processes=None if is_bound or limits is None else limits.processes,
        ground=ground,
        roots=tuple(roots),
        watched=tuple(watched),
        protected=tuple(kept),
        pinned=tuple(pinned) if ground.can_mount else (),
        hidden=tuple(hidden),
        opened=tuple(opened),
        readable=tuple(readable),
        mounts=mounts.changes() if ground.can_mount else 0,
    )


def protected_paths(sandbox: SandboxPolicy, roots: Iterable[Place]) -> list[str]:
    """Return the protected paths that there are, those of nested repositories included."""
    of_git = tuple(name for name in sandbox.protect if name.startswith(".git"))
    found: list[str] = []
    for root in roots:
        found += protected.existing([root.path], sandbox.protect)
        if of_git:
            nested = protected.repositories(root.path, root.identity)
            found += protected.existing(nested, of_git)
    return found


def outermost(roots: Iterable[Place]) -> list[Place]:
    """Return the roots that lie in no other: between two mounts no file can be renamed."""
    roots = tuple(roots)
    return [
        root
        for root in roots
        if not any(protected.is_beneath(root.path, o.path) for o in roots if o.path != root.path)
    ]


def workspace_roots(plan: Plan) -> list[Place]:
    """Return the writable directories that are not just temporary."""
    return [root for root in plan.roots if root.path not in _SHARED_TEMP]


def _roots(sandbox: SandboxPolicy, workspace: str, inherited: Mapping[bytes, bytes]) -> list[Place]:
    wanted = [workspace, *sandbox.writable]
    if sandbox.temp == "shared":
        wanted += _SHARED_TEMP
        if own := inherited.get(b"TMPDIR"):
            wanted.append(os.fsdecode(own))
    found = dict.fromkeys(_root(path) for path in wanted)
    roots = [root for root in found if root is not None]
    for root in roots:
        if root.path == "/":
            raise BadPlace(
                "the sandbox's workspace would be the whole filesystem: work in a directory"
                " below / (ToolContext.working_dir, or --cwd)"
            )
    return roots


_led_to: dict[str, str] = {}
"""Where a writable place was found when it was first asked for. A command that replaces it by a
link must not be able to lead the next one elsewhere."""
_LED_TO_AT_MOST = 65536


def _root(path: str) -> Place | None:
    """Return a writable place, or None if there is none.

    Raises:
        BadPlace: It leads elsewhere than it did.
    """
    given = os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 -- strings
    real = os.path.realpath(given)
    if len(_led_to) >= _LED_TO_AT_MOST:
        _led_to.pop(next(iter(_led_to)))
    before = _led_to.setdefault(given, real)
    elsewhere = BadPlace(
        f"{given} was {before}, and leads elsewhere now: if that is meant, give the path of that"
        " place itself"
    )
    if real != before:
        raise elsewhere
    try:
        fd = kernel.open_path(real)
    except OSError as error:
        if error.errno == errno.ELOOP:  # just now
            raise elsewhere from None
        return None
    try:
        status = os.fstat(fd)
        return Place(real, status.st_dev, status.st_ino)
    finally:
        os.close(fd)


def _hidden(sandbox: SandboxPolicy) -> list[str]:
    wanted: list[str] = []
    for place in sandbox.hide:
        wanted += CREDENTIALS if place == "credentials" else [place]
    return wanted


def _within(roots: list[Place], paths: list[str]) -> list[Place]:
    """Return what paths lead to; a link out of the roots leads to what is read-only anyway."""
    return [
        place
        for place in _places(paths)
        if any(protected.is_beneath(place.path, root.path) for root in roots)
    ]


def _places(paths: list[str] | tuple[str, ...]) -> list[Place]:
    """Return what paths lead to, each once, in order; what there is not is left out."""
    found: dict[Place, None] = {}
    for path in paths:
        real = os.path.realpath(os.path.expanduser(path))  # noqa: PTH111 -- a string
        try:
            status = os.stat(real)
        except OSError:
            continue
        found[Place(real, status.st_dev, status.st_ino)] = None
    return list(found)


def _beside(hidden: list[Place]) -> tuple[list[tuple[str, int]], list[str]]:
    """Return the directories above hidden places, and all in them that leads to none."""
    names = {place.path for place in hidden}
    above: set[str] = set()
    for path in names:
        while path != "/":
            path = os.path.dirname(path)
            above.add(path)
    opened, readable = [], []
    for directory in sorted(above):
        try:
            opened.append((directory, os.stat(directory).st_mtime_ns))
            entries = os.listdir(directory)  # noqa: PTH208 -- strings are wanted
        except OSError:
            continue
        paths = (os.path.join(directory, entry) for entry in sorted(entries))
        readable += [path for path in paths if path not in above and path not in names]
    return opened, [path for path in readable if not os.path.islink(path)]  # noqa: PTH114
