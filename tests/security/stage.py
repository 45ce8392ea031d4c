"""Targets for attempts, one of each for each of them, and what has become of them."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import subprocess
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from support import wait_until

from security.attacks.calls import Aim, call, libc
from security.attacks.metadata import NAME
from security.attacks.privileges import KEY, NEVER_OUTSIDE
from security.attacks.processes import SECRET
from security.host import IS_ROOT, STRANGER

Judge = Callable[[str], bool]
"""Says, of what an attempt said, whether it has had an effect outside."""
_GET_FLAGS = 0x8008_6601
_GET_VERSION = 0x8008_7601
_IPC_CREAT, _IPC_RMID = 0o1000, 0


class Stage:
    """Makes targets in a directory of the user's own, and clears them away."""

    def __init__(self, base: Path, workspace: Path, tools: Path) -> None:
        self._base, self._workspace, self._tools = base, workspace, tools
        self._opened = ExitStack()
        self._count = 0

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def target(self, kind: str, name: str) -> tuple[Aim, Judge]:
        """Return what an attempt is to be aimed at, and what judges it."""
        self._count += 1
        makers = {
            "files": lambda: self._files(),
            "sockets": lambda: self._listener(name),
            "processes": lambda: self._process(name),
            "privileges": lambda: self._privileges(name),
        }
        return makers[kind]()

    def _tree(self) -> Aim:
        outside, inside = self._base / f"out{self._count}", self._workspace / f"in{self._count}"
        for path in (outside / "dir", outside / "empty", inside):
            path.mkdir(parents=True)
        for name in ("file", "other", "dir/inner"):
            (outside / name).write_text(f"kept {name}\n" * 3)
        os.setxattr(outside / "file", NAME, b"kept")
        (outside / "link").symlink_to("file")
        (inside / "own").write_text("own\n")
        (inside / "link").symlink_to(outside / "file")
        (inside / "way").symlink_to(outside)
        return Aim(outside=str(outside), inside=str(inside), pid=os.getpid(), user=os.getuid(),
                   tools=str(self._tools))  # fmt: skip

    def _files(self) -> tuple[Aim, Judge]:
        aim = self._tree()
        aim.fd = os.open(f"{aim.outside}/file", os.O_RDWR)
        self._opened.callback(os.close, aim.fd)
        if IS_ROOT and aim.user == 0:
            aim.user = STRANGER
        before = tree(Path(aim.outside))
        return aim, lambda _: tree(Path(aim.outside)) != before

    def _listener(self, name: str) -> tuple[Aim, Judge]:
        kind = name.partition(":")[0]
        if kind == "made":
            return Aim(address=str(Path("/proc/self/ns/net").readlink())), _is_told
        one, address = _LISTENERS[kind](f"{self._base}/socket{self._count}")
        self._opened.callback(one.close)
        one.setblocking(False)
        port = one.getsockname()[1] if one.family != socket.AF_UNIX else 0
        return Aim(address=address, port=port), lambda _: _has_heard(one)

    def _process(self, name: str) -> tuple[Aim, Judge]:
        aim = self._tree()
        # What is done to all processes of a user must never be done to root's.
        aim.user = STRANGER if aim.user == 0 else aim.user
        aim.user -= name.startswith("ioprio")
        is_strangers = name.endswith("of a user") and os.getuid() == 0
        victim = subprocess.Popen(
            ["/bin/sleep", "120"],
            env={"X": SECRET.decode()},
            start_new_session=True,
            user=aim.user if is_strangers else None,
        )
        self._opened.callback(_end, victim)
        aim.pid = aim.group = victim.pid
        # exec has its memory ready only some time after the caller goes on.
        assert wait_until(lambda: _has(victim.pid, _environment_at(victim.pid)))
        aim.at = _environment_at(victim.pid) + len("X=")
        before = condition(victim.pid, aim.at)
        return aim, lambda said: _is_told(said) or condition(victim.pid, aim.at) != before

    def _privileges(self, name: str) -> tuple[Aim, Judge]:
        aim = self._tree()
        if name in NEVER_OUTSIDE:
            return aim, lambda said: said not in ("1", "38")  # EPERM, ENOSYS
        if name in ("shmat", "shmctl", "semop", "msgsnd", "32 bit ipc"):
            self._share()
        if name == "mq_open":
            aim.address = f"security-{os.getpid()}"
            queue = call("mq_open", aim.address, os.O_CREAT | os.O_RDONLY, 0o600, None)
            self._opened.callback(call, 241, aim.address)
            self._opened.callback(os.close, queue)
        return aim, _is_told

    def _share(self) -> None:
        """Make System V things that all processes of this user could use."""
        memory = libc.shmget(KEY, 64, _IPC_CREAT | 0o600)
        libc.shmat.restype = ctypes.c_void_p
        ctypes.memmove(libc.shmat(memory, None, 0), b"secret", 6)
        self._opened.callback(libc.shmctl, memory, _IPC_RMID, None)
        semaphores = libc.semget(KEY, 1, _IPC_CREAT | 0o600)
        self._opened.callback(libc.semctl, semaphores, 0, _IPC_RMID)
        queue = libc.msgget(KEY, _IPC_CREAT | 0o600)
        self._opened.callback(libc.msgctl, queue, _IPC_RMID, None)


