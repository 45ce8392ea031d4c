"""One short command: `run(":")` against a bare Popen and wait of the same bash."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
from collections.abc import Iterator

from bench.measure import Row, at_most, percentile, timed
from limpet import Bash
from limpet.events import Output

ROUNDS = 600


def measure() -> Iterator[Row]:
    """Yield the rows: on asyncio, blocking, and the first byte of a stream."""
    shell = shutil.which("bash") or "bash"
    bash = Bash()

    def floor() -> None:
        subprocess.Popen([shell, "-c", ":"]).wait()

    async def interleaved() -> tuple[list[float], list[float], list[float]]:
        floors, runs, blocking = [], [], []
        await bash.run(":")
        for _ in range(ROUNDS):
            floors.append(timed(floor))
            started = time.perf_counter()
            await bash.run(":")
            runs.append(time.perf_counter() - started)
        for _ in range(ROUNDS // 2):
            floors.append(timed(floor))
            blocking.append(timed(lambda: bash.run_sync(":")))
        return floors, runs, blocking

    floors, runs, blocking = asyncio.run(interleaved())
    early = floors[:ROUNDS]
    yield at_most('run(":"), p50', percentile(runs, 0.5), percentile(early, 0.5), 1.15)
    yield at_most('run(":"), p95', percentile(runs, 0.95), percentile(early, 0.95), None)
    late = percentile(floors[ROUNDS:], 0.5)
    yield at_most('run_sync(":"), p50', percentile(blocking, 0.5), late, None)
    yield asyncio.run(_first_byte(bash))


async def _first_byte(bash: Bash) -> Row:
    command = "for i in $(seq 50); do date +%s.%N; sleep 0.01; done"
    delays = [
        time.time() - float(event.text.split()[-1])
        async for event in bash.stream(command)
        if isinstance(event, Output)
    ]
    heard = percentile(delays, 0.95)
    return Row(
        "written to heard, p95",
        f"{heard * 1000:.2f} ms",
        "100 ms",
        heard / 0.1,
        "≤ 1",
        heard <= 0.1,
    )
