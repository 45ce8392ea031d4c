"""What bash reads before the command, and what it reports after it, both beside the output.

`bash -c COMMAND` first reads the file that BASH_ENV names. A prelude there sets an EXIT trap and
hides itself again, so that COMMAND itself reaches bash untouched. The trap reports the exit codes
of the last pipeline and the working directory. A command that replaces the trap, or the shell by
`exec`, reports nothing.

Both files are anonymous and belong to this process: the shell opens them by /proc/<pid>/fd/<n>, so
nothing is inherited and nothing touches a disk. From a sandbox that way is closed; there the shell
inherits them.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from limpet.process.env import ChildEnvironment


class AnonymousFile:
    """A file without a name of its own that a child can open by its `path` while it is open."""

    def __init__(self, content: bytes = b"", *, inherited: bool = False) -> None:
        """Make it, for a child that inherits the descriptor, or for one that need not."""
        self._has_name = not inherited and not _has_reachable_descriptors()
        if self._has_name:
            import tempfile

            self.fd, self.path = tempfile.mkstemp(prefix="limpet-")
        else:
            self.fd = os.memfd_create("limpet")
            self.path = f"/dev/fd/{self.fd}" if inherited else f"/proc/{os.getpid()}/fd/{self.fd}"
        self.write(content)

    def write(self, content: bytes) -> None:
        """Add to the file."""
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
    ' { builtin printf "%%s\\0" "${__limpet[@]}"; builtin pwd; } 2>/dev/null >%s'
)


_LONGEST_CODE = 3


class Prelude:
    """The prelude of one run and the report it asks for."""

    def __init__(self, environment: ChildEnvironment, *, inherited: bool = False) -> None:
        """Make both files and point the environment's BASH_ENV at the prelude.

        Args:
            environment: Of the shell.
            inherited: Whether the shell must inherit `kept`, as it cannot open our descriptors.
        """
        self._report = ReportFile(inherited=inherited)
        try:
            lines = self._lines(environment.get(b"BASH_ENV"))
            self._script = AnonymousFile(lines, inherited=inherited)
            if inherited:
                self._script.write(b"exec %d<&-\n" % self._script.fd)
        except BaseException:
            self._report.close()
            raise
        self.kept = (self._script.fd, self._report.fd)
        environment.set(b"BASH_ENV", os.fsencode(self._script.path))

    def _lines(self, users_own: bytes | None) -> bytes:
        import shlex

        lines = [f"trap {shlex.quote(_TRAP % self._report.target)} EXIT"]
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
        # Whatever the command wrote there itself is no report.
        if not cwd or not all(code.isdigit() and len(code) <= _LONGEST_CODE for code in codes):
            return None
        return Report(os.fsdecode(cwd.removesuffix(b"\n")), tuple(map(int, codes)))

    @property
    def reader(self) -> int | None:
        """What must stay open until the trap has written; None if that is nothing."""
        return self._report.reader

    def close(self) -> None:
        """Give both files up."""
        self._script.close()
        self._report.close()


class ReportFile:
    """Where the trap writes: a pipe, to which no limit on file sizes applies."""

    def __init__(self, *, inherited: bool) -> None:
        self._file: AnonymousFile | None = None
        self.fd = -1
        if not inherited and not _has_reachable_descriptors():
            import shlex

            self._file = AnonymousFile()
            self.target = f"|{shlex.quote(self._file.path)}"
            return
        self._read_end, self.fd = os.pipe()
        os.set_blocking(self._read_end, False)
        self.target = f"&{self.fd}" if inherited else f"|/proc/{os.getpid()}/fd/{self.fd}"

    @property
    def reader(self) -> int | None:
        """The end that is read, of a pipe."""
        return None if self._file is not None else self._read_end

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
            os.close(self.fd)
