"""Raw system calls for the programs that run in the jail, also in the form of other machines."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from dataclasses import dataclass

libc = ctypes.CDLL(None, use_errno=True)
IS_X86 = os.uname().machine == "x86_64"

NUMBERS = {
    # name: (x86_64, aarch64)
    "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171), "bpf": (321, 280),
    "capset": (126, 91), "clock_settime": (227, 112), "clone": (56, 220), "clone3": (435, 435),
    "delete_module": (176, 106), "fanotify_init": (300, 262), "fchmodat2": (452, 452),
    "file_setattr": (469, 469), "finit_module": (313, 273), "fremovexattr": (199, 16),
    "fsetxattr": (190, 7), "fsmount": (432, 432), "fsopen": (430, 430), "fspick": (433, 433),
    "futimesat": (261, -1), "init_module": (175, 105), "io_uring_enter": (426, 426),
    "io_uring_setup": (425, 425), "ioperm": (173, -1), "iopl": (172, -1), "ioprio_get": (252, 31),
    "ioprio_set": (251, 30), "kcmp": (312, 272), "kexec_load": (246, 104), "keyctl": (250, 219),
    "linkat": (265, 37), "lremovexattr": (198, 15), "lsetxattr": (189, 6),
    "migrate_pages": (256, 238), "mount": (165, 40), "mount_setattr": (442, 442),
    "move_mount": (429, 429), "move_pages": (279, 239), "mq_open": (240, 180),
    "mq_timedsend": (242, 182), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "open_tree": (428, 428), "openat2": (437, 437), "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438), "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41), "prlimit64": (302, 261), "process_madvise": (440, 440),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "ptrace": (101, 117),
    "quotactl": (179, 60), "reboot": (169, 142), "removexattrat": (466, 466),
    "renameat2": (316, 276), "request_key": (249, 218), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "sched_setattr": (314, 274), "setdomainname": (171, 162),
    "setns": (308, 268), "settimeofday": (164, 170), "setxattrat": (463, 463),
    "swapoff": (168, 225), "swapon": (167, 224), "syslog": (103, 116), "tgkill": (234, 131),
    "tkill": (200, 130), "umount2": (166, 39), "unshare": (272, 97), "userfaultfd": (323, 282),
    "utime": (132, -1), "utimensat": (280, 88), "utimes": (235, -1), "vhangup": (153, 58),
}  # fmt: skip

AT_FDCWD, AT_EMPTY_PATH, AT_SYMLINK_FOLLOW = -100, 0x1000, 0x400


@dataclass
class Aim:
    """What an attempt is aimed at, made for it alone."""

    outside: str = ""
    """A directory with files, which nothing in the jail may change."""
    inside: str = ""
    """A directory of the workspace, writable in that mode."""
    address: str = ""
    """Of a unix socket that listens."""
    port: int = 0
    pid: int = 0
    """Of a process outside, or of a thread of the host."""
    at: int = 0
    """Where in that process's memory there is a secret, and the number of its descriptor of it."""
    fd: int = 0
    group: int = 0
    user: int = 0
    tools: str = ""
    """Where there are programs with more rights than their caller."""


def call(name: str | int, *arguments: object) -> int:
    """Make a system call.

    Raises:
        OSError: It failed.
    """
    number = NUMBERS[name][0 if IS_X86 else 1] if isinstance(name, str) else name
    return check(libc.syscall(ctypes.c_long(number), *map(_argument, arguments)))


def check(result: int) -> int:
    """Return what a function of libc returned, or raise the error it met."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _argument(value: object) -> object:
    if isinstance(value, str):
        return os.fsencode(value)
    return ctypes.c_long(value) if isinstance(value, int) else value


def address_of(buffer: ctypes.Array[ctypes.c_char]) -> int:
    """Return where a buffer is."""
    return ctypes.addressof(buffer)


def vector(address: int, length: int) -> bytes:
    """Return a `struct iovec`."""
    return struct.pack("=QQ", address, length)


# push rbx; mov eax,edi; mov ebx,esi; xchg ecx,edx; int 0x80; pop rbx; cdqe; ret
_INT80 = bytes.fromhex("53 89f8 89f3 87d1 cd80 5b 4898 c3")


def int80(number: int, *arguments: int | str | bytes) -> int:
    """Make a system call as a 32-bit program does, from this 64-bit one; text is passed too.

    Raises:
        OSError: It failed.
    """
    below_4g = 0x40
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | below_4g
    low = mmap.mmap(-1, 16384, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    start = ctypes.addressof(ctypes.c_char.from_buffer(low))
    low[: len(_INT80)] = _INT80
    registers = [0, 0, 0]
    for index, value in enumerate(arguments):
        if isinstance(value, int):
            registers[index] = value
            continue
        data = value if isinstance(value, bytes) else os.fsencode(value) + b"\0"
        place = 4096 * (index + 1)
        low[place : place + len(data)] = data
        registers[index] = start + place
    function = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_long] * 4)(start)
    result = int(function(number, *registers))
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result
