"""Bounded concurrency for callers on any number of loops and threads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class Turns:
    """At most so many at once; the others are called in the order in which they came."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._free = at_once
        self._waiting: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()

    @property
    def in_use(self) -> int:
        """How many have a turn now."""
        return self._at_once - self._free

    def take(self, on_turn: Callable[[], None] | None = None) -> bool:
        """Take a turn now, or be called on whichever thread gives one back."""
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            if on_turn is not None:
                self._waiting.append(on_turn)
            return False

    def withdraw(self, on_turn: Callable[[], None]) -> bool:
        """Stop waiting; False if the turn was given already, and is to be given back."""
        with self._lock:
            if on_turn in self._waiting:
                self._waiting.remove(on_turn)
                return True
            return False

    def give_back(self) -> None:
        """Pass the turn on to whoever waits longest."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._free += 1
                    return
                on_turn = self._waiting.popleft()
            try:
                on_turn()
            except RuntimeError:
                continue  # the waiter's loop was closed: it waits no more
            return
