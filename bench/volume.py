"""A gigabyte of output, captured whole, against a redirection to a file."""

from __future__ import annotations

import resource
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Row, at_most, timed
from limpet import Bash, Result

BYTES = 1 << 30
ROUNDS = 3
GROWTH = 20 << 20
KINDS = {"zeros": f"head -c {BYTES} /dev/zero", "lines": f"yes | head -c {BYTES}"}


def measure() -> Iterator[Row]:
    """Yield the rows of time, and of the growth of this program's memory."""
    bash = Bash()
    bash.run_sync("seq 100000")
    before = _peak()
    with tempfile.TemporaryDirectory(dir=_same_disk(bash)) as directory:
        target = Path(directory) / "output"
        for kind, command in KINDS.items():
            pairs = []
            for _ in range(ROUNDS):
                results: list[Result] = []
                to_file = ["bash", "-c", f"{command} > {target}"]
                floor = timed(lambda: subprocess.run(to_file, check=True))  # noqa: B023
                target.unlink()
                ours = timed(lambda: results.append(bash.run_sync(command)))  # noqa: B023
                saved = Path(results[0].spill_path or "")
                assert saved.stat().st_size == BYTES
                saved.unlink()
                pairs.append((ours, floor))
            yield at_most(
                f"1 GB of {kind}, captured whole",
                min(a for a, _ in pairs),
                min(b for _, b in pairs),
                2.5,
            )
    growth = _peak() - before
    yield Row(
        "memory grown by it",
        f"{growth / (1 << 20):.1f} MiB",
        "20 MiB",
        growth / GROWTH,
        "≤ 1",
        growth <= GROWTH,
    )


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _same_disk(bash: Bash) -> Path:
    return Path(bash.run_sync("seq 100000").spill_path or "/tmp").parent  # noqa: S108
