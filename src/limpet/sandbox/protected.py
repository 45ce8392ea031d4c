"""Files inside a writable root that something outside the sandbox will obey later."""

from __future__ import annotations

import functools
import glob
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

from limpet.result import Change

_ENTRIES_AT_MOST = 1000
"""Of one directory with all below; beyond that a change may go unseen."""
_SMALL_DIRECTORY = 16384
_DEEPEST, _VISITED_AT_MOST, _KEPT_S = 4, 4000, 60.0
"""How far nested repositories are looked for, and for how long what was found serves."""
_NOT_LOOKED_INTO = frozenset(["node_modules", ".venv", "venv", "__pycache__", ".tox", "target"])


def existing(roots: Iterable[str], names: tuple[str, ...]) -> list[str]:
    """Return the protected paths that there are, by their names."""
    tops = _tops(names)
    found: list[str] = []
    for root in roots:
        entries = _entries(root)
        for top, inner in tops:
            path = f"{root}/{top}"
            if top not in entries if entries is not None else not _is_there(path):
                continue
            if not inner or not os.path.isdir(path) or os.path.islink(path):  # noqa: PTH112, PTH114
                # A file or a link where a directory should be leads to others of its kind.
                found.append(path)
            for rest in inner:
                found += _matches(path, rest)
    return found


def _entries(root: str) -> set[str] | None:
    """Return what there is in a directory; None if it is so large that asking by name is faster."""
    try:
        if os.stat(root).st_size > _SMALL_DIRECTORY:
            return None
        return set(os.listdir(root))  # noqa: PTH208 -- strings are wanted
    except OSError:
        return set()


@functools.lru_cache(maxsize=16)
def _tops(names: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the first parts of names, each once, with the rests: most there are not at all."""
    found: dict[str, list[str]] = {}
    for name in names:
        top, _, rest = name.partition("/")
        found.setdefault(top, []).append(rest)
    return [(top, () if "" in rests else tuple(rests)) for top, rests in found.items()]


def _matches(directory: str, name: str) -> Iterable[str]:
    if "*" in name:
        if not _is_there(f"{directory}/{name.partition('/*')[0]}"):
            return []
        return glob.iglob(f"{glob.escape(directory)}/{name}", include_hidden=True)  # noqa: PTH207
    path = f"{directory}/{name}"
    return [path] if _is_there(path) else []


def _is_there(path: str) -> bool:
    return os.access(path, os.F_OK, follow_symlinks=False)  # without the price of an exception


def repositories(root: str, identity: tuple[int, int]) -> tuple[str, ...]:
    """Return the directories in a root, and not too deep, that are git repositories themselves."""
    now_s = time.monotonic()
    seen_s, found = _found.get((root, *identity), (-_KEPT_S, ()))
    if now_s - seen_s >= _KEPT_S:
        found = tuple(_walk(root))
        _found[(root, *identity)] = now_s, found
        if len(_found) > _ENTRIES_AT_MOST:
            _found.pop(next(iter(_found)), None)
    return found


_found: dict[tuple[str, int, int], tuple[float, tuple[str, ...]]] = {}


def _walk(root: str) -> Iterator[str]:
    pending, visited = [(root, 0)], 0
    while pending and visited < _VISITED_AT_MOST:
        directory, depth = pending.pop(0)
        with suppress(OSError), os.scandir(directory) as entries:
            for entry in entries:
                visited += 1
                if visited > _VISITED_AT_MOST:
                    break
                if entry.name == ".git" and depth:
                    yield directory
                elif (
                    depth < _DEEPEST
                    and entry.name not in _NOT_LOOKED_INTO
                    and entry.name != ".git"
                    and entry.is_dir(follow_symlinks=False)
                ):
                    pending.append((entry.path, depth + 1))


def pins(roots: Iterable[str], paths: Iterable[str]) -> list[str]:
    """Return the directories between writable roots and paths in them, outermost first."""
    roots = tuple(roots)
    found = set()
    for path in paths:
        parent = os.path.dirname(path)
        while any(is_beneath(parent, root) for root in roots) and parent not in roots:
            found.add(parent)
            parent = os.path.dirname(parent)
    return sorted(found)


def is_beneath(path: str, root: str) -> bool:
    """True if a path is a directory or lies in it."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def snapshot(paths: Iterable[str]) -> dict[str, object]:
    """Return a signature of each path."""
    return {path: _signature(path) for path in paths}


def changes(
    before: dict[str, object], after: dict[str, object], since: str = ""
) -> tuple[Change, ...]:
    """Return what differs between two snapshots, and `since` when if that is to be said."""
    found = []
    for path in sorted(before.keys() | after.keys()):
        if path not in before:
            found.append(Change(path, f"created{since}"))
        elif path not in after:
            found.append(Change(path, f"removed{since}"))
        elif before[path] != after[path]:
            found.append(Change(path, f"changed{since}"))
    return tuple(found)


def _signature(path: str) -> object:
    """Return what changes when a file, or anything in a directory, does."""
    found: set[tuple[str, int, int, int, int]] = set()
    with suppress(OSError):
        found.add(_signature_of(path, os.stat(path)))  # of what a link leads to
    pending = [path]
    while pending and len(found) < _ENTRIES_AT_MOST:
        current = pending.pop()
        with suppress(OSError):
            status = os.lstat(current)
            found.add(_signature_of(current, status))
            if stat.S_ISDIR(status.st_mode):
                with os.scandir(current) as entries:
                    for entry in entries:
                        pending.append(entry.path)
                        if len(pending) > _ENTRIES_AT_MOST:
                            break
    return found


def _signature_of(path: str, status: os.stat_result) -> tuple[str, int, int, int, int]:
    # The change time moves with every change, and cannot be set.
    return path, status.st_ino, status.st_mode, status.st_size, status.st_ctime_ns
