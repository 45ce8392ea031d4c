"""A thread's own view of the filesystems, all read-only but for some roots, and of the network.

It needs CAP_SYS_ADMIN. Other threads see nothing of it. Unlike Landlock it covers metadata, and
places inside a writable root.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import struct
import threading
from collections.abc import Iterable

from limpet.process import kernel

_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWNET = 0x0002_0000, 0x0800_0000, 0x4000_0000
_SET_INTERFACE_FLAGS, _INTERFACE_UP = 0x8914, 1
_MS_REC, _MS_PRIVATE = 0x4000, 0x4_0000
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE, _OPEN_TREE_CLOEXEC = 1, os.O_CLOEXEC
_BY_DESCRIPTORS = 0x04 | 0x40
_READ_ONLY = 1
_MNT_DETACH = 2


def take_own_network() -> None:
    """Give the calling thread a network of its own that has nothing but the loopback.

    Raises:
        OSError: It may not, or this kernel has no such thing.
    """
    kernel.call("unshare", _CLONE_NEWNET)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("=16sH22x", b"lo", _INTERFACE_UP)
        fcntl.ioctl(control.fileno(), _SET_INTERFACE_FLAGS, request)


def take_own_view() -> None:
    """Detach the calling thread from the mounts, and the System V IPC, of all others.

    Raises:
        OSError: It may not.
    """
    kernel.call("unshare", _CLONE_NEWNS | _CLONE_NEWIPC)
    kernel.call("mount", b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)


class _Table:
    """The mount table of this program, watched."""

    def __init__(self) -> None:
        self._watch: select.poll | None = None
        self._lock = threading.Lock()
        self._changes = 0

    def changes(self) -> int:
        """Return how often it was seen to change: a view of one's own does not follow it."""
        with self._lock:
            if self._watch is None:
                self._watch = select.poll()
                table = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
                self._watch.register(table, select.POLLPRI)
            if self._watch.poll(0):
                self._changes += 1
            return self._changes


changes = _Table().changes


_NODES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "fd/0",
    "stdout": "fd/1",
    "stderr": "fd/2",
    "ptmx": "pts/ptmx",
}


def take_own_devices(shared_memory: str) -> None:
    """Have only devices that are nobody's, and pseudo terminals of one's own.

    Root could else read disks, and what is typed at other terminals.

    Args:
        shared_memory: The directory to have as /dev/shm.
    """
    nodes = [(f"/dev/{name}", f"/dev/{name}") for name in _NODES if os.path.exists(f"/dev/{name}")]  # noqa: PTH110
    copies = [(place, _copy(source)) for place, source in nodes]
    memory = _copy(shared_memory) if os.path.isdir(shared_memory) else None  # noqa: PTH112
    kernel.call("mount", b"tmpfs", b"/dev", b"tmpfs", 0, b"mode=755,size=64k")
    for name, target in _LINKS.items():
        os.symlink(target, f"/dev/{name}")  # noqa: PTH211 -- strings all over
    for place, copy in copies:
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o600))
        _put(copy, place)
    for name in ("pts", "shm"):
        os.mkdir(f"/dev/{name}", 0o755)  # noqa: PTH102
    kernel.call("mount", b"devpts", b"/dev/pts", b"devpts", 0, b"mode=620,ptmxmode=666")
    if memory is not None:
        _put(memory, "/dev/shm")  # noqa: S108


def restrict(
    roots: Iterable[tuple[str, tuple[int, int] | None]],
    pinned: Iterable[str],
    protected: Iterable[str],
) -> None:
    """Make everything read-only in the calling thread's own view.

    Args:
        roots: Directories that stay as they are, and which they must be.
        pinned: Directories in them that cannot be renamed or removed, outermost first: else the
            way to what is protected could be replaced.
        protected: Files and directories in them that become read-only.

    Raises:
        OSError: One of them is not there any more, or another.
    """
    copies = [(root, _copy(root, identity)) for root, identity in roots]
    _make_read_only(_AT_FDCWD, "/")
    for path, copy in copies:
        _put(copy, path)
    for path in pinned:
        _put(_copy(path), path)
    for path in protected:
        copy = _copy(path)
        _make_read_only(copy, "")
        _put(copy, path)


def hide(places: Iterable[str]) -> None:
    """Put an empty thing that nobody may open in place of each file and directory."""
    places = tuple(places)
    if not places:
        return
    # A filesystem of our own, reachable for a moment only, in a directory that there always is.
    kernel.call("mount", b"none", b"/proc", b"tmpfs", 0, b"mode=700,size=64k")
    try:
        os.mkdir("/proc/directory", 0)  # noqa: PTH102
        os.close(os.open("/proc/file", os.O_CREAT | os.O_WRONLY, 0))
        for place in places:
            copy = _copy("/proc/directory" if os.path.isdir(place) else "/proc/file")  # noqa: PTH112
            _make_read_only(copy, "")
            _put(copy, place)
    finally:
        kernel.call("umount2", b"/proc", _MNT_DETACH)


def _copy(path: str, identity: tuple[int, int] | None = None) -> int:
    """Return a descriptor of a second mount of a place, with all below, flags unchanged."""
    place = kernel.open_path(path, identity)
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_RECURSIVE | _AT_EMPTY_PATH
    try:
        return kernel.call("open_tree", place, b"", flags)
    finally:
        os.close(place)


def _make_read_only(directory: int, path: str) -> None:
    attributes = struct.pack("=QQQQ", _READ_ONLY, 0, 0, 0)
    flags = _AT_RECURSIVE | (0 if path else _AT_EMPTY_PATH)
    kernel.call("mount_setattr", directory, os.fsencode(path), flags, attributes, len(attributes))


def _put(copy: int, path: str) -> None:
    try:
        place = kernel.open_path(path)
        try:
            kernel.call("move_mount", copy, b"", place, b"", _BY_DESCRIPTORS)
        finally:
            os.close(place)
    finally:
        os.close(copy)