def _is_told(said: str) -> bool:
    return bool(said) and not said.startswith("!")


def tree(root: Path) -> dict[str, object]:
    """Return all there is to know of a directory and what is in it."""
    return {str(path): _known(path) for path in [root, *root.rglob("*")]}


def _known(path: Path) -> object:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    # The change time moves with every change of whatever kind, and cannot be set.
    known: list[object] = [status.st_ino, status.st_mode, status.st_uid, status.st_gid,
                           status.st_nlink, status.st_size, status.st_mtime_ns,
                           status.st_ctime_ns]  # fmt: skip
    known += [(key, os.getxattr(path, key, follow_symlinks=False))
              for key in sorted(os.listxattr(path, follow_symlinks=False))]  # fmt: skip
    if path.is_symlink():
        known.append(path.readlink())
    elif path.is_file() or path.is_dir():
        fd = os.open(path, os.O_RDONLY)
        known += [fcntl.ioctl(fd, request, bytes(8)) for request in (_GET_FLAGS, _GET_VERSION)]
        os.close(fd)
    if path.is_file():
        known.append(path.read_bytes())
    return known


def _stream(address: str, kind: int = socket.SOCK_STREAM) -> tuple[socket.socket, str]:
    one = _bound(socket.AF_UNIX, kind, address)
    one.listen()
    return one, address.removeprefix("\0")


def _bound(family: int, kind: int, address: object) -> socket.socket:
    one = socket.socket(family, kind)
    one.bind(address)  # type: ignore[arg-type]  # of whatever family it is
    return one


def _tcp(family: int, host: str) -> tuple[socket.socket, str]:
    one = _bound(family, socket.SOCK_STREAM, (host, 0))
    one.listen()
    return one, ""


_LISTENERS: dict[str, Callable[[str], tuple[socket.socket, str]]] = {
    "tcp": lambda _: _tcp(socket.AF_INET, "127.0.0.1"),
    "tcp6": lambda _: _tcp(socket.AF_INET6, "::1"),
    "udp": lambda _: (_bound(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)), ""),
    "udp6": lambda _: (_bound(socket.AF_INET6, socket.SOCK_DGRAM, ("::1", 0)), ""),
    "stream": _stream,
    "seqpacket": lambda path: _stream(path, socket.SOCK_SEQPACKET),
    "datagram": lambda path: (_bound(socket.AF_UNIX, socket.SOCK_DGRAM, path), path),
    "abstract": lambda path: _stream("\0" + path),
    "abstract datagram": lambda path: (
        _bound(socket.AF_UNIX, socket.SOCK_DGRAM, "\0" + path), path,
    ),
}  # fmt: skip


def _has_heard(one: socket.socket) -> bool:
    try:
        if one.type == socket.SOCK_DGRAM:
            return bool(one.recv(100))
        one.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _environment_at(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[47])


def _has(pid: int, at: int) -> bool:
    with suppress(OSError):
        return _memory(pid, at) == (b"X=" + SECRET)[: len(SECRET)]
    return False


def _memory(pid: int, at: int) -> bytes:
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        memory.seek(at)
        return memory.read(len(SECRET))


def condition(pid: int, at: int) -> list[object]:
    """Return all that another process could change of a process, but for what it does itself."""
    limits = Path(f"/proc/{pid}/limits").read_text()
    found: list[object] = [limits, os.getpriority(os.PRIO_PROCESS, pid), os.sched_getscheduler(pid),
                           os.sched_getaffinity(pid), call("ioprio_get", 1, pid)]  # fmt: skip
    for name in ("oom_score_adj", "coredump_filter", "timerslack_ns"):
        with suppress(PermissionError):
            found.append(Path(f"/proc/{pid}/{name}").read_text())
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    if state != "Z":
        found.append(_memory(pid, at))
    return [*found, state if state in "TtZ" else "alive"]


def _end(victim: subprocess.Popen[bytes]) -> None:
    victim.send_signal(signal.SIGKILL)
    victim.wait()
