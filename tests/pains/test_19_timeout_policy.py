"""One rule for every command: a limit always exists, and the result says what it was."""

from __future__ import annotations

import pytest

import limpet

COMMANDS = [
    "sleep 60",
    "sleep 60 & sleep 60",
    "cat <(sleep 60)",
    "nohup sleep 60",
    "while :; do :; done",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_outcome_does_not_depend_on_the_text(command: str) -> None:
    result = limpet.Bash(timeout_s=0.3).run_sync(command)
    assert result.outcome is limpet.Outcome.TIMED_OUT
    assert result.exit_code in (137, 143)
    assert "limit of 0.3 s" in (result.hint or "")
    assert "timeout_s" in (result.hint or "")
    assert result.survivors == ()


def test_there_is_a_default_limit() -> None:
    assert limpet.Bash().policy.timeout_s == 120


@pytest.mark.parametrize("timeout_s", [0, -1, float("inf"), float("nan")])
def test_a_limit_that_is_none_is_refused_before_anything_starts(
    bash: limpet.Bash, timeout_s: float
) -> None:
    with pytest.raises(ValueError, match="timeout_s must be positive"):
        bash.run_sync("true", timeout_s=timeout_s)


def test_a_limit_that_is_no_number_is_refused(bash: limpet.Bash) -> None:
    with pytest.raises(TypeError, match="timeout_s"):
        bash.run_sync("true", timeout_s="30")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no such argument: timeout"):
        bash.run_sync("true", timeout=30)  # type: ignore[call-arg]


def test_the_set_of_outcomes_is_closed() -> None:
    assert {outcome.value for outcome in limpet.Outcome} == {
        "exited", "signaled", "timed_out", "cancelled",
        "backgrounded", "refused", "failed_to_start", "output_capped",
    }  # fmt: skip
