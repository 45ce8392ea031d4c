"""Many commands at once: one event loop against a thread for each."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from bench.measure import Row, percentile, timed
from limpet import Bash

COMMANDS = 400
AT_ONCE = 16
ROUNDS = 5


def measure() -> Iterator[Row]:
    """Yield the rows of commands per second, the median of several interleaved rounds."""
    shell = shutil.which("bash") or "bash"
    bash = Bash(max_concurrent=AT_ONCE)

    async def gather() -> None:
        await asyncio.gather(*(bash.run(":") for _ in range(COMMANDS)))

    def captured(_: int) -> None:
        subprocess.run([shell, "-c", ":"], stdin=subprocess.DEVNULL, capture_output=True)

    def bare(_: int) -> None:
        subprocess.Popen([shell, "-c", ":"]).wait()

    def in_threads(one: Callable[[int], None]) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(one, range(COMMANDS)))

    rounds = [
        (
            timed(lambda: asyncio.run(gather())),
            timed(lambda: in_threads(captured)),
            timed(lambda: in_threads(bare)),
        )
        for _ in range(ROUNDS)
    ]
    ours, captured_s, bare_s = (percentile([r[i] for r in rounds], 0.5) for i in range(3))
    what = f"{COMMANDS} commands, {AT_ONCE} at a time"
    yield _row(f"{what}, to threads that capture too", ours, captured_s, goal=0.9)
    yield _row(f"{what}, to threads of bare Popen", ours, bare_s, goal=None)


def _row(what: str, ours_s: float, theirs_s: float, goal: float | None) -> Row:
    ratio = theirs_s / ours_s
    return Row(
        what,
        f"{COMMANDS / ours_s:.0f} /s",
        f"{COMMANDS / theirs_s:.0f} /s",
        ratio,
        "" if goal is None else f"≥ {goal}",
        goal is None or ratio >= goal,
    )
