"""What a path names, however it is spelled."""

from __future__ import annotations

import re
from typing import Literal

from limpet.command.words import ANY, HERE, HOME, STAR, UNKNOWN

Place = Literal["root", "system", "home", "here", "git"]
"""What must not be wiped: the system or a part of it, a home, what is worked on, its history."""

_SYSTEM = frozenset(
    """bin boot dev etc home lib lib32 lib64 libx32 media mnt opt proc root run sbin snap srv sys
    usr var Applications Library System Users Volumes private cores""".split()
)
_USR = frozenset(["bin", "sbin", "lib", "lib64", "libexec"])
"""On most systems /bin, /sbin and /lib are links to these."""
_HOMES = ("home", "Users")
_TEMPORARY = ("/tmp", "/var/tmp", "/private/tmp", "/dev/shm")  # noqa: S108 -- names, not files
_BELOW_HERE = re.compile(r"[\w-][\w.-]*+(?:/[\w-][\w.-]*+)*+/?\Z")
"""A plain path to something below the working directory: most are."""
_ALL_NAMES = re.compile(rf"\.{{0,2}}[{STAR}{ANY}]+\Z")
"""A pattern that matches all names, or all hidden ones."""


def normal(path: str) -> str:
    """Return a path without `//`, `/.` and `name/..`."""
    if path[:1] == HERE:
        path = "." + path[1:]
    root = path[0] if path[:1] in ("/", HOME) else ""
    parts: list[str] = []
    for part in path.removeprefix(root).split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part == ".." and root == HOME:
            root, parts = "/", ["home"]
        elif part not in ("", ".") and not (part == ".." and root):
            parts.append(part)
    if root == "/":
        return "/" + "/".join(parts)
    return "/".join([root, *parts] if root else parts) or "."


def precious(path: str) -> Place | None:
    """Return what a path that is to be removed with all below it names, if that is fatal."""
    if _BELOW_HERE.match(path):
        return None
    path = normal(path)
    parts = [part for part in path.split("/") if part]
    while len(parts) > 1 and _ALL_NAMES.match(parts[-1]):
        parts.pop()  # all that is in a directory is as good as the directory
    if path[0] == "/":
        return _absolute(parts)
    if path[0] == HOME:
        if len(parts) == 1 or (len(parts) == 2 and _ALL_NAMES.match(parts[1])):
            return "home"
        return "git" if parts[-1] == ".git" else None
    while parts and parts[0] in ("..", "."):
        parts.pop(0)
        if not parts:
            return "here"
    if len(parts) == 1 and _ALL_NAMES.match(parts[0]):
        return "here"
    return "git" if len(parts) == 1 and _matches_git(parts[0]) else None


def _matches_git(name: str) -> bool:
    """Tell whether a name, or a pattern such as `.g*`, is that of the repository."""
    if name == ".git" or name[:1] != ".":
        return name == ".git"
    form = re.escape(name).replace(STAR, ".*").replace(ANY, ".")
    return re.fullmatch(form, ".git", re.S) is not None


def _absolute(parts: list[str]) -> Place | None:
    if not parts or (len(parts) == 1 and _ALL_NAMES.match(parts[0])):
        return "root"
    if parts in (["root"], ["var", "root"]) or (len(parts) == 2 and parts[0] in _HOMES):
        return "home"
    if len(parts) == 1 and parts[0] in _SYSTEM:
        return "system"
    if len(parts) == 2 and parts[0] == "usr" and parts[1] in _USR:
        return "system"
    is_temporary = ("/" + "/".join(parts)).startswith(_TEMPORARY)
    return "git" if parts[-1] == ".git" and not is_temporary else None


_NO_DISK = re.compile(
    r"""(?:null|zero|full|random|urandom|std(?:in|out|err)|fd|console|kmsg|log|ptmx|pts|tcp|udp|shm|mqueue
    |hugepages|tty.*|cu\..*|pty.*|vc.*|lp\d*|usb|usblp\d*|parport\d*|dsp\d*|audio\d*|mixer|snd|midi.*
    |sequencer|fb\d*|dri|input|uinput|hidraw\d*|video.*|media\d*|i2c-\d*|spidev.*|gpio.*|rfcomm\d*
    |net|kvm|fuse|watchdog\d*|rtc\d*|hwrng|cuse|vhost.*|vsock|loop-control|nst?\d*|st\d+|tape\d*
    |[^/]+\.[A-Za-z]+|serial|bus|char|cpu.*|core|port|nvram|ppp|tun|tap|uhid|userio|autofs|snapshot|rfkill|urandom)
    (?:/|\Z)""",
    re.X,
)


_DISK = re.compile(
    rf"""(?:(?:sd|hd|vd|xvd)[a-zA-Z{ANY}{STAR}{UNKNOWN}]+\d*|nvme\d.*|mmcblk\d.*|r?disk\d.*|disk/.+|mapper/.+
    |md\d.*|dm-\d+|loop\d+.*|sr\d+|nbd\d.*|ram\d+|zram\d+|zvol/.+|pmem\d.*|block/.+|{UNKNOWN})\Z""",
    re.X,
)
_UNKNOWN_DISK = re.compile(rf"{UNKNOWN}(?:p?\d+)?\Z")


def is_disk(path: str) -> bool:
    """Tell whether a path is a disk, or a part of one: under /dev, and nothing else known."""
    path = normal(path)
    if not path.startswith("/dev/"):
        return False
    return not _NO_DISK.match(path, len("/dev/"))


def is_disk_by_name(path: str) -> bool:
    """Tell whether a path is a disk, or a part of one, by the names that these have."""
    path = normal(path)
    return path.startswith("/dev/") and bool(_DISK.match(path, len("/dev/")))


def may_be_disk(path: str) -> bool:
    """Tell whether a path is a disk, or not known: `$DISK`, `${DISK}1`."""
    return is_disk(path) or bool(_UNKNOWN_DISK.match(path))


def is_in_etc(path: str) -> bool:
    """Tell whether a path is the system's configuration, or in it."""
    path = normal(path)
    return path.startswith(("/etc/", "/private/etc/")) or path == "/etc"
