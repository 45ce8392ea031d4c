"""Many commands at once: one event loop against a thread for each."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from bench.measure import Row, timed
from limpet import Bash

COMMANDS = 400
AT_ONCE = 16
ROUNDS = 5


def measure() -> Iterator[Row]:
    """Yield the row of commands per second, the best of several interleaved rounds."""
    shell = shutil.which("bash") or "bash"
    bash = Bash(max_concurrent=AT_ONCE)

    def threads() -> None:
        def one(_: int) -> None:
            subprocess.run([shell, "-c", ":"], stdin=subprocess.DEVNULL, capture_output=True)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(one, range(COMMANDS)))

    async def gather() -> None:
        await asyncio.gather(*(bash.run(":") for _ in range(COMMANDS)))

    pairs = [(timed(lambda: asyncio.run(gather())), timed(threads)) for _ in range(ROUNDS)]
    ours, raw = min(a for a, _ in pairs), min(b for _, b in pairs)
    ratio = raw / ours
    yield Row(
        f"{COMMANDS} commands, {AT_ONCE} at a time",
        f"{COMMANDS / ours:.0f} /s",
        f"{COMMANDS / raw:.0f} /s",
        ratio,
        "≥ 0.9",
        ratio >= 0.9,
    )
