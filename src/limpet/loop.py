"""The event loop a run needs: asyncio's, or a small one for callers that have none.

A run is written against these few methods, which every asyncio loop has. `SelectorLoop` has them
too, so that `run_sync` and the command line need not import asyncio: that alone would take longer
than everything else `limpet run true` does.
"""

from __future__ import annotations

import heapq
import itertools
import selectors
import signal
import threading
import time
from collections.abc import Callable
from typing import Protocol

_LONGEST_IDLE_S = 86400.0
"""Beyond 24 days the kernel cannot be asked to wait."""


class Timer(Protocol):
    """A call that was put off."""

    def cancel(self) -> None:
        """Never make the call."""


class Loop(Protocol):
    """The part of `asyncio.AbstractEventLoop` that a run uses."""

    def add_reader(self, fd: int, callback: Callable[..., object], /, *args: object) -> None:
        """Call back whenever the descriptor can be read."""

    def remove_reader(self, fd: int, /) -> bool:
        """Stop calling back for the descriptor."""

    def call_later(self, delay: float, callback: Callable[..., object], /, *args: object) -> Timer:
        """Call back once, after `delay` seconds."""


class _Timer:
    __slots__ = ("args", "callback")

    def __init__(self, callback: Callable[..., object], args: tuple[object, ...]) -> None:
        self.callback: Callable[..., object] | None = callback
        self.args = args

    def cancel(self) -> None:
        self.callback = None


class GuardedLoop:
    """A loop whose callbacks cannot fail unheard: asyncio would log the error and go on waiting."""

    def __init__(self, loop: Loop, on_error: Callable[[Exception], None]) -> None:
        self._loop = loop
        self._on_error = on_error

    def call(self, callback: Callable[..., object], *args: object) -> None:
        """Call now, and hear of what goes wrong."""
        try:
            callback(*args)
        except Exception as error:
            self._on_error(error)

    def add_reader(self, fd: int, callback: Callable[..., object], /, *args: object) -> None:
        """Call back whenever the descriptor can be read."""
        self._loop.add_reader(fd, self.call, callback, *args)

    def remove_reader(self, fd: int, /) -> bool:
        """Stop calling back for the descriptor."""
        return self._loop.remove_reader(fd)

    def call_later(self, delay: float, callback: Callable[..., object], /, *args: object) -> Timer:
        """Call back once, after `delay` seconds."""
        return self._loop.call_later(delay, self.call, callback, *args)


class Timers:
    """Timers by name: to set one again replaces it."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._timers: dict[str, Timer] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._timers

    def set(
        self, name: str, delay_s: float, callback: Callable[..., object], *args: object
    ) -> None:
        """Call back once, after `delay_s` seconds."""
        self.drop(name)
        self._timers[name] = self._loop.call_later(delay_s, callback, *args)

    def drop(self, name: str) -> None:
        """Never call back, if there is such a timer."""
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    def drop_all(self) -> None:
        """Never call back."""
        for name in tuple(self._timers):
            self.drop(name)


class SelectorLoop:
    """A loop for one thread and one purpose: run until told that it is done."""

    def __init__(self) -> None:
        self._is_waiting = False
        self._interrupted = False
        # A handful of descriptors: poll is as good as epoll, and needs none of its own.
        self._selector = selectors.PollSelector()
        self._timers: list[tuple[float, int, _Timer]] = []
        self._order = itertools.count()

    def add_reader(self, fd: int, callback: Callable[..., object], /, *args: object) -> None:
        """Call back whenever the descriptor can be read."""
        self._watch(fd, selectors.EVENT_READ, callback, args)

    def remove_reader(self, fd: int, /) -> bool:
        """Stop calling back for the descriptor."""
        return self._unwatch(fd)

    def add_writer(self, fd: int, callback: Callable[..., object], /, *args: object) -> None:
        """Call back whenever the descriptor can be written."""
        self._watch(fd, selectors.EVENT_WRITE, callback, args)

    def remove_writer(self, fd: int, /) -> bool:
        """Stop calling back for the descriptor."""
        return self._unwatch(fd)

    def call_later(self, delay: float, callback: Callable[..., object], /, *args: object) -> _Timer:
        """Call back once, after `delay` seconds."""
        timer = _Timer(callback, args)
        heapq.heappush(self._timers, (time.monotonic() + delay, next(self._order), timer))
        return timer

    def run_until(self, is_done: Callable[[], bool]) -> None:
        """Serve descriptors and timers until `is_done` says so."""
        while not is_done():
            self._is_waiting = True
            try:
                if self._interrupted:
                    self._interrupted = False
                    raise KeyboardInterrupt
                events = self._selector.select(self._idle_s())
            finally:
                self._is_waiting = False
            for key, _ in events:
                callback, args = key.data
                # An earlier callback of this round may have removed the descriptor.
                if self._selector.get_map().get(key.fd) is key:
                    callback(*args)
            self._run_due_timers()

    def defer_interrupts(self) -> Callable[[], None]:
        """Let Ctrl-C interrupt this loop only while it waits, never in the middle of a callback.

        Returns:
            What restores the way it was. Off the main thread, or where the program handles
            SIGINT itself, nothing is changed.
        """
        on_main = threading.current_thread() is threading.main_thread()
        if not on_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            return lambda: None

        def on_interrupt(*_: object) -> None:
            if self._is_waiting:
                raise KeyboardInterrupt
            self._interrupted = True

        def restore() -> None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if self._interrupted:
                raise KeyboardInterrupt

        signal.signal(signal.SIGINT, on_interrupt)
        return restore

    def _watch(
        self, fd: int, event: int, callback: Callable[..., object], args: tuple[object, ...]
    ) -> None:
        self._unwatch(fd)
        self._selector.register(fd, event, (callback, args))

    def _unwatch(self, fd: int) -> bool:
        try:
            self._selector.unregister(fd)
        except KeyError:
            return False
        return True

    def _idle_s(self) -> float | None:
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        if not self._timers:
            return None
        return min(max(0.0, self._timers[0][0] - time.monotonic()), _LONGEST_IDLE_S)

    def _run_due_timers(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if timer.callback is not None:
                timer.callback(*timer.args)
