"""The peak memory of a command, which the kernel tells only in part.

A child that was started by vfork is charged with the peak of its parent, whose memory it used until
exec. Its own peak is known from the kernel if it is larger than that; a smaller one is sampled.
"""

from __future__ import annotations

import resource

from limpet.loop import Loop, Timer
from limpet.process import reap, table

_FIRST_SAMPLE_S = 0.03
_LAST_SAMPLE_S = 8.0
"""Samples are taken at intervals that double from the first to the last."""


class PeakMemory:
    """Finds out the largest resident size of a shell or of one of its descendants."""

    def __init__(self) -> None:
        self._sampled = 0
        self._timer: Timer | None = None
        # The kernel counts resident pages per CPU and adds up late: a little more than it says.
        own_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * reap.RSS_UNIT
        self._charged = own_peak + (1 << 20)

    def watch(self, loop: Loop, pid: int, interval_s: float = _FIRST_SAMPLE_S) -> None:
        """Look now and then, until `stop`."""
        self._timer = loop.call_later(interval_s, self._sample, loop, pid, interval_s)

    def _sample(self, loop: Loop, pid: int, interval_s: float) -> None:
        self._sampled = max(self._sampled, table.peak_memory(pid))
        self.watch(loop, pid, min(interval_s * 2, _LAST_SAMPLE_S))

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def bytes(self, ended: reap.Ended) -> int | None:
        """Return the peak; None if the command ended too soon to be told."""
        known = ended.max_rss_bytes if ended.max_rss_bytes > self._charged else 0
        return max(known, self._sampled) or None
