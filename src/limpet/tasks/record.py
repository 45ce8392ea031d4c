"""A task as it stands on disk: one record, written by its supervisor alone, each time as a whole.

Nothing in it is believed that can be checked: a task runs as long as its supervisor holds a lock,
which the kernel gives up with it, at a reboot too. Its end is the supervisor's word. Where neither
is to be had, it is lost.
"""

from __future__ import annotations

import enum
import fcntl
import functools
import json
import os
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from limpet.process.table import NOBODY, Process, carries, is_alive, look_up, name_of

if TYPE_CHECKING:
    from limpet.handover import Origin
    from limpet.process.reap import Child

RECORD = "task.json"
OUTPUT = "output"
INPUT = "input"
LOCK = "lock"
_DRAFT = f".{RECORD}"
_ROOM_FOR_END = 8192
SUPERVISOR = "limpet-task"
"""The name that supervisors go by in the process table."""


class TaskStatus(enum.StrEnum):
    """What a task is doing, or how it ended: a closed set."""

    RUNNING = "running"
    EXITED = "exited"
    """It ended by itself; `exit_code` is its shell's."""
    SIGNALED = "signaled"
    """A signal that limpet did not send ended its shell."""
    STOPPED = "stopped"
    """It was told to stop, and all of it is dead."""
    TIMED_OUT = "timed_out"
    """It reached its time limit, and all of it is dead."""
    LOST = "lost"
    """Nobody saw its end: its supervisor was killed, or the machine went down."""


class Mark(NamedTuple):
    """One process, told from a later one of the same pid."""

    pid: int
    start_ticks: int

    @classmethod
    def of_this(cls) -> Mark:
        """Return what tells this very process from others."""
        process = look_up(os.getpid())
        return cls(os.getpid(), process.start_ticks if process is not None else 0)

    @classmethod
    def of(cls, process: Process) -> Mark:
        """Return what tells a process from others."""
        return cls(process.pid, process.start_ticks)

    def find(self) -> Process | None:
        """Return the process, if this very one is still there, if only as a zombie."""
        process = look_up(self.pid)
        return process if process and process.start_ticks == self.start_ticks else None


class End(NamedTuple):
    """How a task ended."""

    status: str
    exit_code: int | None
    """None if nobody could tell."""
    signal: str | None
    reason: str | None
    """What there is to add: which limit it met, why something is not known."""
    ended_at: float
    duration_s: float
    output_bytes: int
    """How much the task wrote; what follows in the file is the note of its end."""
    last_line: str
    is_capped: bool = False
    """True if not all that it wrote was kept."""
    stopped_with: str | None = None
    """The signal that was needed, if limpet ended it."""
    cpu_s: float | None = None
    peak_memory_bytes: int | None = None


class Record(NamedTuple):
    """What a task is, and how it ended if it has."""

    id: str
    command: str
    display: str
    """The command as a person should see it; empty if that is the same."""
    description: str | None
    session_id: str | None
    cwd: str
    origin: Origin
    run_id: str
    """What its processes carry in their environment."""
    shell: Mark
    """Its process group and session have the same number."""
    since_ticks: int
    processes: tuple[Mark, ...]
    """Of an adopted task those that were alive then."""
    supervisor: Mark
    boot_id: str
    started_at: float
    timeout_s: float | None
    kill_grace_s: float
    input: str
    """`none`, `pipe` or `terminal`."""
    columns: int
    rows: int
    sandbox: str
    confinement_id: str
    """The same for tasks of which none can reach more than the other; empty without a sandbox."""
    host: Mark
    """The program that began it."""
    end: End | None = None

    def with_shell(self, shell: Mark, child: Child) -> Record:
        """Return the same with what is known when it was started."""
        return self._replace(shell=shell, run_id=child.run_id, since_ticks=child.since_ticks)


def encode(record: Record) -> bytes:
    """Return a record as it is written."""
    values = record._asdict()
    values["end"] = None if record.end is None else record.end._asdict()
    # A command may hold bytes that are no text.
    return json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def decode(data: bytes) -> Record:
    """Return what was written; ValueError if it is not a record.

    What a later version has added is left out, and thousands of records are read at once.
    """
    values = json.loads(data.decode("utf-8", "surrogatepass"))
    try:
        values.setdefault("confinement_id", "unknown")  # of a record from before there was one
        end = values["end"]
        if end is not None:
            end["status"] = TaskStatus(end["status"])
            end["ended_at"] = float(end["ended_at"])
            values["end"] = End._make([end[name] for name in End._fields])
        for name in ("shell", "supervisor", "host"):
            values[name] = Mark(*values[name])
        values["processes"] = tuple(Mark(*mark) for mark in values["processes"])
        values["started_at"] = float(values["started_at"])
        return Record._make([values[name] for name in Record._fields])
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a record of a task: {error}") from None


def write(directory: Path, record: Record, *, by_other: bool = False) -> None:
    """Write a record; whoever reads sees the old one or the new one.

    Args:
        directory: Of the task.
        record: The new one.
        by_other: Whether this is not the task's supervisor: of them there may be several.

    Raises:
        OSError: It could not be written; the old one is still there.
    """
    data = encode(record)
    draft = directory / (f"{_DRAFT}-{os.urandom(4).hex()}" if by_other else _DRAFT)
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(fd, 0o600)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]
        os.ftruncate(fd, len(data))
    finally:
        os.close(fd)
    draft.replace(directory / RECORD)


