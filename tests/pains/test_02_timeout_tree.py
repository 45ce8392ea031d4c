"""A timeout ends everything the command started, not only the shell."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from support import ORDINARY, as_ordinary_user, marked_processes, python

import limpet

OVERRUN_S = 1.0

TREES = {
    "three levels": 'bash -c \'bash -c "sleep 60" & bash -c "sleep 60"; :\'; :',
    "pipeline": "sleep 60 | cat | cat",
    "job control": "set -m; sleep 60 & sleep 60 & wait",
    "python pool": python(
        "import multiprocessing as m, time\nwith m.Pool(3) as p: p.map(time.sleep, [60] * 3)"
    ),
    "deaf": "trap '' TERM; while :; do sleep 1; done",
    "deaf child": python("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"),
    "stopped": "kill -STOP $$",
    "restarting": "trap 'sleep 60 & wait' TERM; sleep 60",
}


@pytest.mark.parametrize("command", TREES.values(), ids=TREES.keys())
def test_nothing_of_the_tree_lives_on(bash: limpet.Bash, command: str) -> None:
    started = time.monotonic()
    result = bash.run_sync(command, timeout_s=0.4)
    overrun_s = time.monotonic() - started - 0.4
    assert result.outcome is limpet.Outcome.TIMED_OUT
    assert marked_processes() == {}
    assert overrun_s < OVERRUN_S


def test_a_trap_gets_its_window(bash: limpet.Bash) -> None:
    result = bash.run_sync("trap 'echo bye' TERM EXIT; sleep 60", timeout_s=0.3)
    assert result.outcome is limpet.Outcome.TIMED_OUT
    assert "bye\n" in result.output


def test_a_trap_runs_once(bash: limpet.Bash) -> None:
    command = "trap 'echo term' TERM; setsid sleep 60 & sleep 60; sleep 0.1"
    assert bash.run_sync(command, timeout_s=0.3).output.count("term\n") == 1


def test_the_window_is_as_long_as_the_policy_says() -> None:
    patient = limpet.Bash(kill_grace_s=3.0)
    command = "trap 'sleep 0.8; echo cleaned; exit' TERM; sleep 60 & wait"
    assert patient.run_sync(command, timeout_s=0.2).output == "cleaned\n"
    hasty = limpet.Bash(kill_grace_s=0.0)
    assert hasty.run_sync(command, timeout_s=0.2).output == ""


def test_the_time_limit_holds_for_a_command_that_floods(bash: limpet.Bash) -> None:
    result = bash.run_sync("yes", timeout_s=0.3)
    assert result.outcome is limpet.Outcome.TIMED_OUT
    assert result.total_bytes > 0


def test_the_time_limit_holds_for_a_command_that_closed_its_output(bash: limpet.Bash) -> None:
    result = bash.run_sync("exec >&- 2>&-; sleep 60", timeout_s=0.3)
    assert result.outcome is limpet.Outcome.TIMED_OUT


def test_it_is_the_same_for_an_ordinary_user(bash: limpet.Bash, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    context = limpet.ToolContext("/")
    command = "id -u; setsid sleep 60 & env -i setsid sleep 60 & sleep 60"

    def act() -> str:
        result = bash.run_sync(command, timeout_s=0.5, ctx=context)
        return f"{result.outcome} {result.output} {result.survivors}"

    assert as_ordinary_user(act) == f"timed_out {os.geteuid() or ORDINARY}\n ()"
    assert marked_processes() == {}


def test_a_very_short_limit_is_a_limit(bash: limpet.Bash) -> None:
    result = bash.run_sync("sleep 60", timeout_s=0.001)
    assert result.outcome is limpet.Outcome.TIMED_OUT
    assert marked_processes() == {}
