"""limpet on a terminal of its own: what it writes, and what a person would see of that."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyte
from support import PATIENCE_S

LIMPET = [sys.executable, "-m", "limpet.cli"]
_LINES_KEPT = 5000


class Emulator:
    """A terminal with limpet on it."""

    def __init__(
        self, process: subprocess.Popen[bytes], controller: int, size: tuple[int, int]
    ) -> None:
        self.process = process
        self.written = ""
        """All that was written, as it was."""
        self._controller = controller
        self._screen = pyte.HistoryScreen(*size, history=_LINES_KEPT, ratio=1e-9)
        self._stream = pyte.Stream(self._screen)
        self._rest = b""

    def resize(self, columns: int, rows: int) -> None:
        """Give it another size; what was written until then is kept as it is."""
        _set_size(self._controller, columns, rows)
        self._screen.resize(rows, columns)

    def read_until(self, condition: Callable[[], bool], patience_s: float = 4 * PATIENCE_S) -> bool:
        """Read what is written until a condition comes true; False if that takes too long."""
        deadline = time.monotonic() + patience_s
        while not condition():
            if time.monotonic() > deadline:
                return False
            self._read()
        return True

    def finish(self) -> int:
        """Read all there is, and return the exit status."""
        assert self.read_until(lambda: self.process.poll() is not None)
        while self._read():
            pass
        return self.process.wait()

    def seen(self) -> list[str]:
        """Return the lines that a person could scroll through, from the first to the last."""
        above = [
            "".join(row[column].data for column in range(max(row, default=-1) + 1)).rstrip()
            for row in self._screen.history.top
        ]
        lines = [*above, *(line.rstrip() for line in self._screen.display)]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def _read(self) -> bool:
        os.set_blocking(self._controller, False)
        try:
            data = os.read(self._controller, 65536)
        except BlockingIOError:
            time.sleep(0.005)
            return False
        except OSError:  # the terminal's last user has closed it
            return False
        text = (self._rest + data).decode("utf-8", "ignore")
        self._rest = (self._rest + data)[len(text.encode()) :]
        self.written += text
        self._stream.feed(text.replace("\ufe0f", ""))  # pyte drops what follows it
        return bool(data)


def _set_size(fd: int, columns: int, rows: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@contextmanager
def on_terminal(
    *arguments: str, size: tuple[int, int] = (80, 24), **environment: str
) -> Iterator[Emulator]:
    """Run limpet as a person does, in an environment that says little."""
    controller, terminal = pty.openpty()
    _set_size(terminal, *size)
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLORTERM", "COLUMNS")}
    process = subprocess.Popen(
        [*LIMPET, *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        env={**kept, "TERM": "xterm-256color", **environment},
    )
    os.close(terminal)
    try:
        yield Emulator(process, controller, size)
    finally:
        process.kill()
        process.wait()
        os.close(controller)


def shown(*arguments: str, size: tuple[int, int] = (80, 24), **environment: str) -> Emulator:
    """Run limpet to its end, and return what was on its terminal."""
    with on_terminal(*arguments, size=size, **environment) as terminal:
        terminal.finish()
    return terminal
