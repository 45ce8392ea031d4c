"""Apart from the other errors because it needs asyncio, which a program without a loop does not."""

from __future__ import annotations

import asyncio

from limpet.result import Result


class RunCancelled(asyncio.CancelledError):
    """The task that awaited a command was cancelled; the command is dead, its output is here."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.describe())
        self.result = result
