"""The supervisor's side of typing: takes what programs send, and types it into the task."""

from __future__ import annotations

import os
import signal
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from limpet.loop import SelectorLoop, Timers
from limpet.tasks.input import (
    END,
    END_KEY,
    FRAME_BYTES,
    HEADER,
    KEY,
    SIZE,
    TAKEN,
    TEXT,
    Frame,
    check_size,
    short_name,
)

_HELD_AT_MOST = 1 << 20
"""How much waits in the supervisor for a task that does not read."""
_VISITORS_AT_MOST, _REST_S = 32, 0.1
_SILENCE_S = 30.0
"""Who says nothing for so long is shown out."""
_SIGNALS = {b"\x03": signal.SIGINT, b"\x1c": signal.SIGQUIT}
"""What a terminal would make of a key, for tasks that have none."""


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
        with short_name(path) as name:
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
        if frame.kind == SIZE:
            if not self._is_terminal:
                return "it has no terminal"
            columns, rows = check_size(tuple(map(int, frame.data.split())))
            self._on_size(columns, rows)
        elif frame.kind == KEY and not self._is_terminal and frame.data in _SIGNALS:
            self._on_signal(_SIGNALS[frame.data])
        elif frame.kind == END or (frame.kind == KEY and frame.data == END_KEY):
            self._is_ending = not self._is_terminal
            self._type(END_KEY if self._is_terminal else b"")
        elif frame.kind in (TEXT, KEY):
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
        """Take no more until `resume`."""
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
                self._connection.send(TAKEN if problem is None else problem.encode())
            self.close()

    def _take_all(self) -> str | None:
        while len(self._received) >= HEADER.size:
            kind, size = HEADER.unpack_from(self._received)
            if size > FRAME_BYTES:
                return "not understood"
            end = HEADER.size + size
            if len(self._received) < end:
                return None
            frame = Frame(kind, bytes(self._received[HEADER.size : end]))
            del self._received[:end]
            if (problem := self._take(frame)) is not None:
                return problem
        return None

    def end(self) -> None:
        """Say that all was taken that it has said so far, which may be what has ended the task."""
        with suppress(OSError):
            if self._is_open and not self._received:
                self._connection.send(TAKEN)
        self.close()

    def close(self) -> None:
        """Hear no more of it."""
        if self._is_open:
            self.pause()
            self._is_open = False
            self._silence.drop_all()
            self._connection.close()
            self._on_end(self)