def reserve(directory: Path, record: Record) -> None:
    """Have the room ready that the last record will need, should the disk be full by then."""
    size = len(encode(record)) + _ROOM_FOR_END
    with suppress(OSError):
        fd = os.open(directory / _DRAFT, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(fd, 0o600)
            os.posix_fallocate(fd, 0, size)
        finally:
            os.close(fd)


def read(directory: str) -> Record:
    """Return the record of a task.

    Raises:
        OSError: There is none.
        ValueError: It is not one.
    """
    fd = os.open(f"{directory}/{RECORD}", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        data = os.read(fd, os.fstat(fd).st_size)
    finally:
        os.close(fd)
    return decode(data)


class State(NamedTuple):
    """A record and what follows from it."""

    record: Record
    status: TaskStatus
    reason: str | None


_LOST = "its supervisor is gone"
_NOBODY = Mark(NOBODY, 0)
_UNREADABLE = Record(
    id="",
    command="",
    display="",
    description=None,
    session_id=None,
    cwd="",
    origin="started",
    run_id="",
    shell=_NOBODY,
    since_ticks=0,
    processes=(),
    supervisor=_NOBODY,
    boot_id="",
    started_at=0.0,
    timeout_s=None,
    kill_grace_s=0.0,
    input="none",
    columns=0,
    rows=0,
    sandbox="",
    confinement_id="unknown",
    host=_NOBODY,
)


def state_of(directory: str) -> State:
    """Return what a task is doing, from facts.

    Raises:
        OSError: There is no such task.
    """
    try:
        record = read(directory)
        if record.end is None and not is_supervised(directory):
            record = read(directory)  # it may have ended between the two
            if record.end is None:
                return State(record, TaskStatus.LOST, _why_lost(record))
    except ValueError as error:
        name = os.path.basename(directory)  # noqa: PTH119 -- a string
        status = TaskStatus.RUNNING if is_supervised(directory) else TaskStatus.LOST
        found = _UNREADABLE._replace(id=name, started_at=os.stat(directory).st_mtime)
        return State(found, status, f"its record cannot be read: {error}")
    if record.end is None:
        return State(record, TaskStatus.RUNNING, None)
    return State(record, TaskStatus(record.end.status), record.end.reason)


_LOCK = struct.Struct("hhqqi4x")
"""A lock on the whole file, as fcntl takes it."""


def take_lock(directory: Path) -> int:
    """Return a descriptor that makes a task run, as long as it is open anywhere.

    A lock for which the file must be open for writing: no reader of it can hold another.

    Raises:
        OSError: It cannot be had.
    """
    fd = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(fd, 0o600)
        if hasattr(fcntl, "F_OFD_SETLK"):
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        else:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(fd)
        raise
    return fd


def is_supervised(directory: str) -> bool:
    """True while a supervisor holds the lock of a task."""
    try:
        fd = os.open(f"{directory}/{LOCK}", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        if hasattr(fcntl, "F_OFD_GETLK"):
            asked = _LOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
            found = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, asked)
            return int(_LOCK.unpack(found)[0]) != fcntl.F_UNLCK
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _why_lost(record: Record) -> str:
    if record.boot_id != boot_id():
        return "the machine was started anew since; how it ended is not known"
    if any(is_alive(process) for process in named(record)):
        return f"{_LOST}, and the command still runs; stop it, or let it be"
    return f"{_LOST}; how it ended is not known, and stopping it ends what may be left"


def named(record: Record) -> list[Process]:
    """Return the processes of a task that its record names, and that are there, if as zombies."""
    if record.boot_id != boot_id():
        return []  # start times count from the boot: another process may have the same
    found = (mark.find() for mark in (record.shell, *record.processes))
    return [p for p in found if p is not None and (p.state in "ZX" or carries(p, record.run_id))]


def supervisor_of(record: Record) -> Process | None:
    """Return the supervisor of a task, if it is there, and is one."""
    found = record.supervisor.find() if record.boot_id == boot_id() else None
    if found is None or name_of(found.pid) != SUPERVISOR:
        return None  # a record that somebody else has written must not lead us to anybody
    return found


@functools.cache
def boot_id() -> str:
    """Return what tells this boot of the machine from others; empty where that is not known."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def duration_s(record: Record) -> float:
    """Return how long a task took, or has taken so far."""
    if record.end is not None:
        return record.end.duration_s
    return max(0.0, time.time() - record.started_at)


def note_of(end: End) -> str:
    """Return the line that a task's output file ends with."""
    code = "exit code unknown" if end.exit_code is None else f"exit {end.exit_code}"
    named = f"{code} ({end.signal})" if end.signal else code
    how = named if end.status in ("exited", "signaled") else f"{end.status}, {named}"
    return f"[limpet: {how.replace('_', ' ')} after {end.duration_s:.1f} s]\n"


def to_dict(state: State, output_path: str) -> dict[str, Any]:
    """Return what programs may know of a task, as JSON-ready values."""
    record, end = state.record, state.record.end
    return {
        "id": record.id,
        "status": state.status.value,
        "pid": record.shell.pid,
        "pgid": record.shell.pid,
        "output_path": output_path,
        "command": record.command,
        "display": record.display or record.command,
        "description": record.description,
        "session_id": record.session_id,
        "cwd": record.cwd,
        "origin": record.origin,
        "exit_code": end.exit_code if end else None,
        "signal": end.signal if end else None,
        "reason": state.reason,
        "is_capped": end.is_capped if end else False,
        "started_at": record.started_at,
        "ended_at": end.ended_at if end else None,
        "duration_s": round(duration_s(record), 3),
        "timeout_s": record.timeout_s,
        "input": record.input,
        "sandbox": record.sandbox,
        "stopped_with": end.stopped_with if end else None,
        "cpu_s": end.cpu_s if end else None,
        "peak_memory_bytes": end.peak_memory_bytes if end else None,
    }
