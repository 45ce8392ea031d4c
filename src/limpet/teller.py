"""Tells a listener how a run goes."""

from __future__ import annotations

import time
from collections.abc import Callable

from limpet.events import Finished, Progress, RawEvent, Started, Stream, Written
from limpet.loop import Timers
from limpet.output.capture import Capture
from limpet.process.reap import Child
from limpet.result import Result

PROGRESS_S = 1.0


class Teller:
    """Makes events of what happens in a run."""

    def __init__(self, listener: Callable[[RawEvent], None]) -> None:
        self._listener = listener

    def started(self, child: Child, timers: Timers, capture: Capture) -> None:
        """Tell that the shell runs, and from now on how it goes."""
        started_s = time.monotonic()
        self._listener(Started(child.pid, child.run_id))

        def progress() -> None:
            elapsed_s = time.monotonic() - started_s
            counts = (capture.total_bytes, capture.total_lines)
            self._listener(Progress(elapsed_s, *counts, capture.last_line()))
            timers.set("progress", PROGRESS_S, progress)

        timers.set("progress", PROGRESS_S, progress)

    def output(self, stream: Stream, data: bytes) -> None:
        """Tell of a piece of output."""
        self._listener(Written(stream, data))

    def finished(self, result: Result) -> None:
        """Tell of the end."""
        self._listener(Finished(result))
