"""Typing into a task: a named pipe in its directory, from any program to its supervisor.

What is sent travels in frames that the kernel writes as a whole, so that any number of programs can
type at once: a letter for the kind, two bytes of length, and so much text.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from limpet.loop import Loop, SelectorLoop, Timer

_FRAME_BYTES = 4096
"""PIPE_BUF on Linux: a longer write may be mixed with others'."""
_HEADER_BYTES = 3
_TEXT, _END, _KEY, _SIZE = b"t", b"e", b"k", b"s"
_HELD_AT_MOST = 1 << 20
"""How much waits in the supervisor for a task that does not read."""
_RETRY_S = 0.01
SEND_S = 5.0
"""How long to wait for a task that takes no more."""

KEYS = {
    "enter": b"\r",
    "tab": b"\t",
    "esc": b"\x1b",
    "space": b" ",
    "backspace": b"\x7f",
    "delete": b"\x1b[3~",
    "up": b"\x1b[A",
    "down": b"\x1b[B",
    "right": b"\x1b[C",
    "left": b"\x1b[D",
    "home": b"\x1b[H",
    "end": b"\x1b[F",
    "page-up": b"\x1b[5~",
    "page-down": b"\x1b[6~",
    **{f"ctrl-{chr(96 + code)}": bytes([code]) for code in range(1, 27)},
    "ctrl-\\": b"\x1c",
}
"""What a key sends on a terminal."""
_SIGNALS = {b"\x03": signal.SIGINT, b"\x1c": signal.SIGQUIT}
"""What a terminal would make of a key, for tasks that have none."""
_END_KEY = b"\x04"


class Frame(NamedTuple):
    """One thing that was sent."""

    kind: bytes
    data: bytes


def text_frames(text: bytes) -> list[Frame]:
    """Return text in pieces that fit."""
    piece = _FRAME_BYTES - _HEADER_BYTES
    return [Frame(_TEXT, text[place : place + piece]) for place in range(0, len(text), piece)]


def key_frame(name: str) -> Frame:
    """Return a key by its name; ValueError if there is no such key."""
    if name.lower() not in KEYS:
        raise ValueError(f"no such key: {name!r}; there are: {', '.join(KEYS)}")
    return Frame(_KEY, KEYS[name.lower()])


def end_frame() -> Frame:
    """Return the end of the input."""
    return Frame(_END, b"")


def size_frame(columns: int, rows: int) -> Frame:
    """Return a new size for the terminal."""
    return Frame(_SIZE, b"%d %d" % (columns, rows))


class NotListening(Exception):
    """Nobody takes input: the message says why."""


class Sending:
    """Hands frames over to a task's supervisor, without blocking the loop."""

    def __init__(
        self,
        loop: Loop,
        fifo: Path,
        frames: list[Frame],
        on_done: Callable[[Exception | None], None],
    ) -> None:
        self._loop = loop
        self._frames = [_packed(frame) for frame in frames]
        self._on_done = on_done
        self._tries = int(SEND_S / _RETRY_S)
        self._timer: Timer | None = None
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._fd = os.open(fifo, flags)
        except OSError as error:
            self._fd = -1
            whys = {errno.ENXIO: "it has ended", errno.ENOENT: "its input has ended"}
            self._finish(NotListening(whys.get(error.errno or 0, str(error))))
            return
        self._write()

    def _write(self) -> None:
        try:
            while self._frames:
                os.write(self._fd, self._frames[0])
                self._frames.pop(0)
        except BlockingIOError:
            self._tries -= 1
            if self._tries > 0:
                self._timer = self._loop.call_later(_RETRY_S, self._write)
            else:
                self._finish(NotListening(f"it has read nothing for {SEND_S:g} s"))
            return
        except BrokenPipeError:
            self._finish(NotListening("it has ended"))
            return
        self._finish(None)

    def _finish(self, error: Exception | None) -> None:
        self.close()
        self._on_done(error)

    def close(self) -> None:
        """Send no more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _packed(frame: Frame) -> bytes:
    return frame.kind + len(frame.data).to_bytes(2, "big") + frame.data


class Keyboard:
    """The supervisor's side: takes frames and types them into the task."""

    def __init__(
        self,
        loop: SelectorLoop,
        fifo: Path,
        target: int,
        *,
        is_terminal: bool,
        on_signal: Callable[[signal.Signals], None],
        on_size: Callable[[int, int], None],
    ) -> None:
        """Make the named pipe and begin to listen.

        Args:
            loop: The supervisor's.
            fifo: Where.
            target: What the task reads from the other end of; closed at the end of the input.
            is_terminal: Whether that is a terminal, which makes signals of keys itself.
            on_signal: Signals the task.
            on_size: Gives the terminal a new size.
        """
        self._loop = loop
        self._fifo = fifo
        self._target = target
        self._is_terminal = is_terminal
        self._on_signal = on_signal
        self._on_size = on_size
        self._received = bytearray()
        self._held = bytearray()
        self._is_ending = False
        os.mkfifo(fifo, 0o600)
        # Open for writing too, so that it does not end when nobody types.
        self._fd = os.open(fifo, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(target, False)
        loop.add_reader(self._fd, self._on_readable)

    def _on_readable(self) -> None:
        with suppress(BlockingIOError):
            self._received += os.read(self._fd, 1 << 16)
        while (frame := self._next_frame()) is not None:
            self._take(frame)
        if len(self._held) > _HELD_AT_MOST:
            self._loop.remove_reader(self._fd)

    def _next_frame(self) -> Frame | None:
        if len(self._received) < _HEADER_BYTES:
            return None
        size = int.from_bytes(self._received[1:_HEADER_BYTES], "big") + _HEADER_BYTES
        if len(self._received) < size:
            return None
        frame = Frame(bytes(self._received[:1]), bytes(self._received[_HEADER_BYTES:size]))
        del self._received[:size]
        return frame

    def _take(self, frame: Frame) -> None:
        if frame.kind == _SIZE:
            columns, rows = map(int, frame.data.split())
            self._on_size(columns, rows)
        elif frame.kind == _KEY and not self._is_terminal and frame.data in _SIGNALS:
            self._on_signal(_SIGNALS[frame.data])
        elif frame.kind == _END or (frame.data == _END_KEY and not self._is_terminal):
            if self._is_terminal:
                self._type(_END_KEY)
            else:
                self._is_ending = True
                self._type(b"")
        else:
            self._type(frame.data)

    def _type(self, data: bytes) -> None:
        if self._target >= 0:
            self._held += data
            self._flush()

    def _flush(self) -> None:
        try:
            while self._held:
                del self._held[: os.write(self._target, self._held)]
        except BlockingIOError:
            self._loop.add_writer(self._target, self._flush)
            return
        except OSError:
            self._held.clear()  # nobody will ever read it
        self._loop.remove_writer(self._target)
        if self._fd >= 0:
            self._loop.add_reader(self._fd, self._on_readable)
        if self._is_ending:
            self.close()
            self._fifo.unlink(missing_ok=True)  # so that whoever sends more is told

    def moved(self, fifo: Path) -> None:
        """Note where the named pipe is now."""
        self._fifo = fifo

    def close(self) -> None:
        """Listen no more: whoever sends is told so."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        if self._target >= 0:
            self._loop.remove_writer(self._target)
            os.close(self._target)
            self._target = -1
