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


class AnonymousFile:
    """A file without a name of its own that a child can open by its `path` while it is open."""

    def __init__(self, content: bytes = b"") -> None:
        self._unlink_later = not hasattr(os, "memfd_create")
        if self._unlink_later:
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
        if self._unlink_later:
            os.unlink(self.path)  # noqa: PTH108 -- mkstemp gave a string


class Report(NamedTuple):
    """What the trap said."""

    cwd: str
    pipe_codes: tuple[int, ...]
    """The exit codes of the last pipeline, from left to right."""


class Prelude:
    """The prelude of one run and the report it asks for."""

    def __init__(self, environment: dict[bytes, bytes]) -> None:
        """Make both files and point the environment's BASH_ENV at the prelude."""
        self._report = AnonymousFile()
        users_own = environment.get(b"BASH_ENV")
        self._script = AnonymousFile(self._text(users_own))
        environment[b"BASH_ENV"] = os.fsencode(self._script.path)

    def _text(self, users_own: bytes | None) -> bytes:
        import shlex

        trap = 'builtin printf "%s\\0" "$PWD" "${PIPESTATUS[@]}" 2>/dev/null >|' + shlex.quote(
            self._report.path
        )
        lines = [f"trap {shlex.quote(trap)} EXIT".encode()]
        if users_own is None:
            lines.append(b"unset BASH_ENV")
        else:
            lines.append(b"BASH_ENV=" + os.fsencode(shlex.quote(os.fsdecode(users_own))))
            lines.append(b'[ -r "$BASH_ENV" ] && . "$BASH_ENV"')
        return b"\n".join(lines) + b"\n"

    def report(self) -> Report | None:
        """Return what the shell reported at its end, if it did."""
        cwd, *codes = self._report.read().rstrip(b"\0").split(b"\0")
        if not cwd or not all(code.isdigit() for code in codes):
            return None
        return Report(os.fsdecode(cwd), tuple(map(int, codes)))

    def close(self) -> None:
        """Give both files up."""
        self._script.close()
        self._report.close()
