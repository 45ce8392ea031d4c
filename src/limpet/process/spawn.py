"""The one place where a process starts."""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from limpet.process.env import host_environment

if TYPE_CHECKING:
    from limpet.process.steps import Step

if sys.version_info < (3, 15):
    from _posixsubprocess import fork_exec

_HAS_FORK_EXEC = sys.version_info < (3, 15)
"""subprocess.Popen's own engine, whose arguments are known up to Python 3.14. Popen itself spends
as long on encoding an environment and keeping its books as the kernel does on the vfork."""

LONGEST_ARGUMENT = 128 * 1024 - 1
"""The kernel's MAX_ARG_STRLEN, less the NUL: a longer command reaches bash as a script file."""


def find_program(name: str) -> str | None:
    """Return the path of a program, found as the host's own PATH says."""
    return _which(name, host_environment().get(b"PATH"))


@functools.lru_cache(maxsize=16)
def _which(name: str, path: bytes | None) -> str | None:
    # As shutil.which does it; to import that costs as much as starting the shell.
    directories = os.fsdecode(path) if path else os.defpath
    for place in [""] if os.path.dirname(name) else directories.split(os.pathsep):
        found = os.path.join(place, name)
        if os.path.isfile(found) and os.access(found, os.X_OK):  # noqa: PTH113 -- a string
            return found
    return None


def start(
    program: str,
    argv: Sequence[bytes],
    *,
    environment: list[bytes],
    cwd: str,
    stdin: int | None,
    stdout: int,
    stderr: int,
    keep: tuple[int, ...] = (),
    steps: Sequence[Step] = (),
    by: Callable[[Callable[[], int]], int] | None = None,
) -> int:
    """Start a program in a session of its own and return its pid.

    It has no terminal, only descriptors 0 to 2 and those that are kept, and no signal blocked.
    Signals that this program ignores it ignores too, but for SIGPIPE and SIGXFSZ. The caller reaps
    it.

    Args:
        program: Its path.
        argv: Its name and its arguments.
        environment: All it gets, as `NAME=value`.
        cwd: Where it starts.
        stdin: A descriptor to read from; None is /dev/null.
        stdout: A descriptor to write to.
        stderr: A descriptor to write to.
        keep: Further descriptors that it has too, under the same numbers.
        steps: What the child does first.
        by: With steps, has another thread start it, and returns what that returns.

    Raises:
        OSError: It could not be started; nothing is left behind.
    """
    null = os.open(os.devnull, os.O_RDONLY) if stdin is None else -1
    # What this thread blocks, the command would have blocked too, and could neither be ended
    # politely nor trap it. What waits to be delivered to us must not be by the way.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    if blocked and not signal.sigpending():
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        streams = (null if stdin is None else stdin, stdout, stderr)
        if steps:
            from limpet.process import steps as steps_first  # ctypes, for those who need it

            return steps_first.start(program, argv, environment, cwd, streams, keep, steps, by)
        run = _by_fork_exec if _HAS_FORK_EXEC else _by_popen
        return run(program, argv, environment, cwd, streams, keep)
    finally:
        if blocked:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        if stdin is None:
            os.close(null)


def split() -> int:
    """Fork this program, which must have no other thread, and return the pid; 0 in the child.

    Only the nursery does this: of a program with threads the child may find every lock taken.
    """
    return os.fork()


def _by_fork_exec(
    program: str,
    argv: Sequence[bytes],
    environment: list[bytes],
    cwd: str,
    streams: tuple[int, int, int],
    keep: tuple[int, ...],
) -> int:
    stdin, stdout, stderr = streams
    # The child writes to this pipe what kept it from exec, and exec closes it.
    error_read, error_write = os.pipe()
    try:
        try:
            kept = tuple(sorted((error_write, *keep)))
            # fmt: off
            arguments: tuple[Any, ...] = (
                list(argv), (os.fsencode(program),), True, kept, os.fsencode(cwd),
                environment,
                stdin, -1, -1, stdout, -1, stderr, error_read, error_write,
                True, True, -1, None, None, None, -1, None,
            )
            # fmt: on
            may_vfork = (True,) if sys.version_info < (3, 14) else ()
            pid = fork_exec(*arguments, *may_vfork)
        finally:
            os.close(error_write)
        report = _read_error(error_read)
    finally:
        os.close(error_read)
    if report:
        with suppress(ChildProcessError):  # reaped by a host that reaps all: dead all the same
            os.waitpid(pid, 0)
        code = int(report.split(b":")[1], 16)
        raise OSError(code, os.strerror(code), program)
    return pid


def _read_error(error_read: int) -> bytes:
    if sys.platform == "linux":
        # After vfork returned, the child has reported or has called exec. To wait for the end of
        # the pipe would mean to wait for whoever else forked meanwhile and holds it too.
        os.set_blocking(error_read, False)
    try:
        return os.read(error_read, 4096)
    except BlockingIOError:
        return b""


def _by_popen(
    program: str,
    argv: Sequence[bytes],
    environment: list[bytes],
    cwd: str,
    streams: tuple[int, int, int],
    keep: tuple[int, ...],
) -> int:
    import subprocess

    process = subprocess.Popen(
        list(argv),
        executable=program,
        env=dict(entry.split(b"=", 1) for entry in environment),
        cwd=cwd,
        stdin=streams[0],
        stdout=streams[1],
        stderr=streams[2],
        pass_fds=keep,
        start_new_session=True,
    )
    # The pid is ours to reap: without a return code Popen would reap it when it is collected.
    process.returncode = 0
    return process.pid
