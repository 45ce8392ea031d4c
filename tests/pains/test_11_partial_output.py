"""A command that is ended keeps what it printed, and the limit is named."""

from __future__ import annotations

import asyncio

import limpet


def test_what_was_printed_before_the_timeout_is_there(bash: limpet.Bash) -> None:
    result = bash.run_sync("echo CRITICAL; sleep 30", timeout_s=0.3)
    assert result.outcome is limpet.Outcome.TIMED_OUT
    assert result.output == "CRITICAL\n"
    assert "0.3 s" in (result.hint or "")
    assert 0.3 <= result.duration_s < 2


def test_what_was_printed_while_being_killed_is_there_too(bash: limpet.Bash) -> None:
    command = "trap 'seq 20000; exit' TERM; echo first; sleep 30 & wait"
    result = bash.run_sync(command, timeout_s=0.3)
    assert result.output.startswith("first\n1\n2\n")
    assert result.output.endswith("20000\n")


def test_long_output_before_the_timeout_is_cut_and_saved_as_ever(bash: limpet.Bash) -> None:
    result = asyncio.run(bash.run("seq 100000; sleep 30", timeout_s=1))
    assert result.outcome is limpet.Outcome.TIMED_OUT
    assert result.output.endswith("100000\n")
    assert result.spill_path is not None
