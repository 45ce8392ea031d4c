"""One reader for a run's pipes: it masks, keeps a window, spills what is long, tells a listener."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from limpet.events import Stream
from limpet.output.mask import Mask
from limpet.output.window import Cut, Window
from limpet.policy import OutputPolicy

if TYPE_CHECKING:
    from limpet.output.spill import CappedFile

_READ_BYTES = 1 << 16
"""A pipe's usual capacity: a read that fills it means that the command outpaces us."""
_FLOOD_READ_BYTES = 1 << 18
_FLOOD_PIPE_BYTES = 1 << 20
"""Then the pipe is widened, so that the command and we run at once rather than in turns."""


class Pipe:
    """The read end of one of a run's pipes."""

    def __init__(
        self,
        fd: int,
        stream: Stream,
        secrets: tuple[bytes, ...] = (),
        *,
        is_terminal: bool = False,
    ) -> None:
        self.fd = fd
        self.stream: Stream = stream
        self.is_terminal = is_terminal
        """True for the other end of a terminal, which ends in an error."""
        self.is_watched = False
        """True while a loop calls back for it."""
        self.mask = Mask(secrets) if secrets else None
        self.flood: bytearray | None = None
        os.set_blocking(fd, False)

    def close(self) -> None:
        """Give up the descriptor."""
        os.close(self.fd)

    def widen(self) -> None:
        """Prepare for a flood: a larger pipe and one buffer that is used again."""
        self.flood = bytearray(_FLOOD_READ_BYTES)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with suppress(OSError):  # over the user's share of pipe memory: slower, not wrong
                fcntl.fcntl(self.fd, fcntl.F_SETPIPE_SZ, _FLOOD_PIPE_BYTES)

    def available(self) -> int:
        """Return how many bytes lie in the pipe now."""
        count: int = struct.unpack("i", fcntl.ioctl(self.fd, termios.FIONREAD, b"\0\0\0\0"))[0]
        return count


class Captured(NamedTuple):
    """All that is kept of a run's output, as text."""

    stdout: str
    stderr: str
    output: str
    truncated: bool
    omitted_bytes: int
    omitted_lines: int
    total_bytes: int
    omitted_by_stream: tuple[int, int]
    """Bytes of stdout and of stderr; in merged mode all is stdout's."""
    spill_path: str | None
    save_error: OSError | None
    """What kept the output from being saved in full, other than the cap."""
    cap: str | None
    """The cap on what is saved, in words, if there was something to save."""


_NOTHING = Captured("", "", "", False, 0, 0, 0, (0, 0), None, None, None)


