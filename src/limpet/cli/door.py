"""One run of the command line: between signals, the command, and our own streams or terminal."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from limpet.attempt import Call
from limpet.cli.sink import Sink
from limpet.events import RawEvent, Written
from limpet.loop import SelectorLoop
from limpet.result import Result
from limpet.run import Run
from limpet.tool import Bash

if TYPE_CHECKING:
    from limpet.cli.terminal import Terminal

_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Door:
    """Drives one run on a loop of its own, between signals, the command and our own streams."""

    def __init__(
        self, *, on_terminal: bool, quiet: bool, description: str, prints: bool = True
    ) -> None:
        """Prepare for a run.

        Args:
            on_terminal: Whether a person looks on.
            quiet: Whether nothing is to be shown meanwhile.
            description: What is said of it while it takes long.
            prints: On a terminal, whether what it writes is printed, or only shown meanwhile.
        """
        self._loop = SelectorLoop()
        self._results: list[Result] = []
        self._errors: list[Exception] = []
        self._active: Run | None = None
        self._sinks: dict[str, Sink] = {}
        self._terminal: Terminal | None = None
        self._show: Callable[[RawEvent], None] = self._pass_on
        if quiet:
            self._show = lambda _: None
        elif on_terminal:
            from limpet.cli.terminal import Terminal

            self._terminal = Terminal(self._loop, description, prints=prints)
            self._show = self._terminal.show
        else:
            self._sinks = {"stdout": self._sink(1), "stderr": self._sink(2)}

    @property
    def error(self) -> OSError | None:
        """What kept us from writing: whoever read our output is gone, or the disk is full."""
        return next((sink.error for sink in self._sinks.values() if sink.error), None)

    def _sink(self, fd: int) -> Sink:
        return Sink(
            self._loop,
            fd,
            on_full=self._pause,
            on_room=self._resume,
            on_broken=self._cancel,
        )

    def _pause(self) -> None:
        if self._active is not None:
            self._active.pause()

    def _resume(self) -> None:
        if self._active is not None:
            self._active.resume()

    def run(self, bash: Bash, command: str, call: Call) -> Result:
        """Run the command to its end; a signal to this program ends it early."""
        restore = self._on_signals()
        try:
            self._active = bash.launch(
                command, self._loop, self._results.append, self._errors.append, self._show, **call
            )
            self._loop.run_until(self._is_done)
        finally:
            restore()
            if self._terminal is not None:
                self._terminal.close()
        if self._errors:
            raise self._errors[0]
        return self._results[0]

    def _is_done(self) -> bool:
        if self._errors:
            return True
        return bool(self._results) and all(sink.is_idle for sink in self._sinks.values())

    def _cancel(self) -> None:
        if self._active is not None:
            self._active.cancel()

    def _pass_on(self, event: RawEvent) -> None:
        if isinstance(event, Written):
            self._sinks[event.stream].write(event.data)

    def _on_signals(self) -> Callable[[], None]:
        """Cancel the run on a signal, from the loop and not from a handler."""
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        os.set_blocking(read_end, False)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        # What is ignored stays ignored: nohup wants it so.
        numbers = [n for n in _ENDING_SIGNALS if signal.getsignal(n) is not signal.SIG_IGN]
        before = {number: signal.signal(number, lambda *_: None) for number in numbers}

        def wake() -> None:
            with suppress(BlockingIOError):
                os.read(read_end, 64)
            self._cancel()
            # A reader that takes nothing must not keep us from leaving.
            for sink in self._sinks.values():
                sink.give_up()

        self._loop.add_reader(read_end, wake)

        def restore() -> None:
            self._loop.remove_reader(read_end)
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(read_end)
            os.close(write_end)

        return restore
