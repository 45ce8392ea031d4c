"""The few system calls that Python has no function for, on the machines whose numbers are known."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import struct
import sys
from typing import NamedTuple

_AT_FDCWD = -100
NEWEST = 470
"""The highest system call number that this list was made with; a later one may do anything."""

_NUMBERS = {
    # name: (x86_64, aarch64), None where the machine has no such call
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "capset": (126, 91),
    "chdir": (80, 49),
    "chmod": (90, None),
    "chown": (92, None),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "close_range": (436, 436),
    "connect": (42, 203),
    "delete_module": (176, 106),
    "dup3": (292, 24),
    "execve": (59, 221),
    "fanotify_init": (300, 262),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "fcntl": (72, 25),
    "file_setattr": (469, 469),
    "finit_module": (313, 273),
    "fremovexattr": (199, 16),
    "fsconfig": (431, 431),
    "fsetxattr": (190, 7),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "futimesat": (261, None),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, None),
    "iopl": (172, None),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "landlock_add_rule": (445, 445),
    "landlock_create_ruleset": (444, 444),
    "landlock_restrict_self": (446, 446),
    "lchown": (94, None),
    "listen": (50, 201),
    "lookup_dcookie": (212, 18),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "migrate_pages": (256, 238),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "nfsservctl": (180, 42),
    "open": (2, None),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "openat": (257, 56),
    "openat2": (437, 437),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "prlimit64": (302, 261),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "removexattr": (197, 14),
    "removexattrat": (466, 466),
    "request_key": (249, 218),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "seccomp": (317, 277),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "sendmmsg": (307, 269),
    "sendmsg": (46, 211),
    "sendto": (44, 206),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "setsid": (112, 157),
    "settimeofday": (164, 170),
    "setxattr": (188, 5),
    "setxattrat": (463, 463),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmget": (29, 194),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "truncate": (76, 45),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "utime": (132, None),
    "utimensat": (280, 88),
    "utimes": (235, None),
    "vhangup": (153, 58),
    "write": (1, 64),
}


class Machine(NamedTuple):
    """What the kernel calls a kind of processor, and where its numbers stand in the list."""

    audit_arch: int
    column: int


_MACHINES = {"x86_64": Machine(0xC000003E, 0), "aarch64": Machine(0xC00000B7, 1)}


def machine() -> Machine | None:
    """Return what kind of machine this is; None if its system calls are not known here."""
    if sys.platform != "linux" or sys.maxsize < 1 << 32:
        return None
    return _MACHINES.get(os.uname().machine)


def numbers(names: frozenset[str]) -> list[int]:
    """Return the numbers of system calls, in order, leaving out those that there are not here."""
    here = machine()
    if here is None:
        return []
    found = (_NUMBERS[name][here.column] for name in names)
    return sorted(number for number in found if number is not None)


@functools.cache
def number(name: str) -> int:
    """Return the number of a system call that every machine has."""
    return numbers(frozenset([name]))[0]


@functools.cache
def libc() -> ctypes.CDLL:
    """Return the C library."""
    return ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: object) -> int:
    """Make a system call for the calling thread.

    Raises:
        OSError: It failed.
    """
    result = int(libc().syscall(ctypes.c_long(number(name)), *map(_argument, arguments)))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def _argument(value: object) -> object:
    # An int would be passed as a C int: half of what a register holds.
    return ctypes.c_long(value) if isinstance(value, int) else value


def prctl(option: int, *arguments: int) -> int:
    """Call prctl for the calling thread.

    Raises:
        OSError: It failed.
    """
    values = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    result = int(libc().prctl(ctypes.c_int(option), *values))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}): {os.strerror(code)}")
    return result


_NO_SYMLINKS = 0x04


def open_path(path: str, identity: tuple[int, int] | None = None) -> int:
    """Return a descriptor of a path that has no link in it, to be named by and not to be read.

    Args:
        path: Absolute.
        identity: The device and inode that it must be of.

    Raises:
        OSError: It is not there, has a link in it (ELOOP), or is another one by now (ESTALE).
    """
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, _NO_SYMLINKS)
    fd = call("openat2", _AT_FDCWD, os.fsencode(path), how, len(how))
    status = os.fstat(fd)
    if identity is not None and identity != (status.st_dev, status.st_ino):
        os.close(fd)
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)
    return fd
