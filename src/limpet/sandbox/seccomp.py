"""Seccomp: the system calls that a command has no use for, or that Landlock does not look at."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from typing import Literal, NamedTuple

from limpet.process import kernel
from limpet.sandbox import bpf

_SET_MODE_FILTER, _GET_ACTION_AVAIL = 1, 2
_SPEC_ALLOW, _NEW_LISTENER, _WAIT_KILLABLE = 1 << 2, 1 << 3, 1 << 5

_PR_SET_NO_NEW_PRIVS = 38

_NEW_NAMESPACES = 0x7E02_0000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
_NEW_TIME = 0x80
_CLONE_PARENT = 0x8000
"""The child would be the host's: to reap, and it never knew of it."""

PRIVILEGES = frozenset(
    "acct add_key adjtimex bpf chroot clock_adjtime clock_settime delete_module fanotify_init"
    " finit_module fsconfig fsmount fsopen fspick init_module ioperm iopl kexec_file_load"
    " kexec_load keyctl lookup_dcookie mount mount_setattr move_mount nfsservctl open_by_handle_at"
    " open_tree open_tree_attr perf_event_open pivot_root quotactl quotactl_fd reboot request_key"
    " setdomainname sethostname setns settimeofday swapoff swapon syslog umount2 userfaultfd"
    " vhangup".split()
)
"""For administrators, and what the kernel's own holes are mostly found in."""
OTHERS = frozenset(
    "kcmp migrate_pages move_pages pidfd_getfd process_madvise process_mrelease".split()
)
"""Reaches into other processes; no everyday program does."""
TRACING = frozenset("ptrace process_vm_readv process_vm_writev".split())
QUEUES = frozenset("mq_open mq_unlink".split())
"""Message queues are files of a kind that Landlock does not know."""
SYSTEM_V = frozenset(
    "shmget shmat shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl".split()
)
"""Shared with every process of the same user, unless there is a namespace for it."""
MODES = frozenset("chmod fchmod fchmodat fchmodat2".split())
TIMES = frozenset("utime utimes futimesat utimensat".split())
OWNERS = frozenset("chown fchown lchown fchownat".split())
ATTRIBUTES = frozenset(
    "setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat"
    " file_setattr".split()
)
METADATA = MODES | TIMES | OWNERS | ATTRIBUTES
CONNECT = frozenset(["connect", "listen"])
"""Both are asked about: who listens in the jail may be connected to."""
AFFINITY = frozenset(["sched_setaffinity"])

_INTERNET = (socket.AF_INET, socket.AF_INET6)
_PIPE_LIKE = (socket.SOCK_STREAM, socket.SOCK_SEQPACKET)
"""Of unix sockets; a datagram may be sent to any path, whatever the socket is connected to."""
_TYPE_BITS = 0xF
_FAST_OPEN = 0x2000_0000
"""Sending with this flag connects, past Landlock."""

_SET_FLAGS = 0x4008_6602, 0x4004_6602
_SET_VERSION = 0x4008_7602, 0x4004_7602
_PUSH_INPUT, _LINUX_CONSOLE = 0x5412, 0x541C
_SET_FAT_ATTRIBUTES = 0x4004_7211
_IOCTLS_DENIED = (*_SET_FLAGS, *_SET_VERSION, _SET_FAT_ATTRIBUTES, _PUSH_INPUT, _LINUX_CONSOLE)
_IOCTLS_OF_FILES = (0x4004_9409, 0x4020_940D, 0xC018_9436, 0x8008_6601, 0x8004_6601, 0x801C_581F)
"""Sharing blocks between two files, which needs both open, and reading a file's flags."""
_KINDS_OF_FILESYSTEMS = 0x94, 0x58, 0x66, 0xF5, 0xBC, 0xCF
"""All else of btrfs, XFS, ext4, F2FS, bcachefs and CIFS: snapshots and more, of files open for
reading only."""

_F_SETLEASE = 1024
_O_ACCMODE, _O_TRUNC = 0o3, 0o1000
SET_ID = 0o6000
_PRIO_USER = 2
_IOPRIO_WHO_USER = 3
_DENIED = bpf.fail(errno.EPERM)
_MISSING = bpf.fail(errno.ENOSYS)
_UNSUPPORTED = bpf.fail(errno.EOPNOTSUPP)


class Filter(NamedTuple):
    """What to deny beside what is always denied."""

    denied: frozenset[str]
    """Calls that fail whatever their arguments."""
    asked: frozenset[str] = frozenset()
    """Calls that are decided on by whoever listens."""
    unsupported: frozenset[str] = frozenset()
    """Calls that fail as on a filesystem that has no such thing, which programs are used to."""
    network: Literal["off", "loopback", "tcp", "on"] = "off"
    """With `loopback` there is a network namespace that has no other; with `tcp` there are TCP
    connections only, for Landlock to rule by port."""
    unix_sockets: bool = False
    """Whether sockets of files may be connected to, wherever they are."""
    lacks_truncate: bool = False
    """Whether Landlock is too old to know of truncation."""


