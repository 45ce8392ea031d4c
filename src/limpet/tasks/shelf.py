"""The directory of all tasks: ids, finding and listing them, how many there may be, and how long.

tasks/bash-k3f9q2/    task.json, output, input
tasks/running/        an empty file for each task that runs, so that these are counted quickly
tasks/untold/         one for each that has ended, until somebody was told: who removes it
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from limpet import state
from limpet.errors import TaskNotFound
from limpet.output.spill import make_room
from limpet.policy import Policy
from limpet.tasks import record
from limpet.tasks.family import family
from limpet.tasks.record import OUTPUT, State, TaskStatus

_ID = re.compile(r"bash-[a-z0-9]{6}")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_RUNNING = "running"
UNTOLD = "untold"
_SWEPT = ".swept"
_SWEEP_EVERY_S = 60.0
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
                return task_id, path

    def publish(self, task_id: str, draft: Path) -> Path:
        """Make a task of a directory that has all it needs; whoever does it first has done it."""
        with suppress(FileNotFoundError):
            draft.rename(self.path / task_id)
        return self.path / task_id

    def note_start(self, task_id: str) -> None:
        """Count a task as running."""
        running = self.path / _RUNNING
        running.mkdir(mode=0o700, exist_ok=True)
        (running / task_id).touch(mode=0o600)

    def note_end(self, task_id: str) -> None:
        """Count a task as running no more, and have somebody told."""
        running = self.path / _RUNNING / task_id
        with suppress(OSError):
            (self.path / UNTOLD).mkdir(mode=0o700, exist_ok=True)
            running.rename(self.path / UNTOLD / task_id)

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
            if not record.is_supervised(str(self.path / task_id)):
                self.note_end(task_id)
        return _names(self.path / UNTOLD)

    # All of them

    def ids(self) -> list[str]:
        """Return the ids of all tasks, the latest first."""
        found = [entry for entry in os.scandir(self.path) if _ID.fullmatch(entry.name)]
        made: dict[str, float] = {}
        for entry in found:
            with suppress(FileNotFoundError):  # another program sweeps the same directory
                made[entry.name] = entry.stat(follow_symlinks=False).st_ctime
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
        """Remove the task of an output, unless it runs; return whether it is gone."""
        return self._remove(path.parent)

    def _remove(self, directory: Path) -> bool:
        try:
            found = record.state_of(str(directory))
        except OSError:
            return False
        is_lost = found.record.end is None
        if found.status is TaskStatus.RUNNING or (is_lost and family(found.record)):
            return False
        # At once, so that nobody sees half of it.
        grave = directory.with_name(f".{directory.name}")
        with suppress(OSError):
            directory.rename(grave)
        _remove_tree(grave)
        for place in (_RUNNING, UNTOLD):
            with suppress(OSError):
                (self.path / place / directory.name).unlink()
        return not directory.exists()

    def sweep(self, policy: Policy) -> None:
        """Remove what the policy does not keep, at most once a minute."""
        swept = self.path / _SWEPT
        with suppress(OSError):
            if time.time() - swept.stat().st_mtime < _SWEEP_EVERY_S:
                return
        with suppress(OSError):
            swept.touch(mode=0o600)
            os.utime(swept)
            self.prune(policy.task_days, policy.tasks_kept)
            if sum(size for _, size, _ in self.files()) > policy.output.spill_directory_bytes:
                make_room(self, policy.output.spill_directory_bytes)

    def prune(self, days: float, kept: int) -> list[str]:
        """Remove finished tasks that ended longer ago, or that are more, and return their ids."""
        removed = []
        finished = [one for one in self.states() if one.status is not TaskStatus.RUNNING]
        oldest = time.time() - days * 86400
        for place, one in enumerate(sorted(finished, key=_ended_at, reverse=True)):
            is_old = _ended_at(one) < oldest or place >= kept
            if is_old and self._remove(self.path / one.record.id):
                removed.append(one.record.id)
        for draft in self._old_drafts():
            _remove_tree(draft)
        return removed

    def _old_drafts(self) -> Iterator[Path]:
        for entry in os.scandir(self.path):
            if _ID.fullmatch(entry.name.removeprefix(".")) and entry.name.startswith("."):
                with suppress(OSError):
                    if time.time() - entry.stat().st_ctime > _DRAFT_KEPT_S:
                        yield Path(entry.path)


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


def _names(directory: Path) -> list[str]:
    try:
        return [name for name in os.listdir(directory) if _ID.fullmatch(name)]  # noqa: PTH208
    except FileNotFoundError:
        return []


def _ended_at(one: State) -> float:
    return one.record.started_at if one.record.end is None else one.record.end.ended_at
