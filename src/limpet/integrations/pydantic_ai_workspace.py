"""limpet as a workspace of pydantic-ai: commands and files under one policy."""

from __future__ import annotations

import asyncio
import errno
import posixpath
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from weakref import WeakValueDictionary

from limpet.attempt import Call
from limpet.context import ToolContext
from limpet.errors import CommandRefused, SandboxUnavailable
from limpet.events import RawEvent, Written
from limpet.policy import OutputPolicy, PermissionPolicy, Policy, RulePolicy, check_timeout
from limpet.result import Outcome, Result
from limpet.tool import Bash

try:
    from pydantic_ai.workspaces import (
        CommandResult,
        FileEntry,
        SupportsCommands,
        SupportsFilesystem,
        WorkspaceBackend,
        WorkspaceCommand,
        WorkspaceError,
        WorkspaceOutputLimitError,
        WorkspaceRef,
        WorkspaceTimeoutError,
        WorkspaceUnavailableError,
    )
except ImportError as error:
    raise ImportError(
        "limpet.integrations.pydantic_ai needs pydantic-ai: pip install 'limpet[pydantic-ai]'"
    ) from error

OUTPUT_BYTES = 10 << 20
"""How much one command may print: what prints more is killed, and nothing is cut silently."""
_FILE_BYTES = 256 << 20
"""How large a file may be to be read at once."""
_NO_LIMIT_S = 100 * 365 * 86400.0
"""Commands have no time limit unless one is given."""
_PREVIEW_BYTES = 64 << 10

_ERRORS = {
    "Permission denied": errno.EACCES,
    "Operation not permitted": errno.EPERM,
    "No such file or directory": errno.ENOENT,
    "Is a directory": errno.EISDIR,
    "Not a directory": errno.ENOTDIR,
    "File exists": errno.EEXIST,
    "Directory not empty": errno.ENOTEMPTY,
    "Device or resource busy": errno.EBUSY,
    "Read-only file system": errno.EROFS,
    "No space left on device": errno.ENOSPC,
    "File too large": errno.EFBIG,
    "File name too long": errno.ENAMETOOLONG,
    "Too many levels of symbolic links": errno.ELOOP,
}
"""The kernel's errors as programs print them at the end of a line, in the C locale."""

# The path is $1. Opening a pipe or a device could wait for ever.
_REGULAR = 'if [ -e "$1" ] && [ ! -f "$1" ] && [ ! -d "$1" ]; then echo "not a regular file" >&2; exit 1; fi; '  # noqa: E501 -- one line of shell
_READ = _REGULAR + 'exec cat < "$1"'
_WRITE = _REGULAR + 'parent=${1%/*}/; [ -d "$parent" ] || mkdir -p -- "$parent" && exec cat > "$1"'
_STAT = 'exec ls -dlnL -- "$1"'
_LIST = (
    'cd -- "$1" || exit; [ -r . ] || exec ls .; shopt -s nullglob dotglob; '
    'for name in *; do if [ -d "$name" ]; then kind=d; else kind=-; fi; '
    'printf "%s%s\\0" "$kind" "$name"; done'
)
_MAKE = 'exec mkdir -p -- "$1"'
_EXISTS = 'if [ -e "$1" ]; then echo yes; fi'
_IS_ROOT = 3
# $2 is the working directory: neither that nor what it lies in may go, by whatever name.
_REMOVE = (
    'place=$2; while [ ! -L "$1" ]; do '
    f'if [ "$1" -ef "$place" ]; then exit {_IS_ROOT}; fi; '
    '[ "$place" != / ] || break; place=${place%/*}; place=${place:-/}; done; '
    'exec rm -r -- "$1"'
)


class _Printed(NamedTuple):
    """A result, and its two streams as they were written."""

    result: Result
    stdout: bytes
    stderr: bytes


