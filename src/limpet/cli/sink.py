"""Writing to our own standard streams: in order, without blocking the loop, without a fuss."""

from __future__ import annotations

import errno
import os
import select
import stat
from collections.abc import Callable

from limpet.loop import SelectorLoop

_HELD_BYTES = 1 << 20
"""How much may wait for a slow reader before the command waits too."""
_PIECE_BYTES = 4096
"""PIPE_BUF: so much can be written without blocking to a pipe that is said to be writable."""


class Sink:
    """Passes bytes on to a descriptor as fast as whoever reads it takes them."""

    def __init__(
        self,
        loop: SelectorLoop,
        fd: int,
        *,
        on_full: Callable[[], None],
        on_room: Callable[[], None],
        on_broken: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._fd = fd
        self._on_full = on_full
        self._on_room = on_room
        self._on_broken = on_broken
        self._held = bytearray()
        self._is_full = False
        self.error: OSError | None = None
        # A regular file is always ready, and cannot be waited for.
        self._can_wait = not stat.S_ISREG(os.fstat(fd).st_mode)

    @property
    def is_idle(self) -> bool:
        """True when nothing waits to be written."""
        return not self._held or self.error is not None

    def give_up(self) -> None:
        """Write no more if that would mean to wait."""
        if self._held:
            self._fail(BrokenPipeError(errno.EPIPE, "nobody reads"))

    def write(self, data: bytes) -> None:
        """Write, or keep for when it can be written."""
        if self.error is not None:
            return
        if not self._can_wait:
            self._put(data)
            return
        if not self._held:
            self._loop.add_writer(self._fd, self._on_writable)
        self._held += data
        if len(self._held) > _HELD_BYTES and not self._is_full:
            self._is_full = True
            self._on_full()

    def _on_writable(self) -> None:
        del self._held[: self._put(self._held[:_PIECE_BYTES])]
        if not self._held and self.error is None:
            self._loop.remove_writer(self._fd)
        if self._is_full and len(self._held) < _HELD_BYTES // 2:
            self._is_full = False
            self._on_room()

    def _put(self, data: bytes | bytearray) -> int:
        try:
            written = os.write(self._fd, data)
            while not self._can_wait and written < len(data):
                written += os.write(self._fd, data[written:])
        except OSError as error:
            self._fail(error)
            return 0
        return written

    def _fail(self, error: OSError) -> None:
        self.error = error
        self._loop.remove_writer(self._fd)
        self._on_broken()


def print_now(fd: int, text: str) -> bool:
    """Write text at once, blocking; return False if nobody reads it any more."""
    data = memoryview(text.encode("utf-8", "replace"))
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:  # someone who shares the descriptor made it so
            select.select([], [fd], [])
        except OSError:
            return False
    return True
