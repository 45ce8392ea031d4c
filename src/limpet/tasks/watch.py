"""Being woken when something changes in a directory: by inotify, or by looking now and then."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from limpet.loop import Loop, Timer
from limpet.process import kernel

_CHANGES = 0x02 | 0x80 | 0x100
"""A file is written to, is moved here, or is made."""
_POLL_S = 0.05
"""How often to look where there is no inotify."""
_REST_S = 0.02
"""A file that is written to without end does not keep us busy without end."""

USE_INOTIFY = True
"""Switched off by the tests to prove the fallback."""


class Watch:
    """Calls back when something has changed, from the loop; also once at first."""

    def __init__(
        self, loop: Loop, directories: Iterable[str | Path], on_change: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._on_change = on_change
        self._fd = _open(directories)
        self._is_closed = False
        self._timer: Timer = loop.call_later(0, self._tell)

    def _tell(self) -> None:
        self._on_change()
        if self._is_closed:
            return
        if self._fd < 0:
            self._timer = self._loop.call_later(_POLL_S, self._tell)
        else:
            self._loop.add_reader(self._fd, self._on_readable)

    def _on_readable(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._fd, 65536)
        self._loop.remove_reader(self._fd)
        self._on_change_after_rest()

    def _on_change_after_rest(self) -> None:
        self._on_change()
        if not self._is_closed:
            self._timer = self._loop.call_later(_REST_S, self._listen)

    def _listen(self) -> None:
        self._loop.add_reader(self._fd, self._on_readable)

    def close(self) -> None:
        """Call back no more."""
        if self._is_closed:
            return
        self._is_closed = True
        self._timer.cancel()
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)


def _open(directories: Iterable[str | Path]) -> int:
    """Return a descriptor that can be read when there is news; -1 where there is no such thing."""
    libc = kernel.libc()
    if not USE_INOTIFY or not hasattr(libc, "inotify_init1"):
        return -1
    fd = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    if fd < 0:
        return -1
    for directory in directories:
        name = ctypes.c_char_p(os.fsencode(directory))
        if libc.inotify_add_watch(fd, name, ctypes.c_uint32(_CHANGES)) < 0:
            os.close(fd)  # the user has no more watches left
            return -1
    return fd
