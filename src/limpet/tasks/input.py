"""Typing into a task: a socket in its directory, from any program of the user to its supervisor.

What is sent travels in frames: a letter for the kind, two bytes of length, and so much text. Each
program has a connection of its own, at whose end it is told whether all was taken.

A socket and no named pipe, since a jailed command may be able to write where the socket lies, but
cannot connect to one outside its jail.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from limpet.loop import Loop, SelectorLoop, Timers

_HEADER = struct.Struct(">cH")
_FRAME_BYTES = 4096
_TEXT, _END, _KEY, _SIZE = b"t", b"e", b"k", b"s"
_TAKEN = b"ok"
_HELD_AT_MOST = 1 << 20
"""How much waits in the supervisor for a task that does not read."""
_RETRY_S = 0.01
_ANSWER_BYTES = 4096
SEND_S = 5.0
"""How long to wait for a task that takes no more."""
_LARGEST_SIDE = 1000
_VISITORS_AT_MOST, _REST_S = 32, 0.1
_SILENCE_S = 30.0
"""Who says nothing for so long is shown out."""

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
        return _HEADER.pack(self.kind, len(self.data)) + self.data


def text_frames(text: bytes) -> list[Frame]:
    """Return text in pieces that fit."""
    return [
        Frame(_TEXT, text[place : place + _FRAME_BYTES])
        for place in range(0, len(text), _FRAME_BYTES)
    ]


def key_frame(name: str) -> Frame:
    """Return a key by its name; ValueError if there is no such key."""
    if name.lower() not in KEYS:
        raise ValueError(f"no such key: {name!r}; there are: {', '.join(KEYS)}")
    return Frame(_KEY, KEYS[name.lower()])


def end_frame() -> Frame:
    """Return the end of the input."""
    return Frame(_END, b"")


def size_frame(size: Size) -> Frame:
    """Return a new size for the terminal."""
    return Frame(_SIZE, b"%d %d" % check_size(size))


@contextmanager
def _short(path: Path) -> Iterator[str]:
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
            with _short(self._path) as name:
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
        if self._answer == _TAKEN and not self._is_cut:
            self._finish(None)
        elif self._answer == _TAKEN:
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


class Keyboard:
    """The supervisor's side: takes frames and types them into the task."""

    def __init__(
        self,
        loop: SelectorLoop,
        path: Path,
        target: int,
        *,
        is_terminal: bool,
        on_signal: Callable[[signal.Signals], None],
        on_size: Callable[[int, int], None],
    ) -> None:
        """Begin to listen.

        Args:
            loop: The supervisor's.
            path: Where.
            target: What the task reads from the other end of; closed at the end of the input.
            is_terminal: Whether that is a terminal, which makes signals of keys itself.
            on_signal: Signals the task.
            on_size: Gives the terminal a new size.
        """
        self._loop = loop
        self._target = target
        self._is_terminal = is_terminal
        self._on_signal = on_signal
        self._on_size = on_size
        self._held = bytearray()
        self._is_ending = False
        self._visitors: set[_Visitor] = set()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.setblocking(False)
        with _short(path) as name:
            self._socket.bind(name)
        path.chmod(0o600)
        self._socket.listen(64)
        os.set_blocking(target, False)
        self._listen()

    def _listen(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.add_reader(self._socket.fileno(), self._on_visit)

    def _on_visit(self) -> None:
        try:
            connection, _ = self._socket.accept()
        except BlockingIOError:
            return
        except OSError:  # no descriptor left
            self._rest()
            return
        connection.setblocking(False)
        self._visitors.add(_Visitor(self._loop, connection, self._take, self._on_leave))
        if len(self._visitors) >= _VISITORS_AT_MOST:
            self._rest()

    def _rest(self) -> None:
        """Let nobody in for a while."""
        self._loop.remove_reader(self._socket.fileno())
        self._loop.call_later(_REST_S, self._listen)

    def _on_leave(self, visitor: _Visitor) -> None:
        self._visitors.discard(visitor)

    @property
    def is_full(self) -> bool:
        """True while no more is taken."""
        return len(self._held) > _HELD_AT_MOST

    def _take(self, frame: Frame) -> str | None:
        """Type what was sent; return what is wrong with it."""
        if self._is_ending or self._target < 0:
            return "its input has ended"
        if frame.kind == _SIZE:
            if not self._is_terminal:
                return "it has no terminal"
            columns, rows = check_size(tuple(map(int, frame.data.split())))
            self._on_size(columns, rows)
        elif frame.kind == _KEY and not self._is_terminal and frame.data in _SIGNALS:
            self._on_signal(_SIGNALS[frame.data])
        elif frame.kind == _END or (frame.kind == _KEY and frame.data == _END_KEY):
            self._is_ending = not self._is_terminal
            self._type(_END_KEY if self._is_terminal else b"")
        elif frame.kind in (_TEXT, _KEY):
            self._type(frame.data)
        else:
            return "not understood"
        return None

    def _type(self, data: bytes) -> None:
        self._held += data
        self._flush()
        if self.is_full:
            for visitor in self._visitors:
                visitor.pause()

    def _flush(self) -> None:
        try:
            while self._held:
                del self._held[: os.write(self._target, self._held)]
        except BlockingIOError:
            self._loop.add_writer(self._target, self._flush)
        except OSError:
            self._held.clear()  # nobody will ever read it
        if not self.is_full:
            for visitor in tuple(self._visitors):
                visitor.resume()
        if not self._held and self._target >= 0:
            self._loop.remove_writer(self._target)
            if self._is_ending:
                self._close_target()

    def _close_target(self) -> None:
        if self._target >= 0:
            self._loop.remove_writer(self._target)
            os.close(self._target)
            self._target = -1

    def close(self) -> None:
        """Listen no more: whoever sends is told so."""
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        for visitor in tuple(self._visitors):
            visitor.end()
        self._close_target()


class _Visitor:
    """One program that sends."""

    def __init__(
        self,
        loop: SelectorLoop,
        connection: socket.socket,
        take: Callable[[Frame], str | None],
        on_end: Callable[[_Visitor], None],
    ) -> None:
        self._loop = loop
        self._connection = connection
        self._take = take
        self._on_end = on_end
        self._received = bytearray()
        self._is_open = True
        self._is_paused = True
        self._silence = Timers(loop)
        self.resume()

    def pause(self) -> None:
        """Take no more for now."""
        if self._is_open and not self._is_paused:
            self._is_paused = True
            self._silence.drop_all()
            self._loop.remove_reader(self._connection.fileno())

    def resume(self) -> None:
        """Take more."""
        if self._is_open and self._is_paused:
            self._is_paused = False
            self._silence.set("end", _SILENCE_S, self.close)
            self._loop.add_reader(self._connection.fileno(), self._on_readable)

    def _on_readable(self) -> None:
        # To its end at once: what it has sent may end the task, and then nobody would answer.
        while self._is_open and not self._is_paused:
            try:
                data = self._connection.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError:
                self.close()
                return
            self._received += data
            self._silence.set("end", _SILENCE_S, self.close)
            self._hear(is_all=not data)

    def _hear(self, *, is_all: bool) -> None:
        try:
            problem = self._take_all()
        except (ValueError, TypeError, struct.error, OSError) as error:
            problem = f"not understood: {error}"
        if is_all and self._received:
            problem = "the end is missing"
        if problem is not None or is_all:
            with suppress(OSError):
                self._connection.send(_TAKEN if problem is None else problem.encode())
            self.close()

    def _take_all(self) -> str | None:
        while len(self._received) >= _HEADER.size:
            kind, size = _HEADER.unpack_from(self._received)
            if size > _FRAME_BYTES:
                return "not understood"
            end = _HEADER.size + size
            if len(self._received) < end:
                return None
            frame = Frame(kind, bytes(self._received[_HEADER.size : end]))
            del self._received[:end]
            if (problem := self._take(frame)) is not None:
                return problem
        return None

    def end(self) -> None:
        """Say that all was taken that it has said so far, which may be what has ended the task."""
        with suppress(OSError):
            if self._is_open and not self._received:
                self._connection.send(_TAKEN)
        self.close()

    def close(self) -> None:
        """Hear no more of it."""
        if self._is_open:
            self.pause()
            self._is_open = False
            self._silence.drop_all()
            self._connection.close()
            self._on_end(self)
