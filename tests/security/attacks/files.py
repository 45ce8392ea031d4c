"""Ways to change a file, a name or a directory outside the workspace."""

# The calls themselves are what is tried.
# ruff: noqa: PTH102, PTH104, PTH105, PTH106, PTH108, PTH208, PTH211

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import socket
import stat
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

from security.attacks import uring
from security.attacks.calls import (
    AT_EMPTY_PATH,
    AT_FDCWD,
    AT_SYMLINK_FOLLOW,
    Aim,
    call,
    int80,
    libc,
)

EXCHANGE, WHITEOUT, NO_REPLACE = 2, 4, 1


def write(path: str, flags: int = os.O_WRONLY, *, at: int | None = None) -> int:
    fd = os.open(path, flags, 0o644, dir_fd=at)
    return os.write(fd, b"escaped\n")


def _reopened(path: str, flags: int) -> int:
    fd = os.open(path, flags)
    return write(f"/proc/self/fd/{fd}")


def _passed(a: Aim) -> int:
    one, two = socket.socketpair()
    socket.send_fds(one, [b"x"], [os.open(f"{a.outside}/file", os.O_RDONLY)])
    _, fds, _, _ = socket.recv_fds(two, 1, 1)
    return write(f"/proc/self/fd/{fds[0]}", os.O_RDWR)


def _link_in_and_write(a: Aim) -> int:
    os.link(f"{a.outside}/file", f"{a.inside}/gained")
    return write(f"{a.inside}/gained")


def _rename_in_and_write(a: Aim) -> int:
    os.rename(f"{a.outside}/dir", f"{a.inside}/gained")
    return write(f"{a.inside}/gained/inner")


def _temporary_file(a: Aim, where: str) -> int:
    fd = os.open(where, os.O_TMPFILE | os.O_RDWR, 0o644)
    return call("linkat", AT_FDCWD, f"/proc/self/fd/{fd}", AT_FDCWD, f"{a.outside}/new",
                AT_SYMLINK_FOLLOW)  # fmt: skip


def _mapped(a: Aim) -> None:
    fd = os.open(f"{a.outside}/file", os.O_RDWR)
    with mmap.mmap(fd, 4) as view:
        view[:4] = b"gone"


def _from_zero(a: Aim) -> tuple[int, int]:
    return os.open("/usr/bin/env", os.O_RDONLY), os.open(f"{a.outside}/file", os.O_WRONLY)


def _sendfile(a: Aim) -> None:
    source, target = _from_zero(a)
    os.sendfile(target, source, 0, 100)


def _copy_range(a: Aim) -> None:
    source, target = _from_zero(a)
    os.copy_file_range(source, target, 100)


def _splice(a: Aim) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b"escaped")
    os.splice(read_end, os.open(f"{a.outside}/file", os.O_WRONLY), 7)


def _allocate(a: Aim) -> None:
    os.posix_fallocate(os.open(f"{a.outside}/file", os.O_RDWR), 0, 100_000)


def _punch(a: Aim) -> int:
    fd = os.open(f"{a.outside}/file", os.O_RDWR)
    return int(libc.fallocate(fd, 1 | 2, 0, 4))


def _through_anonymous_program(a: Aim) -> None:
    fd = os.memfd_create("touch")
    os.write(fd, Path("/usr/bin/touch").read_bytes())
    os.execve(fd, ["touch", f"{a.outside}/new"], {})


def _by_clone(a: Aim, name: str, *arguments: object) -> None:
    if call(name, *arguments) == 0:
        os.mkdir(f"{a.outside}/new")
        os._exit(0)
    os.wait()


def _by_handle(a: Aim) -> int:
    handle = bytearray(struct.pack("=Ii", 128, 0) + bytes(128))
    buffer = (ctypes.c_char * len(handle)).from_buffer(handle)
    mount = ctypes.byref(ctypes.c_int())
    call("name_to_handle_at", AT_FDCWD, f"{a.outside}/file", buffer, mount, 0)
    fd = call("open_by_handle_at", os.open("/", os.O_RDONLY), buffer, os.O_WRONLY)
    return os.write(fd, b"escaped")


def _openat2(a: Aim) -> int:
    how = struct.pack("=QQQ", os.O_CREAT | os.O_WRONLY, 0o644, 0)
    return call("openat2", AT_FDCWD, f"{a.outside}/new", how, len(how))


def _bound(a: Aim) -> None:
    socket.socket(socket.AF_UNIX).bind(f"{a.outside}/new")


