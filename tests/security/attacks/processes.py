"""Ways to end, change or read a process outside, or a thread of the host itself."""

# The calls themselves are what is tried.
# ruff: noqa: PTH115

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import signal
import socket
import struct
from collections.abc import Callable

from security.attacks.calls import Aim, call, check, int80, libc, vector

USR1 = int(signal.SIGUSR1)
INFO = struct.pack("=iiiiii", USR1, 0, -1, 0, 0, 0).ljust(128, b"\0")
_SET_OWNER_EX, _SET_SIGNAL, _NOTIFY = 15, 10, 1026
_FIOSETOWN = 0x8901
_BEST_EFFORT_LOWEST = 2 << 13 | 7
_SCHED_BATCH = 3
SECRET = b"a secret outside"


def _by_pipe(owner: Callable[[int], object]) -> None:
    read_end, write_end = os.pipe()
    _ask_for_signals(read_end, owner)
    os.write(write_end, b"x")


def _ask_for_signals(fd: int, owner: Callable[[int], object]) -> None:
    owner(fd)
    fcntl.fcntl(fd, _SET_SIGNAL, USR1)
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)


def _by_socket(a: Aim) -> None:
    one, two = socket.socketpair()
    _ask_for_signals(one.fileno(), lambda fd: fcntl.ioctl(fd, _FIOSETOWN, struct.pack("=i", a.pid)))
    two.send(b"x")


def _by_directory(a: Aim) -> None:
    fd = os.open(a.inside, os.O_RDONLY)
    fcntl.fcntl(fd, fcntl.F_SETOWN, a.pid)
    fcntl.fcntl(fd, _SET_SIGNAL, USR1)
    fcntl.fcntl(fd, _NOTIFY, fcntl.DN_ACCESS | fcntl.DN_CREATE)
    inner = os.open(f"{a.inside}/own", os.O_RDONLY)
    os.read(inner, 1)


def _owner_ex(kind: int, who: int) -> Callable[[int], object]:
    return lambda fd: fcntl.fcntl(fd, _SET_OWNER_EX, struct.pack("=ii", kind, who))


def pidfd(pid: int, flags: int = 0) -> int:
    return call("pidfd_open", pid, flags)


def _limit(pid: int, kind: int) -> None:
    _, hard = resource.prlimit(pid, kind)
    call("prlimit64", pid, kind, struct.pack("=QQ", 17, 18 if hard < 0 else min(18, hard)), None)


def _affinity(pid: int) -> None:
    os.sched_setaffinity(pid, {max(os.sched_getaffinity(pid))})


def _sched_attributes(pid: int) -> int:
    size = 48
    return call(
        "sched_setattr", pid, struct.pack("=IIQiIQQQ", size, _SCHED_BATCH, 0, 5, 0, 0, 0, 0), 0
    )


def read_by_call(pid: int, at: int) -> bytes:
    buffer = ctypes.create_string_buffer(len(SECRET))
    call("process_vm_readv", pid, vector(ctypes.addressof(buffer), len(SECRET)), 1,
         vector(at, len(SECRET)), 1, 0)  # fmt: skip
    return buffer.raw


def _write_by_call(a: Aim) -> None:
    buffer = ctypes.create_string_buffer(b"A changed")
    call("process_vm_writev", a.pid, vector(ctypes.addressof(buffer), 9), 1, vector(a.at, 9), 1, 0)


def read_memory(pid: int, at: int) -> bytes:
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        memory.seek(at)
        return memory.read(len(SECRET))


def _write_memory(a: Aim) -> None:
    with open(f"/proc/{a.pid}/mem", "r+b", 0) as memory:
        memory.seek(a.at)
        memory.write(b"A changed")


def trace(a: Aim, request: int) -> str:
    ptrace = libc.ptrace
    ptrace.argtypes = [ctypes.c_long] * 4
    check(ptrace(request, a.pid, 0, 0))
    return "done"


def read(path: str) -> str:
    with open(path, "rb") as file:
        return "done" if file.read(4096) else ""


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _not_root(user: int) -> int:
    assert user, "this would change every process of the machine"
    return user


def _advise(a: Aim) -> str:
    cold = 20
    call("process_madvise", pidfd(a.pid), vector(a.at & ~0xFFF, 4096), 1, cold, 0)
    return "done"


def done(result: int) -> str:
    check(result)
    return "done"


def _observe(a: Aim) -> str:
    software, clock = 1, 0
    attributes = struct.pack("=IIQ", software, 64, clock).ljust(64, b"\0")
    return done(call("perf_event_open", attributes, a.pid, -1, -1, 0))


