"""The directory of all tasks: ids, finding and listing them, how many there may be, and how long.

tasks/bash-k3f9q2/    task.json, output, input
tasks/running/        an empty file for each task that runs, so that these are counted quickly
tasks/untold/         one for each that has ended, until somebody was told: who removes it
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from limpet import state
from limpet.errors import TaskNotFound
from limpet.output.spill import make_room
from limpet.tasks import record
from limpet.tasks.family import family
from limpet.tasks.record import OUTPUT, State, TaskStatus

if TYPE_CHECKING:
    from limpet.policy import Policy

_ID = re.compile(r"bash-[a-z0-9]{6}")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_RUNNING = "running"
UNTOLD = "untold"
_SWEPT = ".swept"
_SWEEP_EVERY_S = 60.0
_RECENT_S = 60.0
"""For so long the end of a task can be read, whatever else the policy says."""
_DRAFT_KEPT_S = 3600.0
"""How long a directory that never became a task is left alone: its maker may be at it."""
_NAMED_AT_MOST = 10


class Shelf:
    """All tasks of one state directory. Any number of programs may use it at once."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of_this_user(cls) -> Shelf:
        """Return the tasks under this program's state directory.

        Raises:
            OSError: There is no place for one.
        """
        return cls(state.directory("tasks"))

    # One task

    def find(self, task_id: str) -> Path:
        """Return the directory of a task.

        Raises:
            TaskNotFound: There is none of that id, or it is no id.
        """
        if not isinstance(task_id, str) or not _ID.fullmatch(task_id):
            raise TaskNotFound(f"not the id of a task: {task_id!r}; {self._known()}")
        path = self.path / task_id
        if not (path / record.RECORD).exists():
            raise TaskNotFound(f"no task {task_id}; {self._known()}")
        return path

    def _known(self) -> str:
        ids = self.ids()
        if not ids:
            return "there are none"
        more = f" and {len(ids) - _NAMED_AT_MOST} more" if len(ids) > _NAMED_AT_MOST else ""
        return f"there are: {', '.join(ids[:_NAMED_AT_MOST])}{more}"

    def draft(self) -> tuple[str, Path]:
        """Return an id that is new, and a directory that becomes its task when published."""
        while True:
            task_id = _new_id()
            path = self.path / f".{task_id}"
            if (self.path / task_id).exists():
                continue
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
                path.chmod(0o700)  # whatever the umask takes away
                return task_id, path

    def publish(self, task_id: str, draft: Path) -> Path:
        """Make a task of a directory that has all it needs; whoever does it first has done it."""
        with suppress(FileNotFoundError):
            draft.rename(self.path / task_id)
        return self.path / task_id

    def note_start(self, task_id: str) -> None:
        """Count a task as running."""
        _make(self.path / _RUNNING)
        (self.path / _RUNNING / task_id).touch(mode=0o600)

    def note_end(self, task_id: str) -> None:
        """Count a task as running no more, and have somebody told."""
        running = self.path / _RUNNING / task_id
        with suppress(OSError):
            _make(self.path / UNTOLD)
            running.rename(self.path / UNTOLD / task_id)

    def withdraw(self, task_id: str) -> None:
        """Forget a task that was not to be."""
        for place in (_RUNNING, UNTOLD):
            with suppress(OSError):
                (self.path / place / task_id).unlink()
        for directory in (self.path / f".{task_id}", self.path / task_id):
            _remove_tree(directory)

    def claim(self, task_id: str) -> bool:
        """Take it upon oneself to tell of a task's end; True for one caller only."""
        try:
            (self.path / UNTOLD / task_id).unlink()
        except OSError:
            return False
        return True

    def untold(self) -> list[str]:
        """Return the tasks whose end nobody was told of; among them those that were lost."""
        for task_id in _names(self.path / _RUNNING):
            # One without a directory is about to begin.
            if (self.path / task_id).exists() and not record.is_supervised(
                str(self.path / task_id)
            ):
                self.note_end(task_id)
        return _names(self.path / UNTOLD)

    # All of them

    def ids(self) -> list[str]:
        """Return the ids of all tasks, the latest first."""
        made: dict[str, int] = {}
        for entry in os.scandir(self.path):
            if _ID.fullmatch(entry.name):
                with suppress(OSError):  # removed meanwhile, or no task at all
                    os.stat(f"{entry.path}/{record.RECORD}")
                    made[entry.name] = os.stat(f"{entry.path}/{record.LOCK}").st_ctime_ns
        return sorted(made, key=made.__getitem__, reverse=True)

    def states(self) -> list[State]:
        """Return all tasks, the latest first; what cannot be read is not one."""
        found: list[State] = []
        for entry in os.scandir(self.path):
            if _ID.fullmatch(entry.name):
                with suppress(OSError):
                    found.append(record.state_of(entry.path))
        return sorted(found, key=lambda one: one.record.started_at, reverse=True)

    def running(self) -> int:
        """Return how many tasks run, at most: one that was lost may be among them."""
        return len(_names(self.path / _RUNNING))

    def has_room(self, policy: Policy) -> bool:
        """True if one more may run."""
        if self.running() >= policy.max_tasks:
            self.untold()  # counts those no more that were lost
        return self.running() < policy.max_tasks

    # What is kept

    def files(self) -> list[tuple[float, int, Path]]:
        """Return when each output was last written to, its size, and where it is."""
        found = []
        for entry in os.scandir(self.path):
            if _ID.fullmatch(entry.name):
                with suppress(OSError):
                    status = os.stat(f"{entry.path}/{OUTPUT}", follow_symlinks=False)
                    path = Path(f"{entry.path}/{OUTPUT}")
                    found.append((status.st_mtime, status.st_size, path))
        return found

    def remove(self, path: Path) -> bool:
        """Remove the task of an output, unless it runs or has just ended; return whether."""
        return self._remove(path.parent, latest=time.time() - _RECENT_S)

    def _remove(self, directory: Path, *, latest: float) -> bool:
        """Remove a task that ended before then; return whether it is gone."""
        try:
            found = record.state_of(str(directory))
        except OSError:
            return False
        is_lost = found.record.end is None
        if found.status is TaskStatus.RUNNING or (is_lost and family(found.record)):
            return False
        if _ended_at(found) > latest:
            return False
        # At once, so that nobody sees half of it.
        grave = directory.with_name(f".{directory.name}")
        try:
            directory.rename(grave)
        except OSError:
            return False  # another program was faster
        self.withdraw(directory.name)
        return True

    def sweep(self, policy: Policy) -> None:
        """Remove what the policy does not keep, at most once a minute."""
        swept = self.path / _SWEPT
        with suppress(OSError):
            if time.time() - swept.stat().st_mtime < _SWEEP_EVERY_S:
                return
        with suppress(OSError):
            swept.touch(mode=0o600)
            os.utime(swept)
            self.prune(policy.task_days, policy.tasks_kept, latest=time.time() - _RECENT_S)
            if sum(size for _, size, _ in self.files()) > policy.output.spill_directory_bytes:
                make_room(self, policy.output.spill_directory_bytes)

    def prune(self, days: float, kept: int, latest: float = math.inf) -> list[str]:
        """Remove finished tasks that ended longer ago, or that are more, and return their ids.

        Args:
            days: How long ago.
            kept: How many are left.
            latest: But none that ended after this.
        """
        removed = []
        finished = [one for one in self.states() if one.status is not TaskStatus.RUNNING]
        oldest = time.time() - days * 86400
        for place, one in enumerate(sorted(finished, key=_ended_at, reverse=True)):
            is_old = _ended_at(one) < oldest or place >= kept
            if is_old and self._remove(self.path / one.record.id, latest=latest):
                removed.append(one.record.id)
        for task_id in self._never_begun():
            self.withdraw(task_id)
        return removed

    def _never_begun(self) -> Iterator[str]:
        """Yield the ids of what was made ready for a task, long ago, and has not become one."""
        drafts = [entry.name[1:] for entry in os.scandir(self.path) if entry.name.startswith(".")]
        for task_id in {*filter(_ID.fullmatch, drafts), *_names(self.path / _RUNNING)}:
            if (self.path / task_id).exists():
                continue
            for path in (self.path / f".{task_id}", self.path / _RUNNING / task_id):
                with suppress(OSError):
                    if time.time() - path.stat().st_ctime > _DRAFT_KEPT_S:
                        yield task_id
                        break


def _new_id() -> str:
    number = int.from_bytes(os.urandom(8), "big")
    letters = []
    for _ in range(6):
        number, letter = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[letter])
    return "bash-" + "".join(letters)


def _remove_tree(path: Path) -> None:
    import shutil  # slow to import, and rarely needed

    shutil.rmtree(path, ignore_errors=True)


def _make(directory: Path) -> None:
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
        directory.chmod(0o700)


def _names(directory: Path) -> list[str]:
    try:
        return [name for name in os.listdir(directory) if _ID.fullmatch(name)]  # noqa: PTH208
    except FileNotFoundError:
        return []


def _ended_at(one: State) -> float:
    return one.record.started_at if one.record.end is None else one.record.end.ended_at