def _after_chroot(a: Aim) -> int:
    os.chroot("/proc/self/root")
    return write(f"{a.outside}/file")


def _after_setns(a: Aim) -> int:
    call("setns", os.open(f"/proc/{a.pid}/ns/mnt", os.O_RDONLY), 0)
    return write(f"{a.outside}/file")


def _through_threads(a: Aim, place: str) -> int:
    done = 0
    for tid in os.listdir(f"/proc/{a.pid}/task"):
        try:
            done += write(f"/proc/{tid}/{place}")
        except OSError:
            continue
    return done


def _take_descriptor(a: Aim) -> int:
    pidfd = call("pidfd_open", a.pid, 0)
    return os.write(call("pidfd_getfd", pidfd, a.fd, 0), b"escaped")


def _core(a: Aim) -> None:
    os.chdir(a.outside)
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    if os.fork() == 0:
        os.abort()
    os.wait()


ATTEMPTS: dict[str, Callable[[Aim], object]] = {
    # Content
    "write": lambda a: write(f"{a.outside}/file"),
    "write and read": lambda a: write(f"{a.outside}/file", os.O_RDWR),
    "append": lambda a: write(f"{a.outside}/file", os.O_WRONLY | os.O_APPEND),
    "write directly": lambda a: write(f"{a.outside}/file", os.O_WRONLY | os.O_SYNC),
    "O_RDONLY with O_TRUNC": lambda a: os.open(f"{a.outside}/file", os.O_RDONLY | os.O_TRUNC),
    "O_ACCMODE with O_TRUNC": lambda a: os.open(f"{a.outside}/file", 3 | os.O_TRUNC),
    "truncate by path": lambda a: os.truncate(f"{a.outside}/file", 1),
    "truncate by descriptor": lambda a: os.ftruncate(os.open(f"{a.outside}/file", os.O_RDWR), 1),
    "mmap": _mapped,
    "sendfile": _sendfile,
    "copy_file_range": _copy_range,
    "splice": _splice,
    "fallocate": _allocate,
    "punch a hole": _punch,
    # By another way to the same file
    "through a symbolic link": lambda a: write(f"{a.inside}/link"),
    "through a link to the directory": lambda a: write(f"{a.inside}/way/file"),
    "relative": lambda a: write(os.path.relpath(f"{a.outside}/file")),
    "/proc/self/root": lambda a: write(f"/proc/self/root{a.outside}/file"),
    "/proc/thread-self/root": lambda a: write(f"/proc/thread-self/root{a.outside}/file"),
    "/proc/self/cwd": lambda a: write("/proc/self/cwd/" + os.path.relpath(f"{a.outside}/file")),
    "reopen O_PATH": lambda a: _reopened(f"{a.outside}/file", os.O_PATH),
    "reopen O_RDONLY": lambda a: _reopened(f"{a.outside}/file", os.O_RDONLY),
    "at a directory": lambda a: write("file", at=os.open(a.outside, os.O_PATH)),
    "create at a directory": lambda a: write(
        "new", os.O_CREAT | os.O_WRONLY, at=os.open(a.outside, os.O_RDONLY)
    ),
    "a descriptor passed by SCM_RIGHTS": _passed,
    "open_by_handle_at": _by_handle,
    "/proc of the host: root": lambda a: _through_threads(a, f"root{a.outside}/file"),
    "/proc of the host: cwd": lambda a: _through_threads(
        a, "cwd/" + os.path.relpath(f"{a.outside}/file", "/")
    ),
    "/proc of the host: fd": lambda a: _through_threads(a, f"fd/{a.fd}"),
    "pidfd_getfd": _take_descriptor,
    "chroot": _after_chroot,
    "setns": _after_setns,
    # Names
    "create": lambda a: write(f"{a.outside}/new", os.O_CREAT | os.O_EXCL | os.O_WRONLY),
    "openat2": _openat2,
    "remove": lambda a: os.unlink(f"{a.outside}/file"),
    "remove at a directory": lambda a: os.unlink("file", dir_fd=os.open(a.outside, os.O_RDONLY)),
    "remove a directory": lambda a: os.rmdir(f"{a.outside}/empty"),
    "remove a link": lambda a: os.unlink(f"{a.outside}/link"),
    "mkdir": lambda a: os.mkdir(f"{a.outside}/new"),
    "mkdir at a directory": lambda a: os.mkdir("new", dir_fd=os.open(a.outside, os.O_PATH)),
    "mkfifo": lambda a: os.mkfifo(f"{a.outside}/new"),
    "mknod of a file": lambda a: os.mknod(f"{a.outside}/new", stat.S_IFREG | 0o644),
    "mknod of a socket": lambda a: os.mknod(f"{a.outside}/new", stat.S_IFSOCK | 0o644),
    "mknod of a device": lambda a: os.mknod(f"{a.outside}/new", stat.S_IFCHR | 0o644, 0x103),
    "bind": _bound,
    "symlink": lambda a: os.symlink("/", f"{a.outside}/new"),
    "link": lambda a: os.link(f"{a.outside}/file", f"{a.outside}/new"),
    "link out": lambda a: os.link(f"{a.inside}/own", f"{a.outside}/new"),
    "link in and write": _link_in_and_write,
    "link of a descriptor": lambda a: call(
        "linkat", AT_FDCWD, f"/proc/self/fd/{os.open(f'{a.outside}/file', os.O_PATH)}",
        AT_FDCWD, f"{a.inside}/gained", AT_SYMLINK_FOLLOW,
    ),
    "link of an empty path": lambda a: call(
        "linkat", os.open(f"{a.outside}/file", os.O_RDONLY), "",
        AT_FDCWD, f"{a.inside}/gained", AT_EMPTY_PATH,
    ),
    "O_TMPFILE outside": lambda a: _temporary_file(a, a.outside),
    "O_TMPFILE inside": lambda a: _temporary_file(a, a.inside),
    "rename": lambda a: os.rename(f"{a.outside}/file", f"{a.outside}/new"),
    "rename over": lambda a: os.replace(f"{a.outside}/other", f"{a.outside}/file"),
    "rename of a directory": lambda a: os.rename(f"{a.outside}/dir", f"{a.outside}/new"),
    "rename in": lambda a: os.rename(f"{a.outside}/file", f"{a.inside}/new"),
    "rename in and write": _rename_in_and_write,
    "rename out": lambda a: os.rename(f"{a.inside}/own", f"{a.outside}/new"),
    "rename out and over": lambda a: os.replace(f"{a.inside}/own", f"{a.outside}/file"),
    "rename the target itself": lambda a: os.rename(a.outside, a.outside + "-new"),
    "RENAME_EXCHANGE": lambda a: call(
        "renameat2", AT_FDCWD, f"{a.inside}/own", AT_FDCWD, f"{a.outside}/file", EXCHANGE
    ),
    "RENAME_EXCHANGE outside": lambda a: call(
        "renameat2", AT_FDCWD, f"{a.outside}/other", AT_FDCWD, f"{a.outside}/file", EXCHANGE
    ),
    "RENAME_NOREPLACE": lambda a: call(
        "renameat2", AT_FDCWD, f"{a.outside}/file", AT_FDCWD, f"{a.outside}/new", NO_REPLACE
    ),
    "RENAME_WHITEOUT": lambda a: call(
        "renameat2", AT_FDCWD, f"{a.outside}/file", AT_FDCWD, f"{a.inside}/new", WHITEOUT
    ),
    # By another program, or by another door of the kernel
    "posix_spawn": lambda a: os.waitpid(
        os.posix_spawn("/usr/bin/touch", ["touch", f"{a.outside}/new"], {}), 0
    ),
    "vfork": lambda a: subprocess.run(["touch", f"{a.outside}/new"], check=False),
    "a program in memory": _through_anonymous_program,
    "clone": lambda a: _by_clone(a, "clone", 17, 0, 0, 0, 0),
    "clone3": lambda a: _by_clone(a, "clone3", struct.pack("=11Q", *[0] * 4, 17, *[0] * 6), 88),
    "clone3 into a namespace": lambda a: _by_clone(
        a, "clone3", struct.pack("=11Q", 0x1000_0000, *[0] * 3, 17, *[0] * 6), 88
    ),
    "a core file": _core,
    "io_uring mkdir": lambda a: uring.submit(uring.MKDIR, f"{a.outside}/new", 0o755),
    "io_uring remove": lambda a: uring.submit(uring.UNLINK, f"{a.outside}/file", 0),
    "io_uring create": lambda a: uring.submit(
        uring.OPEN, f"{a.outside}/new", 0o644, os.O_CREAT | os.O_WRONLY
    ),
    "32 bit creat": lambda a: int80(8, f"{a.outside}/new", 0o644),
    "32 bit open": lambda a: int80(5, f"{a.outside}/file", os.O_WRONLY | os.O_TRUNC),
    "32 bit unlink": lambda a: int80(10, f"{a.outside}/file"),
    "32 bit rename": lambda a: int80(38, f"{a.outside}/file", f"{a.outside}/new"),
    "32 bit link": lambda a: int80(9, f"{a.outside}/file", f"{a.inside}/gained"),
    "32 bit mkdir": lambda a: int80(39, f"{a.outside}/new", 0o755),
    "32 bit truncate": lambda a: int80(92, f"{a.outside}/file", 1),
    "32 bit symlink": lambda a: int80(83, "/", f"{a.outside}/new"),
    "x32 creat": lambda a: call(85 | 0x4000_0000, f"{a.outside}/new", 0o644),
    "x32 unlink": lambda a: call(87 | 0x4000_0000, f"{a.outside}/file"),
}  # fmt: skip

