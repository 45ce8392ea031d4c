"""`make bench`: measure all, or the parts that are named; print one table, or JSON."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys

from rich.console import Console
from rich.table import Table

from bench import check, cold, endurance, latency, mcp, sandbox, tasks, throughput, volume
from bench.measure import Row

PARTS = {
    "latency": latency.measure,
    "sandbox": sandbox.measure,
    "throughput": throughput.measure,
    "volume": volume.measure,
    "cold": cold.measure,
    "check": check.measure,
    "tasks": tasks.measure,
    "mcp": mcp.measure,
    "endurance": endurance.measure,
}


def main() -> int:
    """Measure, print, and return 1 if a goal was missed."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all of them")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    options = parser.parse_args()
    rows: list[Row] = []
    progress = Console(stderr=True)
    with progress.status("measuring") as status:
        for name in options.parts or PARTS:
            status.update(f"measuring {name}")
            if not progress.is_terminal:
                print(f"measuring {name} …", file=sys.stderr)
            rows += PARTS[name]()
    if options.json:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))
    else:
        Console(width=100).print(_table(rows))
    return 0 if all(row.reached for row in rows) else 1


def _table(rows: list[Row]) -> Table:
    table = Table(title="limpet against what it is built on, in one interleaved run")
    table.add_column("what")
    for name in ("limpet", "floor", "ratio", "goal"):
        table.add_column(name, justify="right")
    table.add_column("")
    for row in rows:
        mark = "" if not row.goal else "[green]✓[/]" if row.reached else "[red]✗[/]"
        table.add_row(row.what, row.limpet, row.floor, f"{row.ratio:.2f}", row.goal, mark)
    return table


if __name__ == "__main__":
    sys.exit(main())
