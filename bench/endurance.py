"""Ten thousand runs, after which nothing has added up."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Row
from limpet import Bash

RUNS = 10_000
AT_ONCE = 16
MEMORY = 4 << 20


def measure() -> Iterator[Row]:
    """Yield the rows of what is left over: descriptors, threads, zombies, memory."""
    bash = Bash(max_concurrent=AT_ONCE)

    async def some(count: int) -> None:
        for _ in range(count // 100):
            await asyncio.gather(*(bash.run("echo x; (true &); exit 3") for _ in range(100)))

    asyncio.run(some(1000))
    before = _held()
    asyncio.run(some(RUNS))
    after = _held()
    for name in ("descriptors", "threads", "children"):
        grown = after[name] - before[name]
        yield Row(f"{name} after {RUNS} runs", f"+{grown}", "+0", float(grown), "≤ 0", grown <= 0)
    grown = after["memory"] - before["memory"]
    yield Row(
        f"memory after {RUNS} runs",
        f"+{grown / (1 << 20):.1f} MiB",
        "4 MiB",
        max(0.0, grown / MEMORY),
        "≤ 1",
        grown <= MEMORY,
    )


def _held() -> dict[str, int]:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "threads": threading.active_count(),
        "children": len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()),
        "memory": pages * os.sysconf("SC_PAGESIZE"),
    }