COMMANDS = {
    ">": 'echo escaped > "$T/file"',
    ">>": 'echo escaped >> "$T/file"',
    "<>": 'exec 3<> "$T/file"; echo escaped >&3',
    "noclobber": 'set -C; echo escaped >| "$T/file"',
    "here document": 'cat > "$T/new" <<< escaped',
    "cd and write": 'cd "$T" && echo escaped > file',
    "cd -P through a link": 'cd -P "$W/way" && echo escaped > file',
    "in the background": '{ echo escaped > "$T/file"; } & wait',
    "setsid": "setsid -w sh -c 'echo escaped > \"$T/file\"'",
    "nohup": "nohup sh -c 'echo escaped > \"$T/file\"' > /dev/null",
    "EXIT trap": "trap 'echo escaped > \"$T/file\"' EXIT",
    "coproc": 'coproc { echo escaped > "$T/file"; }; wait',
    "process substitution": 'echo escaped | tee >(cat > "$T/file"); wait; sleep 0.1',
    "tee": 'echo escaped | tee "$T/file"',
    "dd": 'dd if=/dev/zero of="$T/file" count=1',
    "dd conv=notrunc": 'dd if=/dev/zero of="$T/file" bs=1 count=2 conv=notrunc',
    "cp": 'cp /usr/bin/env "$T/new"',
    "cp -a": 'cp -a /etc/passwd "$T/file"',
    "install": 'install -m 755 /usr/bin/env "$T/new"',
    "mv": 'mv "$T/file" "$T/new"',
    "mv in": 'mv -f "$T/file" "$W/gained"',
    "rm": 'rm -f "$T/file"',
    "rm -r": 'rm -rf "$T/dir"',
    "ln": 'ln "$T/file" "$T/new"',
    "ln -sfn": 'ln -sfn /etc "$T/link"',
    "sed -i": 'sed -i s/kept/gone/ "$T/file"',
    "find -delete": 'find "$T" -name file -delete',
    "xargs": 'echo "$T/file" | xargs rm -f',
    "tar": 'cd / && tar cf - etc/passwd | tar xf - -C "$T"',
    "git init": 'git init -q "$T/new"',
    "git --git-dir": 'git --git-dir="$T/new" init -q --bare',
    "perl": 'perl -e \'open F, ">", "$ENV{T}/file"; print F "escaped"\'',
    "awk": 'awk \'BEGIN { print "escaped" > ENVIRON["T"] "/file" }\'',
    "gcc": 'echo "int x;" | gcc -xc -c -o "$T/new" -',
    "patch of a copied program": 'cp /usr/bin/touch "$W/p" && "$W/p" "$T/new"; touch "$T/new"',
    "mkfifo ": 'mkfifo "$T/new"',
    "truncate": 'truncate -s 0 "$T/file"',
    "fallocate ": 'fallocate -l 100000 "$T/file"',
    "shred": 'shred -n 1 "$T/file"',
    "the loader": '/lib*/ld-linux-*.so.* /usr/bin/touch "$T/new"',
    "env -i": 'env -i /usr/bin/touch "$T/new"',
    "unshare": "unshare -Urm sh -c 'mount -o remount,rw / ; echo escaped > \"$T/file\"'",
    "unshare --pid": "unshare -Urpf sh -c 'echo escaped > \"$T/file\"'",
    "script": 'script -qc "touch $T/new" /dev/null',
    "sqlite": "python3 -c \"import sqlite3,os; sqlite3.connect(os.environ['T']+'/new')"
    ".execute('create table t(x)')\"",
    "unsetting the marker": 'unset LIMPET_SANDBOX LIMPET_RUN; touch "$T/new"',
    "a nested limpet": 'exec env LIMPET_SANDBOX=off touch "$T/new"',
}
"""The same as anybody types it: $T is the directory outside, $W the one inside."""
