"""The file that keeps a long output in full, within caps, for a stated time."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from limpet import state

if TYPE_CHECKING:
    from limpet.policy import OutputPolicy

_SWEEP_EVERY_S = 3600.0
_MEASURE_EVERY_BYTES = 64 << 20
"""How much a run may write before the directory's size is looked at again."""

_DIRECTORIES = 256
"""So many are remembered, of hosts that choose a new one for each conversation."""
_last_sweeps_s: dict[Path, float] = {}


class Shelf(Protocol):
    """Where files lie that share one cap."""

    def files(self) -> list[tuple[float, int, Path]]:
        """Return when each was last written to, its size, and where it is."""

    def remove(self, path: Path) -> bool:
        """Remove one, unless it is still written to; return whether it is gone."""


class Directory:
    """All saved outputs of one directory; what else lies in it is not ours."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def files(self) -> list[tuple[float, int, Path]]:
        """Return when each was last written to, its size, and where it is."""
        return _files(self._path)

    def remove(self, path: Path) -> bool:
        """Remove one, unless it is still written to; return whether it is gone."""
        return _remove_unless_in_use(path)


OPEN_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class CappedFile:
    """A file that takes what its caps admit, and goes on taking without keeping."""

    def __init__(
        self,
        fd: int,
        path: Path,
        policy: OutputPolicy,
        shelf: Shelf,
        *,
        measure_after: int = 0,
        last_words: Callable[[str], bytes] | None = None,
    ) -> None:
        """Go on with a file that is open for appending.

        Args:
            fd: Closed by `close`.
            path: Where it is.
            policy: The caps.
            shelf: All that share a cap with it.
            measure_after: How much may be written before the shelf is first looked at.
            last_words: Says which cap was met, and ends the file; else it goes on when there is
                room again.
        """
        self.fd = fd
        self.path = path
        self._policy = policy
        self._shelf = shelf
        self._last_words = last_words
        self._written = os.fstat(fd).st_size
        if measure_after:
            self._measured_at = self._written + measure_after - _MEASURE_EVERY_BYTES
            self._limit = min(policy.spill_bytes, policy.spill_directory_bytes)
        else:
            self._limit = self._find_limit()
        self.error: OSError | None = None
        """What kept a write from being done; the file ends there."""
        self.is_capped = False
        """True once something was left out because of the cap on the file or the directory."""

    @property
    def size(self) -> int:
        """How much it holds."""
        return self._written

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append what the cap admits."""
        if self.error is not None or (self.is_capped and self._last_words is not None):
            return  # after its last words nothing must follow
        if self._written + len(data) > self._limit < self._policy.spill_bytes:
            self._limit = self._find_limit(needed=len(data))
        view = memoryview(data)[: max(0, self._limit - self._written)]
        if len(view) < len(data) and not self.is_capped:
            self.is_capped = True
            if self._last_words is not None:
                view = memoryview(bytes(view) + self._last_words(self.cap))
        try:
            while view:
                count = os.write(self.fd, view)
                self._written += count
                view = view[count:]
        except OSError as error:
            self.error = error
        if self._written - self._measured_at >= _MEASURE_EVERY_BYTES:
            self._limit = self._find_limit()

    @property
    def cap(self) -> str:
        """Say which cap holds."""
        if self._limit < self._policy.spill_bytes:
            return f"{self._policy.spill_directory_bytes} bytes for all saved output together"
        return f"{self._policy.spill_bytes} bytes"

    def _find_limit(self, needed: int = 0) -> int:
        """Return how long the file may become, after making room for what is needed."""
        self._measured_at = self._written
        cap = self._policy.spill_directory_bytes
        others = sum(size for _, size, _ in self._shelf.files()) - self._written
        if others + self._written + needed > cap:
            others -= make_room(self._shelf, cap)
        return min(self._policy.spill_bytes, max(cap - others, self._written))

    def reopened(self) -> CappedFile:
        """Return the same file, to go on with after it was closed.

        Raises:
            OSError: It is gone.
        """
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        return CappedFile(fd, self.path, self._policy, self._shelf)

    def close(self) -> None:
        """Finish the file; its retention begins."""
        os.close(self.fd)


class Spill(CappedFile):
    """One run's output file: 0600 in a 0700 directory, locked while it is written."""

    def __init__(self, run_id: str, policy: OutputPolicy) -> None:
        """Open a new file.

        Raises:
            OSError: There is no place for it.
        """
        path = path_of(run_id, policy)
        directory = path.parent
        sweep(directory, policy)
        fd = os.open(path, OPEN_FLAGS, 0o600)
        fcntl.flock(fd, fcntl.LOCK_SH)
        super().__init__(fd, path, policy, Directory(directory))


def path_of(run_id: str, policy: OutputPolicy) -> Path:
    """Return where the output of a run is saved, if it is; the directory is made if it is missing.

    Raises:
        OSError: There is no place for it.
    """
    if policy.directory is None:
        directory = state.directory("output")
    else:
        directory = Path(policy.directory).expanduser().absolute()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory / f"bash-{run_id}.log"


def sweep(directory: Path, policy: OutputPolicy) -> None:
    """Remove files older than the policy keeps them, at most once an hour."""
    now = time.monotonic()
    if now - _last_sweeps_s.get(directory, -_SWEEP_EVERY_S) < _SWEEP_EVERY_S:
        return
    if len(_last_sweeps_s) >= _DIRECTORIES:
        _last_sweeps_s.clear()
    _last_sweeps_s[directory] = now
    oldest = time.time() - policy.spill_days * 86400
    for modified, _, path in _files(directory):
        if modified < oldest:
            _remove_unless_in_use(path)


def make_room(shelf: Shelf, cap: int) -> int:
    """Remove the oldest finished files until all are at half of their cap, if they can be.

    Returns:
        How many bytes were freed.
    """
    files = sorted(shelf.files())
    excess = sum(size for _, size, _ in files) - cap // 2
    freed = 0
    for _, size, path in files:
        if freed >= excess:
            break
        if shelf.remove(path):
            freed += size
    return freed


def _files(directory: Path) -> list[tuple[float, int, Path]]:
    found = []
    for entry in os.scandir(directory):
        if not (entry.name.startswith("bash-") and entry.name.endswith(".log")):
            continue
        with suppress(FileNotFoundError):  # another program sweeps the same directory
            status = entry.stat(follow_symlinks=False)
            found.append((status.st_mtime, status.st_size, Path(entry.path)))
    return found


def _remove_unless_in_use(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        # Whoever writes the file, in this program or another, holds a lock on it.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
