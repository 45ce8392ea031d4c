"""Ways to more rights, to other namespaces, and to what all processes of a user share."""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import socket
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

from security.attacks.calls import AT_EMPTY_PATH, AT_FDCWD, Aim, call, check, int80, libc

NAMESPACES = {
    "mounts": 0x2_0000, "control groups": 0x200_0000, "host name": 0x400_0000, "IPC": 0x800_0000,
    "users": 0x1000_0000, "processes": 0x2000_0000, "network": 0x4000_0000, "time": 0x80,
}  # fmt: skip
_NEW_USER = NAMESPACES["users"]
KEY = 0x1137E7
"""Of the System V things that the test made."""


def _done(_: object) -> str:
    return "done"


def _then(function: Callable[..., None], *arguments: object) -> str:
    function(*arguments)
    return "done"


def _clone(flags: int) -> str:
    if call("clone", flags | 17, 0, 0, 0, 0) == 0:
        os._exit(0)
    return _done(os.wait())


def _clone3(flags: int) -> str:
    if call("clone3", struct.pack("=11Q", flags, *[0] * 3, 17, *[0] * 6), 88) == 0:
        os._exit(0)
    return _done(os.wait())


def _mount(a: Aim, source: str, kind: str | None, flags: int) -> str:
    call("mount", source, f"{a.outside}/empty", kind, flags, None)
    return _done(call("umount2", f"{a.outside}/empty", 2))


def _open_tree(a: Aim) -> str:
    clone = 1
    return _done(call("open_tree", AT_FDCWD, a.outside, clone))


def _read_write_again(a: Aim) -> str:
    """Take a copy of the mount, clear its read-only flag, and write through the descriptor."""
    clone, read_only = 1, 1
    fd = call("open_tree", AT_FDCWD, a.outside, clone)
    call("mount_setattr", fd, "", AT_EMPTY_PATH, struct.pack("=QQQQ", 0, read_only, 0, 0), 32)
    return _done(os.open("file", os.O_WRONLY, dir_fd=fd))


def _set_attributes(a: Aim) -> str:
    return _done(call("mount_setattr", AT_FDCWD, "/", 0, struct.pack("=QQQQ", 0, 0, 0, 0), 32))


def _status(name: str) -> str:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(name))


def _take_capabilities(_: Aim) -> str:
    call(
        "capset",
        struct.pack("=II", 0x20080522, 0),
        struct.pack("=6I", 1 << 21, 1 << 21, 0, 0, 0, 0),
    )
    return "done"


def _any_capability(_: Aim) -> str:
    kinds = ("CapEff", "CapPrm", "CapInh", "CapAmb")
    return "".join(str(int(_status(kind), 16) or "") for kind in kinds)


def _raise_limit(kind: int) -> str:
    _, hard = resource.getrlimit(kind)
    if hard < 0:
        hard = 1 << 40
        resource.setrlimit(kind, (hard, hard))
    resource.setrlimit(kind, (hard + 1, hard + 1))
    return "done"


def _queue(a: Aim) -> str:
    fd = call("mq_open", a.address, os.O_WRONLY, 0, None)
    return _done(call("mq_timedsend", fd, b"escaped", 7, 0, None))


def _shared_memory(_: Aim) -> str:
    segment = check(libc.shmget(KEY, 64, 0o600))
    libc.shmat.restype = ctypes.c_void_p
    at = libc.shmat(segment, None, 0)
    return ctypes.string_at(at, 6).decode() if at not in (None, 2**64 - 1) else ""


def _bpf(_: Aim) -> str:
    make_map, array = 0, 2
    return _done(call("bpf", make_map, struct.pack("=5I", array, 4, 4, 1, 0).ljust(72, b"\0"), 72))


def _pivot(a: Aim) -> str:
    os.chdir(a.outside)
    call("unshare", NAMESPACES["mounts"])
    call("mount", "none", "/", None, 0x4_4000, None)
    call("mount", a.outside, a.outside, None, 0x1000, None)
    return _done(call("pivot_root", a.outside, f"{a.outside}/empty"))


def _control(device: str, request: int) -> str:
    return _done(fcntl.ioctl(os.open(device, os.O_RDONLY), request, 0))


def _become(_: Aim) -> str:
    os.setresuid(0, 0, 0) if os.getuid() else os.setresuid(1, 1, 1)
    return "done"


def _groups(_: Aim) -> str:
    os.setgroups([6])
    return "done"


def _read_by(program: str, a: Aim) -> str:
    """Read what only those with privileges can."""
    return subprocess.run([program, f"{a.tools}/sealed"], capture_output=True, text=True).stdout


def _same_name(_: Aim) -> str:
    socket.sethostname(socket.gethostname())
    return "done"