def is_available() -> bool:
    """True if this kernel takes filters, and this machine's system calls are known."""
    if kernel.machine() is None:
        return False
    try:
        kernel.call("seccomp", _GET_ACTION_AVAIL, 0, ctypes.byref(ctypes.c_uint32(bpf.ASK)))
    except OSError:
        return False
    return True


def try_to_listen() -> None:
    """Put a filter on the calling thread that has a listener, and close that again.

    Raises:
        OSError: It cannot be; there may be one listener only, and an outer sandbox may have it.
    """
    kernel.prctl(_PR_SET_NO_NEW_PRIVS, 1)
    fd = install(Filter(denied=frozenset(), asked=CONNECT))
    if fd is not None:
        os.close(fd)


def install(wanted: Filter) -> int | None:
    """Put a filter on the calling thread, for ever, and on all that it starts.

    Needs no_new_privs. Returns a descriptor to listen on, if there is anything to be asked.
    """
    code = compile_filter(wanted)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = _Program(len(code) // 8, ctypes.addressof(buffer))
    if not wanted.asked:
        kernel.call("seccomp", _SET_MODE_FILTER, _SPEC_ALLOW, ctypes.byref(header))
        return None
    flags = _SPEC_ALLOW | _NEW_LISTENER
    try:
        # A signal must not have a call made twice that was performed already.
        return kernel.call(
            "seccomp", _SET_MODE_FILTER, flags | _WAIT_KILLABLE, ctypes.byref(header)
        )
    except OSError as error:
        if error.errno != errno.EINVAL:  # before Linux 5.19
            raise
        return kernel.call("seccomp", _SET_MODE_FILTER, flags, ctypes.byref(header))


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]


def compile_filter(wanted: Filter) -> bytes:
    """Return a filter as the kernel reads it."""
    here = kernel.machine()
    assert here is not None  # noqa: S101 -- asked before by is_available
    denied = PRIVILEGES | OTHERS | QUEUES | wanted.denied
    blocks = [
        _on("io_uring_setup io_uring_enter io_uring_register clone3", [bpf.answer(_MISSING)]),
        bpf.on_call(kernel.numbers(wanted.asked - AFFINITY), [bpf.answer(bpf.ASK)]),
        bpf.on_call(kernel.numbers(wanted.unsupported), [bpf.answer(_UNSUPPORTED)]),
        bpf.on_call(kernel.numbers(denied - wanted.asked), [bpf.answer(_DENIED)]),
        _on("clone", _deny_bits(0, _NEW_NAMESPACES | _CLONE_PARENT)),
        *([] if "chmod" in denied | wanted.asked else _no_other_users()),
        _on("unshare", _deny_bits(0, _NEW_NAMESPACES | _NEW_TIME)),
        _on("ioctl", _ioctl()),
        _on("fcntl", _deny_values(1, _F_SETLEASE)),
        *_others_limits(asks="sched_setaffinity" in wanted.asked),
        *_sockets(wanted),
        *(_truncation() if wanted.lacks_truncate else ()),
    ]
    return bpf.program(here.audit_arch, kernel.NEWEST, _MISSING, blocks)


def _on(names: str, block: list[bpf.Op]) -> list[bpf.Op]:
    return bpf.on_call(kernel.numbers(frozenset(names.split())), block)


def _deny_bits(index: int, mask: int) -> list[bpf.Op]:
    return [
        bpf.argument(index),
        *bpf.answer_if_any_bit(mask, _DENIED),
        bpf.answer(bpf.ALLOW),
    ]


def _deny_values(index: int, *values: int) -> list[bpf.Op]:
    return [bpf.argument(index), *bpf.answer_if(values, _DENIED), bpf.answer(bpf.ALLOW)]


def _allow_values(index: int, *values: int) -> list[bpf.Op]:
    return [bpf.argument(index), *bpf.answer_if(values, bpf.ALLOW), bpf.answer(_DENIED)]


def _ioctl() -> list[bpf.Op]:
    return [
        bpf.argument(1),
        *bpf.answer_if(_IOCTLS_DENIED, _DENIED),
        *bpf.answer_if(_IOCTLS_OF_FILES, bpf.ALLOW),
        bpf.keep_bits(0xFF00),
        *bpf.answer_if((kind << 8 for kind in _KINDS_OF_FILESYSTEMS), _DENIED),
        bpf.answer(bpf.ALLOW),
    ]


