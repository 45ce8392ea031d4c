"""Typing into a task: a socket in its directory, from any program of the user to its supervisor.

What is sent travels in frames: a letter for the kind, two bytes of length, and so much text. Each
program has a connection of its own, at whose end it is told whether all was taken.

A socket and no named pipe, since a jailed command may be able to write where the socket lies, but
cannot connect to one outside its jail.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from limpet.loop import Loop, Timers

HEADER = struct.Struct(">cH")
FRAME_BYTES = 4096
TEXT, END, KEY, SIZE = b"t", b"e", b"k", b"s"
TAKEN = b"ok"
_RETRY_S = 0.01
_ANSWER_BYTES = 4096
SEND_S = 5.0
"""How long to wait for a task that takes no more."""
_LARGEST_SIDE = 1000

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
END_KEY = b"\x04"

Size = tuple[int, int]
"""Columns and rows."""


def check_size(size: object) -> Size:
    """Return a terminal's columns and rows, or say what is wrong with them."""
    match size:
        case (int(columns), int(rows)):
            if 0 < columns <= _LARGEST_SIDE and 0 < rows <= _LARGEST_SIDE:
                return columns, rows
            raise ValueError(f"a terminal has 1 to {_LARGEST_SIDE} columns and rows, not {size!r}")
    raise TypeError(f"size is (columns, rows), not {size!r}")


class Frame(NamedTuple):
    """One thing that was sent."""

    kind: bytes
    data: bytes

    def packed(self) -> bytes:
        """Return it as it travels."""
        return HEADER.pack(self.kind, len(self.data)) + self.data


def text_frames(text: bytes) -> list[Frame]:
    """Return text in pieces that fit."""
    return [
        Frame(TEXT, text[place : place + FRAME_BYTES]) for place in range(0, len(text), FRAME_BYTES)
    ]


def key_frame(name: str) -> Frame:
    """Return a key by its name; ValueError if there is no such key."""
    if name.lower() not in KEYS:
        raise ValueError(f"no such key: {name!r}; there are: {', '.join(KEYS)}")
    return Frame(KEY, KEYS[name.lower()])


def end_frame() -> Frame:
    """Return the end of the input."""
    return Frame(END, b"")


def size_frame(size: Size) -> Frame:
    """Return a new size for the terminal."""
    return Frame(SIZE, b"%d %d" % check_size(size))


@contextmanager
def short_name(path: Path) -> Iterator[str]:
    """Yield a name of a socket that is short enough for one: the kernel takes 107 bytes."""
    if not os.path.exists("/proc/self/fd"):  # noqa: PTH110 -- a string
        yield str(path)
        return
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


class NotListening(Exception):
    """Nobody takes input: the message says why."""


class Sending:
    """Hands frames over to a task's supervisor, without blocking the loop."""

    def __init__(
        self,
        loop: Loop,
        path: Path,
        frames: list[Frame],
        on_done: Callable[[Exception | None], None],
    ) -> None:
        self._loop = loop
        self._path = path
        self._rest = memoryview(b"".join(frame.packed() for frame in frames))
        self._size = len(self._rest)
        self._on_done = on_done
        self._answer = b""
        self._timers = Timers(loop)
        self._progress_s = time.monotonic()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.setblocking(False)
        self._is_watched = False
        self._is_cut = False
        """True if not all could be sent."""
        self._timers.set("next", 0, self._connect)

    def _connect(self) -> None:
        try:
            with short_name(self._path) as name:
                self._socket.connect(name)
        except BlockingIOError:  # many type at once
            self._try_again(self._connect)
            return
        except (FileNotFoundError, ConnectionRefusedError):
            self._finish(NotListening("it has ended, or its input has"))
            return
        except OSError as error:
            self._finish(NotListening(str(error)))
            return
        self._write()

    def _try_again(self, what: Callable[[], None]) -> None:
        if time.monotonic() - self._progress_s < SEND_S:
            self._timers.set("next", _RETRY_S, what)
            return
        taken = f"{self._size - len(self._rest)} of {self._size} bytes were taken"
        self._finish(NotListening(f"it has read nothing for {SEND_S:g} s: {taken}"))

    def _write(self) -> None:
        try:
            while self._rest:
                self._rest = self._rest[self._socket.send(self._rest) :]
                self._progress_s = time.monotonic()
            self._socket.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            self._try_again(self._write)
            return
        except OSError:  # it has closed, and may have said why
            self._is_cut = bool(self._rest)
        self._is_watched = True
        self._loop.add_reader(self._socket.fileno(), self._on_readable)
        self._timers.set("next", SEND_S, self._give_up)

    def _give_up(self) -> None:
        self._finish(NotListening(f"it has not taken all of it within {SEND_S:g} s"))

    def _on_readable(self) -> None:
        try:
            data = self._socket.recv(_ANSWER_BYTES)
        except OSError as error:
            self._finish(
                NotListening("it has ended" if error.errno == errno.ECONNRESET else str(error))
            )
            return
        self._answer += data
        if data:
            return
        if self._answer == TAKEN and not self._is_cut:
            self._finish(None)
        elif self._answer == TAKEN:
            self._finish(NotListening("it has ended"))
        else:
            self._finish(NotListening(self._answer.decode(errors="replace") or "it has ended"))

    def _finish(self, error: Exception | None) -> None:
        self.close()
        self._on_done(error)

    def close(self) -> None:
        """Send no more."""
        self._timers.drop_all()
        if self._is_watched:
            self._is_watched = False
            self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
