"""A listener hears of output when it is written, and of life when there is none."""

from __future__ import annotations

import asyncio
import time

import limpet
from limpet.events import Event, Finished, Output, Progress, Started


def _events(bash: limpet.Bash, command: str, **call: float) -> list[tuple[float, Event]]:
    async def main() -> list[tuple[float, Event]]:
        return [
            (time.time(), e) async for e in bash.stream(command, timeout_s=call.get("timeout_s"))
        ]

    return asyncio.run(main())


def test_output_arrives_while_the_command_runs(bash: limpet.Bash) -> None:
    """How soon is measured by the benchmarks; here, that it does not wait for the end."""
    events = _events(bash, "date +%s.%N; sleep 0.7; echo end")
    heard, first = next((t, e) for t, e in events if isinstance(e, Output))
    assert heard - float(first.text) < 0.5


def test_events_come_in_order_and_the_result_is_last(bash: limpet.Bash) -> None:
    events = [e for _, e in _events(bash, "echo a; echo b >&2; exit 3")]
    assert isinstance(events[0], Started)
    assert "".join(e.text for e in events if isinstance(e, Output)) == "a\nb\n"
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.result.exit_code == 3
    assert [type(e) for e in events].count(Finished) == 1


def test_progress_counts_and_is_not_more_than_one_a_second(bash: limpet.Bash) -> None:
    events = _events(bash, "echo one; printf two; sleep 2.4")
    progress = [e for _, e in events if isinstance(e, Progress)]
    assert len(progress) == 2
    assert (progress[-1].bytes, progress[-1].lines, progress[-1].last_line) == (7, 1, "two")
    assert progress[-1].elapsed_s >= 2


def test_a_silent_command_that_times_out_is_told_about_buffering(bash: limpet.Bash) -> None:
    result = bash.run_sync("sleep 30", timeout_s=0.2)
    assert "stdbuf" in (result.hint or "")
    spoke = bash.run_sync("echo x; sleep 30", timeout_s=0.2)
    assert "stdbuf" not in (spoke.hint or "")


def test_a_slow_consumer_neither_blocks_the_command_nor_misses_the_result(
    bash: limpet.Bash,
) -> None:
    async def main() -> tuple[int, int, limpet.Result | None]:
        seen = skipped = 0
        result = None
        async for event in bash.stream("seq 1000000", timeout_s=30):
            if isinstance(event, Started):
                await asyncio.sleep(1.5)  # long after the command could have ended
            elif isinstance(event, Output):
                seen += len(event.data)
                skipped += event.skipped_bytes
            elif isinstance(event, Finished):
                result = event.result
        return seen, skipped, result

    seen, skipped, result = asyncio.run(main())
    assert result is not None
    assert result.exit_code == 0
    assert result.duration_s < 1.5
    assert seen + skipped == result.total_bytes
    assert skipped > 0


def test_a_stream_that_cannot_start_finishes_with_the_reason(bash: limpet.Bash) -> None:
    (event,) = (e for _, e in _events(bash, "\0"))
    assert isinstance(event, Finished)
    assert event.result.outcome is limpet.Outcome.FAILED_TO_START
