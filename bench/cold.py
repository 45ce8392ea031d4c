"""The command line from nothing: `limpet run true` against an interpreter that does nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Row, at_most, percentile, timed

ROUNDS = 25


def measure() -> Iterator[Row]:
    """Yield the row."""
    limpet = Path(sys.executable).with_name("limpet")
    pairs = [
        (
            timed(lambda: subprocess.run([limpet, "run", "true"], check=True)),
            timed(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)),
        )
        for _ in range(ROUNDS)
    ]
    ours, floor = ([pair[side] for pair in pairs] for side in (0, 1))
    yield at_most("limpet run true, cold", percentile(ours, 0.5), percentile(floor, 0.5), 8)
