"""What one command came to: a frozen, complete and bounded value."""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields
from typing import Literal, NamedTuple

from limpet.errors import CommandFailed, CommandRefused, SpawnFailed
from limpet.verdict import Verdict


class Outcome(enum.StrEnum):
    """How a call ended: a closed set, independent of the command's text."""

    EXITED = "exited"
    """The shell ended by itself; `exit_code` is its own."""
    SIGNALED = "signaled"
    """A signal that limpet did not send ended the shell; `signal` names it."""
    TIMED_OUT = "timed_out"
    """The time limit was reached and everything the command started was killed."""
    CANCELLED = "cancelled"
    """The caller gave up, and everything the command started was killed."""
    BACKGROUNDED = "backgrounded"
    """The command goes on as a background task."""
    REFUSED = "refused"
    """Nothing ran: a rule forbids the command."""
    FAILED_TO_START = "failed_to_start"
    """Nothing ran: the hint says what to change."""
    OUTPUT_CAPPED = "output_capped"
    """The output reached the policy's cap and everything the command started was killed."""


Fate = Literal["left", "killed", "kill_failed"]


@dataclass(frozen=True, slots=True)
class Survivor:
    """A process of the run that was still alive when the shell had ended."""

    pid: int
    command: str
    fate: Fate
    """`left` running, `killed`, or `kill_failed`: it outlived SIGKILL (uninterruptible sleep)."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What the command cost."""

    wall_s: float
    cpu_s: float
    """User and system time of the shell and of all it waited for."""
    peak_memory_bytes: int | None
    """The largest resident size of one process; None where it ended too soon to be told.

    A child started by vfork is charged with its host's peak, so a smaller figure is sampled."""


class Denial(NamedTuple):
    """Something that the sandbox has probably kept the command from, as far as its output tells."""

    what: str
    """The line of the output that says so."""
    path: str | None
    """The file it is about; None of the network and of processes."""
    rule: str
    """What forbids it."""
    permit: str
    """How the caller could permit it."""


class Change(NamedTuple):
    """A protected file that the command created, changed or removed."""

    path: str
    what: str


class SandboxReport(NamedTuple):
    """What confined the command."""

    mode: str
    """`read-only` or `workspace`."""
    enforced: tuple[str, ...]
    """What holds, each with the means: `network: seccomp`."""
    not_enforced: tuple[str, ...] = ()
    """What does not, each with the reason."""
    denials: tuple[Denial, ...] = ()
    """A guess from the output, not a claim."""
    changed: tuple[Change, ...] = ()
    """Protected files that are not as they were: something outside may obey them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One command's outcome, output and cost."""

    command: str
    outcome: Outcome
    display: str = ""
    """The command as a person should see it."""
    description: str | None = None
    exit_code: int | None = None
    """The shell's own code, 128+n after signal n, None where there is none."""
    signal: str | None = None
    stdout: str = ""
    """In merged mode all output, as after `2>&1`."""
    stderr: str = ""
    """In merged mode empty."""
    output: str = ""
    """All output in order; in separate mode in order of arrival, which is approximate."""
    duration_s: float = 0.0
    truncated: bool = False
    omitted_bytes: int = 0
    omitted_lines: int = 0
    total_bytes: int = 0
    omitted_by_stream: tuple[int, int] = (0, 0)
    """Bytes that `stdout` and `stderr` lack, each by itself; in merged mode all is stdout."""
    spill_path: str | None = None
    """The raw output in full, or up to the cap; None when `output` is all there was."""
    task_id: str | None = None
    survivors: tuple[Survivor, ...] = ()
    cwd: str = ""
    """Where the command ended when the policy persists it, else where it started."""
    cwd_changed: bool = False
    sandbox: SandboxReport | None = None
    """What confined it; None when the sandbox is off, or nothing ran."""
    usage: Usage | None = None
    """None when nothing ran."""
    verdict: Verdict | None = None
    """What the rules and permissions say; None when there were none to ask."""
    hint: str | None = None
    """What a person would add: the limit that was met, the name not found, the way forward."""

    @property
    def ok(self) -> bool:
        """True when the command ran to its end and exited 0."""
        return self.outcome is Outcome.EXITED and self.exit_code == 0

    @property
    def is_error(self) -> bool:
        """True when the command could not be run or was killed; a non-zero exit is an answer."""
        return self.outcome not in (Outcome.EXITED, Outcome.BACKGROUNDED)

    def check(self) -> Result:
        """Return the result itself if it is ok, or raise the error that carries it."""
        match self.outcome:
            case Outcome.REFUSED:
                raise CommandRefused(self)
            case Outcome.FAILED_TO_START:
                raise SpawnFailed(self)
            case Outcome.BACKGROUNDED:
                return self
            case _ if self.ok:
                return self
            case _:
                raise CommandFailed(self)

    def describe(self) -> str:
        """Say in one line how the command ended, with the hint."""
        match self.outcome:
            case Outcome.EXITED:
                how = f"exit code {self.exit_code}"
            case Outcome.SIGNALED:
                how = f"killed by {self.signal}"
            case outcome:
                how = outcome.value.replace("_", " ")
        return f"{how}: {self.hint}" if self.hint else how

    def to_dict(self) -> dict[str, object]:
        """Return the fields as JSON-ready values, in the order they are declared."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}


def _plain(value: object) -> object:
    match value:
        case enum.Enum():
            return value.value
        case Verdict():
            return value.to_dict()
        case Denial() | Change() | SandboxReport():
            return {name: _plain(item) for name, item in value._asdict().items()}
        case tuple():
            return [_plain(item) for item in value]
        case Survivor() | Usage():
            return {f.name: getattr(value, f.name) for f in fields(value)}
        case _:
            return value
