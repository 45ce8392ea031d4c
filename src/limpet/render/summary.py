"""One line about how a command ended, and numbers as a person writes them."""

from __future__ import annotations

from limpet.result import Fate, Outcome, Result

_FATES: dict[Fate, str] = {
    "left": "left running",
    "killed": "left over and killed",
    "kill_failed": "not to be killed",
}


def summary(result: Result) -> str:
    """Return how the command ended: mark, outcome, time, memory, what was cut, what lives on."""
    parts = [outcome(result), seconds(result.duration_s)]
    if result.usage is not None:
        parts.append(f"cpu {seconds(result.usage.cpu_s)}")
        if result.usage.peak_memory_bytes is not None:
            parts.append(f"peak {size(result.usage.peak_memory_bytes)}")
    if result.total_bytes:
        parts.append(f"{size(result.total_bytes)} of output")
    for fate, words in _FATES.items():
        if count := sum(survivor.fate == fate for survivor in result.survivors):
            parts.append(f"{count} {words}")
    return f"{'✓' if result.ok else '✗'} " + " · ".join(parts)


def outcome(result: Result) -> str:
    """Return the outcome in words."""
    match result.outcome:
        case Outcome.EXITED:
            return f"exit {result.exit_code}"
        case Outcome.SIGNALED:
            return f"killed by {result.signal}"
        case other:
            return other.value.replace("_", " ")


def seconds(value: float) -> str:
    """Return a duration as a person writes it."""
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(int(value), 60)
    return f"{minutes} min {rest} s"


def size(count: int) -> str:
    """Return a number of bytes as a person writes it."""
    amount = float(count)
    for unit in ("B", "KB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