# The effect is a signal: the process ends, or the host hears it.
SIGNALS: dict[str, Callable[[Aim], object]] = {
    "kill": lambda a: os.kill(a.pid, USR1),
    "tkill": lambda a: call("tkill", a.pid, USR1),
    "rt_sigqueueinfo": lambda a: call("rt_sigqueueinfo", a.pid, USR1, INFO),
    "pidfd_send_signal": lambda a: signal.pidfd_send_signal(pidfd(a.pid), USR1),
    "F_SETOWN": lambda a: _by_pipe(lambda fd: fcntl.fcntl(fd, fcntl.F_SETOWN, a.pid)),
    "F_SETOWN_EX of a thread": lambda a: _by_pipe(_owner_ex(0, a.pid)),
    "F_SETOWN_EX of a process": lambda a: _by_pipe(_owner_ex(1, a.pid)),
    "FIOSETOWN": _by_socket,
    "F_NOTIFY": _by_directory,
    "32 bit kill": lambda a: int80(37, a.pid, USR1),
    "x32 kill": lambda a: call(62 | 0x4000_0000, a.pid, USR1),
}  # fmt: skip
OF_PROCESSES: dict[str, Callable[[Aim], object]] = {
    "tgkill": lambda a: call("tgkill", a.pid, a.pid, USR1),
    "rt_tgsigqueueinfo": lambda a: call("rt_tgsigqueueinfo", a.pid, a.pid, USR1, INFO),
    "kill of a group": lambda a: os.killpg(a.group, USR1),
    "stop": lambda a: os.kill(a.pid, signal.SIGSTOP),
    "F_SETOWN of a group": lambda a: _by_pipe(lambda fd: fcntl.fcntl(fd, fcntl.F_SETOWN, -a.group)),
    "prlimit of files": lambda a: _limit(a.pid, resource.RLIMIT_NOFILE),
    "prlimit of memory": lambda a: _limit(a.pid, resource.RLIMIT_AS),
    "setpriority": lambda a: os.setpriority(os.PRIO_PROCESS, a.pid, 7),
    "setpriority of a group": lambda a: os.setpriority(os.PRIO_PGRP, a.group, 7),
    "setpriority of a user": lambda a: os.setpriority(os.PRIO_USER, _not_root(a.user), 7),
    "ioprio_set": lambda a: call("ioprio_set", 1, a.pid, _BEST_EFFORT_LOWEST),
    "ioprio_set of a group": lambda a: call("ioprio_set", 2, a.group, _BEST_EFFORT_LOWEST),
    "ioprio_set of a user": lambda a: call(
        "ioprio_set", 3, _not_root(a.user), _BEST_EFFORT_LOWEST
    ),
    "sched_setaffinity": lambda a: _affinity(a.pid),
    "sched_setscheduler": lambda a: os.sched_setscheduler(
        a.pid, _SCHED_BATCH, os.sched_param(0)
    ),
    "sched_setattr": lambda a: _sched_attributes(a.pid),
    "process_vm_writev": _write_by_call,
    "/proc mem, written": _write_memory,
    "oom_score_adj": lambda a: _write(f"/proc/{a.pid}/oom_score_adj", "777"),
    "coredump_filter": lambda a: _write(f"/proc/{a.pid}/coredump_filter", "0x7f"),
    "timerslack_ns": lambda a: _write(f"/proc/{a.pid}/timerslack_ns", "777777"),
    # Of these the program itself tells that it was done.
    "PTRACE_ATTACH": lambda a: trace(a, 16),
    "PTRACE_SEIZE": lambda a: trace(a, 0x4206),
    "process_vm_readv": lambda a: read_by_call(a.pid, a.at).decode(),
    "/proc mem": lambda a: read_memory(a.pid, a.at).decode(),
    "/proc environ": lambda a: read(f"/proc/{a.pid}/environ"),
    "/proc maps": lambda a: read(f"/proc/{a.pid}/maps"),
    "/proc auxv": lambda a: read(f"/proc/{a.pid}/auxv"),
    "/proc fd": lambda a: os.readlink(f"/proc/{a.pid}/fd/0"),
    "/proc fd, opened": lambda a: done(os.open(f"/proc/{a.pid}/fd/0", os.O_RDONLY)),
    "/proc cwd": lambda a: os.readlink(f"/proc/{a.pid}/cwd"),
    "/proc exe": lambda a: os.readlink(f"/proc/{a.pid}/exe"),
    "/proc ns": lambda a: os.readlink(f"/proc/{a.pid}/ns/mnt"),
    "pidfd_getfd": lambda a: done(call("pidfd_getfd", pidfd(a.pid), 0, 0)),
    "kcmp": lambda a: done(call("kcmp", a.pid, a.pid, 0, 0, 0)),
    "process_madvise": _advise,
    "move_pages": lambda a: done(call("move_pages", a.pid, 0, None, None, None, 0)),
    "migrate_pages": lambda a: done(
        call("migrate_pages", a.pid, 8, struct.pack("=Q", 1), struct.pack("=Q", 1))
    ),
    "perf_event_open": _observe,
}  # fmt: skip
COMMANDS = {
    "kill ": 'kill -9 "$PID"',
    "/bin/kill": '/bin/kill -s TERM "$PID"',
    "pkill": 'pkill -KILL -g "$PID"',
    "perl ": "perl -e 'kill 9, $ENV{PID}'",
    "renice": 'renice -n 9 -p "$PID"',
    "prlimit": 'prlimit --pid "$PID" --nofile=5:5',
    "taskset": 'taskset -p 2 "$PID"',
    "chrt": 'chrt -b -p 0 "$PID"',
    "gdb-like": 'strace -f -o /dev/null -p "$PID" & sleep 0.2; kill -INT $!; kill -9 "$PID"',
}
