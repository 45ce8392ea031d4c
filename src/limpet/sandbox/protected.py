"""Files inside a writable root that something outside the sandbox will obey later."""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from limpet.result import Change

_ENTRIES_AT_MOST = 1000
"""Of one directory with all below; beyond that a change may go unseen."""


def existing(roots: Iterable[str], names: tuple[str, ...]) -> list[str]:
    """Return the protected paths that there are, by their names."""
    tops = _tops(names)
    found: list[str] = []
    for root in roots:
        for top, inner in tops:
            path = f"{root}/{top}"
            if os.path.lexists(path):
                found += [path] if not inner else filter(os.path.lexists, _join(path, inner))
    return found


@functools.lru_cache(maxsize=16)
def _tops(names: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the first parts of names, each once, with the rests: most there are not at all."""
    found: dict[str, list[str]] = {}
    for name in names:
        top, _, rest = name.partition("/")
        found.setdefault(top, []).append(rest)
    return [(top, () if "" in rests else tuple(rests)) for top, rests in found.items()]


def _join(path: str, inner: tuple[str, ...]) -> list[str]:
    return [f"{path}/{name}" for name in inner]


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


def snapshot(roots: Iterable[str], names: tuple[str, ...]) -> dict[str, object]:
    """Return a signature of each protected path that there is."""
    return {path: _signature(path) for path in existing(roots, names)}


def changes(before: dict[str, object], after: dict[str, object]) -> tuple[Change, ...]:
    """Return what differs between two snapshots."""
    found = []
    for path in sorted(before.keys() | after.keys()):
        if path not in before:
            found.append(Change(path, "created"))
        elif path not in after:
            found.append(Change(path, "removed"))
        elif before[path] != after[path]:
            found.append(Change(path, "changed"))
    return tuple(found)


def _signature(path: str) -> object:
    """Return what changes when a file, or anything in a directory, does."""
    found: set[tuple[str, int, int, int, int]] = set()
    pending = [path]
    while pending and len(found) < _ENTRIES_AT_MOST:
        current = pending.pop()
        with suppress(OSError):
            # The change time moves with every change, and cannot be set.
            found |= {_signature_of(current, os.lstat(current))}
            found |= {_signature_of(current, status := os.stat(current))}
            if stat.S_ISDIR(status.st_mode):
                with os.scandir(current) as entries:
                    pending += [entry.path for entry in entries]
    return found


def _signature_of(path: str, status: os.stat_result) -> tuple[str, int, int, int, int]:
    return path, status.st_ino, status.st_mode, status.st_size, status.st_ctime_ns
