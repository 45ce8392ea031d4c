"""One measurement and how it is told."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    what: str
    limpet: str
    floor: str
    ratio: float
    goal: str
    reached: bool


def timed(action: Callable[[], object]) -> float:
    """Return how long an action takes, in seconds."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def percentile(values: list[float], share: float) -> float:
    """Return the value below which a share of the values lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def at_most(what: str, limpet_s: float, floor_s: float, goal: float | None) -> Row:
    """Return the row of two durations whose ratio should be small."""
    ratio = limpet_s / floor_s
    if goal is None:
        return Row(what, _ms(limpet_s), _ms(floor_s), ratio, "", True)
    return Row(what, _ms(limpet_s), _ms(floor_s), ratio, f"≤ {goal}", ratio <= goal)


def within(what: str, limpet_s: float, floor_s: float, goal_s: float) -> Row:
    """Return the row of a duration with a limit of its own, beside what it is built on."""
    goal = f"≤ {_ms(goal_s)}"
    return Row(what, _ms(limpet_s), _ms(floor_s), limpet_s / floor_s, goal, limpet_s <= goal_s)


def _ms(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1000:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"
