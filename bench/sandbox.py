"""One short command in the sandbox, against a bare bash, and beside bubblewrap if it is there."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator

from bench.measure import Row, at_most, percentile, timed
from limpet import Bash, ToolContext

ROUNDS = 400
GOAL = 1.25


def measure() -> Iterator[Row]:
    """Yield the rows: each mode, and another way to the same end."""
    shell = shutil.which("bash") or "bash"
    tools = {
        'read-only run(":"), p50': (Bash(sandbox="read-only"), GOAL),
        'workspace run(":"), p50': (Bash(sandbox="workspace"), None),
    }
    floors, runs = asyncio.run(_interleaved([shell, "-c", ":"], [t for t, _ in tools.values()]))
    floor = percentile(floors, 0.5)
    for (what, (_, goal)), times in zip(tools.items(), runs, strict=True):
        yield at_most(what, percentile(times, 0.5), floor, goal)
    if (bubblewrap := shutil.which("bwrap")) is not None:
        yield at_most("the same by bubblewrap, p50", _median(_by(bubblewrap, shell)), floor, None)


async def _interleaved(bare: list[str], tools: list[Bash]) -> tuple[list[float], list[list[float]]]:
    ctx = ToolContext("/var")
    floors: list[float] = []
    runs: list[list[float]] = [[] for _ in tools]
    for bash in tools:
        await bash.run(":", ctx=ctx)
    for _ in range(ROUNDS):
        floors.append(timed(lambda: subprocess.Popen(bare).wait()))
        for bash, times in zip(tools, runs, strict=True):
            started = time.perf_counter()
            await bash.run(":", ctx=ctx)
            times.append(time.perf_counter() - started)
    return floors, runs


def _by(bubblewrap: str, shell: str) -> Callable[[], object]:
    options = ["--ro-bind", "/", "/", "--dev", "/dev", "--unshare-all", "--die-with-parent"]
    command = [bubblewrap, *options, shell, "-c", ":"]
    return lambda: subprocess.run(command, check=True)


def _median(action: Callable[[], object]) -> float:
    return percentile([timed(action) for _ in range(ROUNDS // 4)], 0.5)
