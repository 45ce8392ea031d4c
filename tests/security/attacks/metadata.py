"""Ways to change what is known about a file outside: mode, owner, times, attributes."""

# The calls themselves are what is tried.
# ruff: noqa: PTH101, S103

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
from collections.abc import Callable

from security.attacks import races
from security.attacks.calls import AT_EMPTY_PATH, AT_FDCWD, Aim, call, int80

_TIMES = struct.pack("=qqqq", 1, 0, 1, 0)
_NO_DUMP = 0x40
SET_FLAGS, SET_FLAGS_32 = 0x4008_6602, 0x4004_6602
SET_VERSION = 0x4008_7602
SET_XATTR = 0x401C_5820
NAME = "user.kept"
_VALUE = b"escaped\0"


def _opened(a: Aim, flags: int = os.O_RDONLY) -> int:
    return os.open(f"{a.outside}/file", flags)


def _xattr_arguments() -> object:
    return struct.pack("=QII", _address(_VALUE), len(_VALUE) - 1, 0)


def _address(data: bytes) -> int:
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


def _acl(a: Aim) -> None:
    entry = struct.Struct("=HHI")
    rights = [(1, 7, -1 & 0xFFFF_FFFF), (4, 7, -1 & 0xFFFF_FFFF), (0x20, 7, -1 & 0xFFFF_FFFF)]
    value = struct.pack("=I", 2) + b"".join(entry.pack(*right) for right in rights)
    os.setxattr(f"{a.outside}/file", "system.posix_acl_access", value)


MODES_AND_TIMES: dict[str, Callable[[Aim], object]] = {
    "chmod": lambda a: os.chmod(f"{a.outside}/file", 0o777),
    "chmod of a directory": lambda a: os.chmod(f"{a.outside}/dir", 0o777),
    "chmod setuid": lambda a: os.chmod(f"{a.outside}/file", 0o4755),
    "chmod through a link": lambda a: os.chmod(f"{a.inside}/link", 0o777),
    "chmod through /proc/self/fd": lambda a: os.chmod(
        f"/proc/self/fd/{_opened(a, os.O_PATH)}", 0o777
    ),
    "chmod through /proc/self/root": lambda a: os.chmod(
        f"/proc/self/root{a.outside}/file", 0o777
    ),
    "fchmod": lambda a: os.fchmod(_opened(a), 0o777),
    "fchmodat": lambda a: os.chmod("file", 0o777, dir_fd=os.open(a.outside, os.O_RDONLY)),
    "fchmodat2": lambda a: call("fchmodat2", AT_FDCWD, f"{a.outside}/file", 0o777, 0),
    "fchmodat2 of an empty path": lambda a: call("fchmodat2", _opened(a), "", 0o777, AT_EMPTY_PATH),
    "32 bit chmod": lambda a: int80(15, f"{a.outside}/file", 0o777),
    "32 bit fchmod": lambda a: int80(94, _opened(a), 0o777),
    "utime": lambda a: call("utime", f"{a.outside}/file", struct.pack("=qq", 1, 1)),
    "utimes": lambda a: call("utimes", f"{a.outside}/file", _TIMES),
    "futimesat": lambda a: call("futimesat", AT_FDCWD, f"{a.outside}/file", _TIMES),
    "utimensat": lambda a: os.utime(f"{a.outside}/file", (1, 1)),
    "utimensat of now": lambda a: os.utime(f"{a.outside}/file"),
    "utimensat of a link": lambda a: os.utime(f"{a.outside}/link", (1, 1), follow_symlinks=False),
    "futimens": lambda a: os.utime(_opened(a), (1, 1)),
    "utimensat of an empty path": lambda a: call(
        "utimensat", _opened(a, os.O_PATH), "", _TIMES, AT_EMPTY_PATH
    ),
    "chmod of a path that changes meanwhile": races.path_of_chmod,
    "chmod of a link that turns meanwhile": races.link_of_chmod,
    "fchmod of a descriptor that changes meanwhile": races.descriptor_of_fchmod,
    "futimens of a descriptor that changes meanwhile": races.times_of_descriptor,
    "32 bit utime": lambda a: int80(30, f"{a.outside}/file", struct.pack("=ii", 1, 1)),
}  # fmt: skip
"""Where there is neither a mount namespace nor a broker, a workspace cannot keep these."""

OWNERS_AND_ATTRIBUTES: dict[str, Callable[[Aim], object]] = {
    "chown": lambda a: os.chown(f"{a.outside}/file", a.user, a.user),
    "chown through a link": lambda a: os.chown(f"{a.inside}/link", a.user, a.user),
    "fchown": lambda a: os.fchown(_opened(a), a.user, a.user),
    "lchown": lambda a: os.lchown(f"{a.outside}/link", a.user, a.user),
    "fchownat": lambda a: os.chown(
        "file", a.user, a.user, dir_fd=os.open(a.outside, os.O_RDONLY)
    ),
    "32 bit lchown": lambda a: int80(198, f"{a.outside}/file", a.user, a.user),
    "setxattr": lambda a: os.setxattr(f"{a.outside}/file", NAME, _VALUE),
    "setxattr of a directory": lambda a: os.setxattr(f"{a.outside}/dir", "user.new", _VALUE),
    "lsetxattr": lambda a: os.setxattr(f"{a.outside}/file", NAME, _VALUE, follow_symlinks=False),
    "fsetxattr": lambda a: os.setxattr(_opened(a), NAME, _VALUE),
    "setxattrat": lambda a: call(
        "setxattrat", AT_FDCWD, f"{a.outside}/file", 0, NAME, _xattr_arguments(), 16
    ),
    "an access list": _acl,
    "removexattr": lambda a: os.removexattr(f"{a.outside}/file", NAME),
    "lremovexattr": lambda a: os.removexattr(f"{a.outside}/file", NAME, follow_symlinks=False),
    "fremovexattr": lambda a: os.removexattr(_opened(a), NAME),
    "removexattrat": lambda a: call("removexattrat", AT_FDCWD, f"{a.outside}/file", 0, NAME),
    "32 bit removexattr": lambda a: int80(235, f"{a.outside}/file", NAME),
    "file_setattr": lambda a: call(
        "file_setattr", AT_FDCWD, f"{a.outside}/file", struct.pack("=QIIII", 0x80, 0, 0, 0, 0),
        24, 0,
    ),
    "FS_IOC_SETFLAGS": lambda a: fcntl.ioctl(_opened(a), SET_FLAGS, struct.pack("=l", _NO_DUMP)),
    "FS_IOC_SETVERSION": lambda a: fcntl.ioctl(_opened(a), SET_VERSION, struct.pack("=l", 77)),
    "FS_IOC_FSSETXATTR": lambda a: fcntl.ioctl(
        _opened(a), SET_XATTR, struct.pack("=7I", 0x80, 0, 0, 0, 0, 0, 0)
    ),
    "32 bit FS_IOC_SETFLAGS": lambda a: int80(
        54, _opened(a), SET_FLAGS_32, struct.pack("=i", _NO_DUMP)
    ),
}  # fmt: skip

COMMANDS_OF_MODES_AND_TIMES = {
    "chmod ": 'chmod -R a+rwx "$T"',
    "touch": 'touch -d 2001-01-01 "$T/file"',
    "cp --attributes-only": 'cp --attributes-only -p /etc/passwd "$T/file"',
}
COMMANDS_OF_OWNERS_AND_ATTRIBUTES = {
    "chown ": 'chown -h "$(id -u):$(id -g)" "$T/file"',
    "chattr": 'chattr +d "$T/file"',
}