ATTEMPTS: dict[str, Callable[[Aim], object]] = {
    **{f"unshare: {name}": lambda _, f=flag: _done(call("unshare", f))  # type: ignore[misc]
       for name, flag in NAMESPACES.items()},
    "unshare: users and mounts": lambda _: _done(call("unshare", _NEW_USER | 0x2_0000)),
    "clone: users": lambda _: _clone(_NEW_USER),
    "clone: network": lambda _: _clone(_NEW_USER | NAMESPACES["network"]),
    "clone3: users": lambda _: _clone3(_NEW_USER),
    "32 bit unshare": lambda _: _done(int80(310, _NEW_USER)),
    "setns": lambda _: _done(call("setns", os.open("/proc/self/ns/mnt", os.O_RDONLY), 0)),
    "setns of the host": lambda a: _done(
        call("setns", os.open(f"/proc/{a.pid}/ns/net", os.O_RDONLY), 0)
    ),
    "setns by pidfd": lambda a: _done(call("setns", call("pidfd_open", a.pid, 0), 0x2_0000)),
    "mount": lambda a: _mount(a, "none", "tmpfs", 0),
    "mount --bind": lambda a: _mount(a, "/etc", None, 0x1000),
    "open_tree": _open_tree,
    "open_tree and mount_setattr": _read_write_again,
    "mount_setattr": _set_attributes,
    "fsopen": lambda _: _done(call("fsopen", "tmpfs", 0)),
    "fspick": lambda a: _done(call("fspick", AT_FDCWD, "/", 0)),
    "pivot_root": _pivot,
    "chroot": lambda _: _then(os.chroot, "/"),
    "sethostname": _same_name,
    "keyctl": lambda _: _done(call("keyctl", 0, -2, 1)),
    "add_key": lambda _: _done(call("add_key", "user", "limpet-test", b"x", 1, -2)),
    "keyctl of the session": lambda _: _done(call("keyctl", 0, -3, 0)),
    "bpf": _bpf,
    "perf_event_open": lambda _: _done(
        call("perf_event_open", struct.pack("=IIQ", 1, 64, 0).ljust(64, b"\0"), 0, -1, -1, 0)
    ),
    "userfaultfd": lambda _: _done(call("userfaultfd", 1)),
    "fanotify_init": lambda _: _done(call("fanotify_init", 0x200, 0)),
    "capset": _take_capabilities,
    "any capability": _any_capability,
    "without no_new_privs": lambda _: "done" if _status("NoNewPrivs") == "0" else "",
    "without a filter": lambda _: "done" if _status("Seccomp") == "0" else "",
    "setuid": _become,
    "setgroups": _groups,
    "keep capabilities": lambda _: _done(check(libc.prctl(28, 0, 0, 0, 0))),
    "raise a limit: files": lambda _: _raise_limit(resource.RLIMIT_NOFILE),
    "raise a limit: CPU": lambda _: _raise_limit(resource.RLIMIT_CPU),
    "raise a limit: memory": lambda _: _raise_limit(resource.RLIMIT_DATA),
    "raise a limit: core": lambda _: _raise_limit(resource.RLIMIT_CORE),
    "be more urgent": lambda _: _then(os.setpriority, os.PRIO_PROCESS, 0, -5),
    "real time": lambda _: _then(
        os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1)
    ),
    "own oom_score_adj": lambda _: _done(Path("/proc/self/oom_score_adj").write_text("-500")),
    "/dev/userfaultfd": lambda _: _control("/dev/userfaultfd", 0xAA00),
    "/dev/loop-control": lambda _: _control("/dev/loop-control", 0x4C82),
    "shmat": _shared_memory,
    "shmctl": lambda _: _done(check(libc.shmctl(check(libc.shmget(KEY, 64, 0)), 13, bytes(200)))),
    "semop": lambda _: _done(
        check(libc.semop(check(libc.semget(KEY, 1, 0)), struct.pack("=HhH", 0, 1, 0o4000), 1))
    ),
    "msgsnd": lambda _: _done(
        check(libc.msgsnd(check(libc.msgget(KEY, 0)), struct.pack("=q4s", 1, b"esc"), 4, 0o4000))
    ),
    "32 bit ipc": lambda _: _done(int80(395, KEY, 64, 0)),
    "mq_open": _queue,
    "a set-user-ID program": lambda a: _read_by(f"{a.tools}/setuid", a),
    "a program with capabilities": lambda a: _read_by(f"{a.tools}/capable", a),
}  # fmt: skip

NEVER_OUTSIDE: dict[str, tuple[object, ...]] = {
    "settimeofday": (None, None), "clock_settime": (0, None),
    "adjtimex": (b"\1" + bytes(300),),
    "reboot": (0, 0, 0), "swapon": ("/nowhere", 0), "swapoff": ("/nowhere",),
    "init_module": (b"", 0, ""), "finit_module": (-1, "", 0), "delete_module": ("nothing", 0x800),
    "kexec_load": (0, 0, None, 0), "acct": ("/nowhere",), "quotactl": (-1, None, 0, None),
    "syslog": (9, None, 0), "vhangup": (), "iopl": (3,), "ioperm": (0x80, 1, 1),
    "setdomainname": ("escaped", 7), "open_by_handle_at": (-1, None, 0), "umount2": ("/nowhere", 0),
    "move_mount": (-1, "", -1, "", 0), "fsmount": (-1, 0, 0),
    "request_key": ("user", "none", None, 0),
}  # fmt: skip
"""Only tried in the jail, with arguments that could do no harm: they must fail with EPERM."""


def never_outside(name: str) -> str:
    """Make one of those calls and return the number of the error."""
    try:
        call(name, *NEVER_OUTSIDE[name])
    except OSError as error:
        return str(error.errno)
    return "0"