class LimpetWorkspaceBackend(WorkspaceBackend, SupportsCommands, SupportsFilesystem):
    """A directory of this machine as a workspace: commands and files under one limpet policy.

    Commands run as `Bash` runs them: killed with all that they started at their time limit or when
    the caller is cancelled, checked by the policy's rules and permissions, confined by its sandbox.
    What a command leaves running goes on as a background task. Output comes back as it was
    written, or, over the cap, as `WorkspaceOutputLimitError`; a refused command is a
    `WorkspaceError`.

    File operations are commands too, so that the sandbox and the limits hold for them in the same
    way: what a command cannot read or write here, they cannot. Rules and permissions judge
    commands, not file operations. With the sandbox off nothing confines either. Files are
    rewritten in place, and this backend reads and writes one file at a time.
    """

    def __init__(
        self,
        working_dir: str | Path | None = None,
        policy: Policy | None = None,
        *,
        session_id: str | None = None,
        output_bytes: int = OUTPUT_BYTES,
    ) -> None:
        """Take a directory, which is looked at when it is first used.

        Args:
            working_dir: Where commands start; None makes a new one, for whoever has its `ref` to
                remove.
            policy: What holds for commands; None is limpet's default.
            session_id: The conversation that background tasks belong to.
            output_bytes: How much one command may print.
        """
        policy = replace(policy or Policy(), persist_cwd=False)
        self._bash = Bash(replace(policy, output=_whole(policy.output, output_bytes)))
        self._files = Bash(
            replace(
                policy,
                output=_whole(policy.output, _FILE_BYTES),
                rules=RulePolicy(pack="none"),
                permissions=PermissionPolicy(),
            )
        )
        self._session_id = session_id
        self._working_dir = None if working_dir is None else Path(working_dir).expanduser()
        if self._working_dir is not None:
            self._working_dir = self._working_dir.absolute()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def ref(self) -> WorkspaceRef | None:
        """The directory; None until a new one is made."""
        if self._working_dir is None:
            return None
        return WorkspaceRef(provider="limpet", id=str(self._working_dir))

    async def working_dir(self) -> str:
        """Return where commands start.

        Raises:
            WorkspaceUnavailableError: It is not there any more.
        """
        return self._root()

    def _root(self) -> str:
        if self._working_dir is None:
            self._working_dir = Path(tempfile.mkdtemp(prefix="limpet-workspace-"))
        root = self._working_dir.resolve()
        if not root.is_dir():
            raise WorkspaceUnavailableError(f"the directory {self._working_dir} does not exist")
        return str(root)

    async def run(
        self,
        command: WorkspaceCommand,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 -- the package's own name for it
    ) -> CommandResult:
        """Run a command with bash, or a program with its arguments, and return all that it prints.

        Raises:
            WorkspaceTimeoutError: The time limit was reached; it has what was printed so far.
            WorkspaceOutputLimitError: It printed more than it may; all that it started is dead.
            WorkspaceUnavailableError: The directory is gone, or there is no sandbox here.
            WorkspaceError: The policy refuses the command; nothing ran.
        """
        line = _line(command, shell=shell)
        limit_s = _NO_LIMIT_S if timeout is None else check_timeout(timeout)
        printed = await self._print(self._bash, line, {"env": env, "timeout_s": limit_s})
        result = printed.result
        if result.exit_code is None:
            raise WorkspaceError(f"it is not known how the command ended: {result.describe()}")
        return CommandResult(
            exit_code=result.exit_code, stdout=_text(printed.stdout), stderr=_text(printed.stderr)
        )

    async def _print(self, bash: Bash, line: str, call: Call) -> _Printed:
        """Run a command that may end in any way that is its own."""
        root = self._root()
        streams = {"stdout": bytearray(), "stderr": bytearray()}

        def listen(event: RawEvent) -> None:
            if isinstance(event, Written):
                streams[event.stream] += event.data

        call["ctx"] = ToolContext(root, session_id=self._session_id)
        try:
            result = await bash.tap(line, listen, **call)
        except SandboxUnavailable as error:
            raise WorkspaceUnavailableError(str(error)) from error
        except asyncio.CancelledError as error:
            _forget(getattr(error, "result", None))
            raise
        _forget(result)
        self._root()  # a command can outlive its directory
        printed = _Printed(result, bytes(streams["stdout"]), bytes(streams["stderr"]))
        _check(printed, bash.policy.output.spill_bytes)
        return printed

    # Files

    async def read_bytes(self, path: str) -> bytes:
        """Return the contents of a file."""
        async with self._lock(path):
            return await self._do(_READ, path)

    async def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file in place, through a symbolic link too, and make what it lies in."""
        async with self._lock(path):
            try:
                await self._do(_WRITE, path, stdin=data)
            except FileExistsError as error:  # where a directory is wanted
                raise NotADirectoryError(errno.ENOTDIR, "Not a directory", path) from error

    async def stat(self, path: str) -> FileEntry:
        """Return what is at a path, at the end of a symbolic link."""
        mode, _, _, _, size, *_ = (await self._do(_STAT, path)).split(None, 5)
        return FileEntry(
            name=posixpath.basename(posixpath.normpath(path)),
            path=path,
            is_dir=mode.startswith(b"d"),
            size=int(size) if mode.startswith(b"-") else None,
        )

    async def list_dir(self, path: str) -> Sequence[FileEntry]:
        """Return what a directory holds, sorted."""
        found = (await self._do(_LIST, path)).decode("utf-8", "surrogateescape").split("\0")
        return [
            FileEntry(
                name=one[1:], path=posixpath.join(path, one[1:]), is_dir=one[0] == "d", size=None
            )
            for one in sorted(filter(None, found), key=lambda one: one[1:])
        ]

    async def make_dir(self, path: str) -> None:
        """Make a directory, and what it lies in."""
        await self._do(_MAKE, path)

    async def remove(self, path: str) -> None:
        """Remove a file, a symbolic link, or a directory with all that it holds.

        Raises:
            ValueError: It is the working directory, or holds it.
        """
        await self._do(_REMOVE, path)

    async def exists(self, path: str) -> bool:
        """True if there is something at a path, at the end of a symbolic link."""
        return bool(await self._do(_EXISTS, path))

    def _lock(self, path: str) -> asyncio.Lock:
        lock = self._locks.get(path)
        if lock is None:
            lock = self._locks[path] = asyncio.Lock()
        return lock

    async def _do(self, script: str, path: str, stdin: bytes | None = None) -> bytes:
        """Have bash do something with a path, and return what it prints; raise what goes wrong."""
        if not posixpath.isabs(path):
            raise ValueError(f"the path must be absolute, not {path!r}")
        line = f"set -- {shlex.join([path, self._root()])}; {script}"
        call: Call = {"env": {"LC_ALL": "C"}, "stdin": stdin, "description": "a file operation"}
        result, stdout, stderr = await self._print(self._files, line, call)
        if result.exit_code == 0:
            return stdout
        if result.exit_code == _IS_ROOT and script is _REMOVE:
            raise ValueError("the working directory, and what it lies in, cannot be removed")
        said = _text(stderr).strip().rpartition("\n")[2]
        reason = said.rpartition(": ")[2]
        raise OSError(_ERRORS.get(reason, errno.EIO), reason or result.describe(), path)


def _whole(output: OutputPolicy, limit: int) -> OutputPolicy:
    """Return how to keep all output up to a limit, where the command is killed."""
    return replace(
        output,
        streams="separate",
        head_bytes=limit,
        tail_bytes=0,
        spill_bytes=limit,
        save_bytes=None,
    )


def _line(command: WorkspaceCommand, *, shell: bool) -> str:
    if isinstance(command, str):
        if not shell:
            raise TypeError("a string is a command for the shell: give shell=True, or a list")
        return command
    if shell:
        raise TypeError("with shell=True the command must be a string, not a list")
    if not command:
        raise ValueError("the command must not be empty")
    # Without exec a word could be a builtin, a keyword or an assignment.
    return f"exec -- {shlex.join(command)}"


def _check(printed: _Printed, limit: int) -> None:
    """Raise what is not a command's own end."""
    result = printed.result
    start = {
        "stdout": _text(printed.stdout[:_PREVIEW_BYTES]),
        "stderr": _text(printed.stderr[:_PREVIEW_BYTES]),
    }
    match result.outcome:
        case Outcome.REFUSED:
            raise WorkspaceError(result.hint or "the command was refused") from CommandRefused(
                result
            )
        case Outcome.TIMED_OUT:
            raise WorkspaceTimeoutError(
                f"the command timed out after {result.duration_s:.3g} s and was killed",
                stdout=_text(printed.stdout),
                stderr=_text(printed.stderr),
            )
        case Outcome.FAILED_TO_START:
            result.check()
    if result.truncated or result.outcome is Outcome.OUTPUT_CAPPED:
        raise WorkspaceOutputLimitError(
            f"the output reached the limit of {limit} bytes: write it to a file and read parts",
            limit=limit,
            **start,
        )


def _forget(result: Result | None) -> None:
    """Remove output that was saved: it is returned whole, or there is too much of it."""
    if result is not None and result.spill_path is not None:
        with suppress(OSError):  # gone already
            Path(result.spill_path).unlink(missing_ok=True)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
