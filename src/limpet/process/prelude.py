"""What bash reads before the command, and what it reports after it, both beside the output.

`bash -c COMMAND` first reads the file that BASH_ENV names. A prelude there sets an EXIT trap and
hides itself again, so that COMMAND itself reaches bash untouched. The trap reports the exit codes
of the last pipeline and the working directory. A command that replaces the trap, or the shell by
`exec`, reports nothing.

Both files are anonymous and belong to this process: the shell opens them by /proc/<pid>/fd/<n>, so
nothing is inherited and nothing touches a disk.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from limpet.process.env import ChildEnvironment


class AnonymousFile:
    """A file without a name of its own that a child can open by its `path` while it is open."""

    def __init__(self, content: bytes = b"") -> None:
        self._has_name = not _has_reachable_descriptors()
        if self._has_name:
            import tempfile

            self.fd, self.path = tempfile.mkstemp(prefix="limpet-")
        else:
            self.fd = os.memfd_create("limpet")
            self.path = f"/proc/{os.getpid()}/fd/{self.fd}"
        remaining = memoryview(content)
        while remaining:
            remaining = remaining[os.write(self.fd, remaining) :]

    def read(self, at_most: int = 65536) -> bytes:
        """Return what the file holds now, from its start."""
        return os.pread(self.fd, at_most, 0)

    def rewound(self) -> int:
        """Return the descriptor, set to the file's start, for a child to inherit."""
        os.lseek(self.fd, 0, os.SEEK_SET)
        return self.fd

    def close(self) -> None:
        """Give the file up; who has it open keeps it."""
        os.close(self.fd)
        if self._has_name:
            os.unlink(self.path)  # noqa: PTH108 -- mkstemp gave a string


def _has_reachable_descriptors() -> bool:
    """True if a child can open our descriptors by /proc, which it cannot if we are not dumpable."""
    try:
        return os.stat("/proc/self/fd").st_uid == os.geteuid()
    except OSError:
        return False


class Report(NamedTuple):
    """What the trap said."""

    cwd: str
    pipe_codes: tuple[int, ...]
    """The exit codes of the last pipeline, from left to right."""


# A name of its own, so that a command's variables are not touched. `pwd` asks the shell; the
# variable PWD may have been set to anything.
_TRAP = (
    '__limpet=("${PIPESTATUS[@]}");'
    ' { builtin printf "%%s\\0" "${__limpet[@]}"; builtin pwd; } 2>/dev/null >|%s'
)


class Prelude:
    """The prelude of one run and the report it asks for."""

    def __init__(self, environment: ChildEnvironment) -> None:
        """Make both files and point the environment's BASH_ENV at the prelude."""
        self._report = ReportFile()
        try:
            self._script = AnonymousFile(self._text(environment.get(b"BASH_ENV")))
        except BaseException:
            self._report.close()
            raise
        environment.set(b"BASH_ENV", os.fsencode(self._script.path))

    def _text(self, users_own: bytes | None) -> bytes:
        import shlex

        lines = [f"trap {shlex.quote(_TRAP % shlex.quote(self._report.path))} EXIT"]
        if users_own is None:
            lines.append("unset BASH_ENV")
        else:
            # Expanded as bash would have done, which takes it for the inside of double quotes.
            lines.append(f"BASH_ENV={shlex.quote(os.fsdecode(users_own))}")
            lines.append('eval "__limpet=\\"$BASH_ENV\\""')
            lines.append('if [ -r "$__limpet" ]; then . "$__limpet"; fi')
            lines.append("unset __limpet")
        return os.fsencode("\n".join(lines) + "\n")

    def report(self) -> Report | None:
        """Return what the shell reported at its end, if it did."""
        *codes, cwd = self._report.read().split(b"\0")
        if not cwd or not all(code.isdigit() for code in codes):
            return None
        return Report(os.fsdecode(cwd.removesuffix(b"\n")), tuple(map(int, codes)))

    def close(self) -> None:
        """Give both files up."""
        self._script.close()
        self._report.close()


class ReportFile:
    """Where the trap writes: a pipe, to which no limit on file sizes applies."""

    def __init__(self) -> None:
        self._file: AnonymousFile | None = None
        if not _has_reachable_descriptors():
            self._file = AnonymousFile()
            self.path = self._file.path
            return
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self.path = f"/proc/{os.getpid()}/fd/{self._write_end}"

    def read(self) -> bytes:
        """Return what was written so far."""
        if self._file is not None:
            return self._file.read()
        try:
            return os.read(self._read_end, 65536)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        """Give it up."""
        if self._file is not None:
            self._file.close()
        else:
            os.close(self._read_end)
            os.close(self._write_end)