class Capture:
    """Takes in everything a run writes, in constant memory."""

    def __init__(
        self,
        run_id: str,
        policy: OutputPolicy,
        listener: Callable[[Stream, bytes], None] | None = None,
        log: CappedFile | None = None,
    ) -> None:
        """Begin with nothing; a log gets everything, else only long output gets a file."""
        self._run_id = run_id
        self._policy = policy
        self._listener = listener
        self._all = self._window()
        self._parts: dict[Stream, Window] = {}
        if policy.streams == "separate":
            self._parts = {"stdout": self._window(), "stderr": self._window()}
        self._spill: CappedFile | None = log
        self._spill_error: OSError | None = None
        self._is_closed = False

    def _window(self) -> Window:
        return Window(self._policy.head_bytes, self._policy.tail_bytes)

    @property
    def total_bytes(self) -> int:
        """How much was written so far."""
        return self._all.total_bytes

    @property
    def total_lines(self) -> int:
        """How many newlines were written so far."""
        return self._all.total_lines

    @property
    def is_capped(self) -> bool:
        """True once output was left out of the file because of its cap."""
        return self._spill is not None and self._spill.is_capped

    def last_line(self) -> str:
        """Return the last line so far, clean."""
        from limpet.output.text import clean

        return clean(self._all.last_line())

    def read(self, pipe: Pipe) -> int | None:
        """Take in what one read of a pipe gives.

        Returns:
            How many bytes there were; 0 at the end of the stream; None if there are none now.
        """
        if pipe.flood is None:
            try:
                data = os.read(pipe.fd, _READ_BYTES)
            except BlockingIOError:
                return None
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                data = b""  # what a terminal says when nobody has it open any more
            if len(data) == _READ_BYTES and not pipe.is_terminal:
                pipe.widen()
            self._take(pipe, data, final=not data)
            return len(data)
        try:
            count = os.readv(pipe.fd, [pipe.flood])
        except BlockingIOError:
            return None
        if pipe.mask is None and self._listener is None and count:
            self._keep(
                pipe.stream, memoryview(pipe.flood)[:count], pipe.flood.count(b"\n", 0, count)
            )
        else:
            self._take(pipe, bytes(memoryview(pipe.flood)[:count]), final=not count)
        return count

    def read_all(self, pipe: Pipe) -> bool:
        """Take in all that lies in a pipe now; return whether that is the end of the stream."""
        expected: int | None = None
        taken = 0
        while expected is None or taken < expected:
            count = self.read(pipe)
            if not count:
                return count == 0
            taken += count
            if expected is None:
                expected = taken + pipe.available()
        return False

    def finish(self, pipe: Pipe) -> None:
        """Let go of what a mask held back, when no more is read from a pipe."""
        self._take(pipe, b"", final=True)

    def _take(self, pipe: Pipe, data: bytes, *, final: bool) -> None:
        if pipe.mask is not None:
            data = pipe.mask.feed(data, final=final)
        if data:
            self._keep(pipe.stream, data, data.count(b"\n"))
            if self._listener is not None:
                self._listener(pipe.stream, data)

    def _keep(self, stream: Stream, data: bytes | memoryview, newlines: int) -> None:
        inline = self._policy.head_bytes + self._policy.tail_bytes
        is_long = self._all.total_bytes + len(data) > inline and not self._all.overflowed
        if is_long and self._spill is None:
            self._open_spill()
        if self._spill is not None:
            self._spill.write(data)
        self._all.feed(data, newlines)
        if self._parts:
            self._parts[stream].feed(data, newlines)

    def _open_spill(self) -> None:
        from limpet.output.spill import Spill  # rarely needed, and slow to import

        try:
            self._spill = Spill(self._run_id, self._policy)
        except OSError as error:
            self._spill_error = error
        else:
            self._spill.write(self._all.whole())

    def log(self) -> CappedFile | None:
        """Return the file of this run, made now if the output was short so far, and open again."""
        if self._spill is None and not self._all.overflowed:
            self._open_spill()
        elif self._spill is not None and self._is_closed:
            self._spill = self._spill.reopened()
        self._is_closed = False
        return self._spill

    def close(self) -> Captured:
        """Finish the file and return what is kept."""
        if not self._all.total_bytes and self._spill is None:
            return _NOTHING
        if self._spill is None and self._is_to_be_saved():
            self._open_spill()
        path = None
        if self._spill is not None:
            path = str(self._spill.path)
            self._spill.close()
            self._is_closed = True
            self._spill_error = self._spill.error
        cut = self._all.cut()
        whole = self._text(cut, path, self._all.total_bytes)
        stdout, stderr = whole, ""
        omitted = cut.omitted_bytes, 0
        if self._parts:
            out, err = self._parts["stdout"], self._parts["stderr"]
            cut_out, cut_err = out.cut(), err.cut()
            stdout = self._text(cut_out, path, out.total_bytes)
            stderr = self._text(cut_err, path, err.total_bytes)
            omitted = cut_out.omitted_bytes, cut_err.omitted_bytes
        return Captured(
            stdout=stdout,
            stderr=stderr,
            output=whole,
            truncated=cut.omitted_bytes > 0,
            omitted_bytes=cut.omitted_bytes,
            omitted_lines=cut.omitted_lines,
            total_bytes=self._all.total_bytes,
            omitted_by_stream=omitted,
            spill_path=path,
            save_error=self._spill_error,
            cap=self._spill.cap if self._spill is not None else None,
        )

    def _is_to_be_saved(self) -> bool:
        """True for output that the policy wants saved even though nothing of it is cut."""
        most = self._policy.save_bytes
        if most is None or self._all.overflowed:  # what has overflowed could not be saved before
            return False
        return self._all.total_bytes > most

    def _text(self, cut: Cut, path: str | None, total_bytes: int) -> str:
        from limpet.output.text import is_binary  # slow to import, and many commands print nothing

        if is_binary(cut.head) and (not cut.tail or is_binary(cut.tail)):
            where = f"; {self._where(path)}" if cut.omitted_bytes else ""
            return f"[binary output: {total_bytes} bytes{where}]\n"
        head = _part(cut.head)
        if not cut.omitted_bytes:
            return head
        if self._policy.cut_mark is not None:
            return head + self._policy.cut_mark + _part(cut.tail)
        if head and not head.endswith("\n"):
            head += "\n"
        counts = f"{cut.omitted_lines} lines / {cut.omitted_bytes} bytes omitted"
        return f"{head}[… {counts}; {self._where(path)} …]\n{_part(cut.tail)}"

    def _where(self, path: str | None) -> str:
        """Say where the whole of the output is, or how much of it."""
        error = self._spill_error
        if error is not None:
            where = f"not saved in full: {error.strerror or error}"
        else:
            where = "up to the cap" if self.is_capped else "full"
        return where if path is None else f"{where}: {path}"


def _part(data: bytes) -> str:
    from limpet.output.text import clean, is_binary

    return f"[binary data: {len(data)} bytes]\n" if is_binary(data) else clean(data)