def _others_limits(*, asks: bool) -> list[list[bpf.Op]]:
    """Keep limits, priorities and processors of other processes as they are; one's own is 0."""
    # Programs give their own threads processors by number.
    affinity = bpf.answer(bpf.ASK if asks else _DENIED)
    return [
        _on("sched_setaffinity", [bpf.argument(0), *bpf.answer_if([0], bpf.ALLOW), affinity]),
        _on(
            "prlimit64",
            [
                bpf.argument(0),
                *bpf.answer_if([0], bpf.ALLOW),
                # To read another's limits is harmless: then there is no new limit.
                bpf.argument(2),
                *bpf.answer_if_any_bit(0xFFFF_FFFF, _DENIED),
                bpf.argument(2, high=True),
                *bpf.answer_if_any_bit(0xFFFF_FFFF, _DENIED),
                bpf.answer(bpf.ALLOW),
            ],
        ),
        _on("sched_setattr sched_setparam sched_setscheduler", _allow_values(0, 0)),
        _on("setpriority", _own_only(_PRIO_USER)),
        _on("ioprio_set", _own_only(_IOPRIO_WHO_USER)),
    ]


def _own_only(all_of_a_user: int) -> list[bpf.Op]:
    return [
        bpf.argument(0),
        *bpf.answer_if([all_of_a_user], _DENIED),
        *_allow_values(1, 0),
    ]


def _sockets(wanted: Filter) -> list[list[bpf.Op]]:
    pipe_like = [
        bpf.argument(1),
        bpf.keep_bits(_TYPE_BITS),
        *bpf.answer_if(_PIPE_LIKE, bpf.ALLOW),
        bpf.answer(_DENIED),
    ]
    only_unix = bpf.answer_unless([socket.AF_UNIX], _DENIED)
    pair = [bpf.argument(0), *only_unix, *pipe_like]
    if wanted.network == "on":
        return _open_sockets(pair, wanted)
    if wanted.network == "tcp":
        # To listen binds to a port of the kernel's choice, past Landlock.
        no_listen = _on("listen", [bpf.answer(_DENIED)])
        return [_on("socketpair", pair), _on("socket", _tcp_only()), no_listen, *_no_fast_open()]
    connect = [] if "connect" in wanted.asked else [_on("connect", [bpf.answer(_DENIED)])]
    if wanted.network == "off":
        return [_on("socket socketpair", pair), *connect]
    internet = bpf.answer_if(_INTERNET, bpf.ALLOW)
    sockets = [bpf.argument(0), *internet, *only_unix, *pipe_like]
    return [_on("socketpair", pair), _on("socket", sockets), *connect]


def _open_sockets(pair: list[bpf.Op], wanted: Filter) -> list[list[bpf.Op]]:
    families = [*_INTERNET, socket.AF_UNIX] if wanted.unix_sockets else _INTERNET
    sockets = [bpf.argument(0), *bpf.answer_if(families, bpf.ALLOW), *_route_only()]
    return [_on("socket", sockets), *([] if wanted.unix_sockets else [_on("socketpair", pair)])]


def _route_only() -> list[bpf.Op]:
    """Allow to ask which addresses the machine has, as every resolver does."""
    deny_rest = bpf.answer_unless([socket.AF_NETLINK], _DENIED)
    return [*deny_rest, *_allow_values(2, socket.NETLINK_ROUTE)]


def _tcp_only() -> list[bpf.Op]:
    return [
        bpf.argument(1),
        bpf.keep_bits(_TYPE_BITS),
        *bpf.answer_unless([socket.SOCK_STREAM], _DENIED),
        # Other protocols of streams (MPTCP, SCTP) are not TCP to Landlock.
        bpf.argument(2),
        *bpf.answer_unless([0, socket.IPPROTO_TCP], _DENIED),
        *_allow_values(0, *_INTERNET),
    ]


def _no_fast_open() -> list[list[bpf.Op]]:
    return [
        _on("sendto", _deny_bits(3, _FAST_OPEN)),
        _on("sendmsg", _deny_bits(2, _FAST_OPEN)),
        _on("sendmmsg", _deny_bits(3, _FAST_OPEN)),
    ]


def _no_other_users() -> list[list[bpf.Op]]:
    """Let no file become one that runs as its owner: root, and outside the sandbox.

    One that is made so has no content yet, and loses that with the first byte.
    """
    return [
        _on("chmod fchmod", _deny_bits(1, SET_ID)),
        _on("fchmodat fchmodat2", _deny_bits(2, SET_ID)),
    ]


def _truncation() -> list[list[bpf.Op]]:
    """Close the ways to truncate a file without a right to write it."""

    def open_with(flags_at: int) -> list[bpf.Op]:
        # To open for writing needs Landlock's right to write; it is O_TRUNC without that.
        return [
            bpf.argument(flags_at),
            bpf.keep_bits(_O_ACCMODE | _O_TRUNC),
            *bpf.answer_if([_O_TRUNC, _O_TRUNC | _O_ACCMODE], _DENIED),
            bpf.answer(bpf.ALLOW),
        ]

    return [
        _on("truncate", [bpf.answer(_DENIED)]),
        _on("open", open_with(1)),
        _on("openat", open_with(2)),
        _on("openat2", [bpf.answer(_MISSING)]),  # its flags lie behind a pointer
    ]
