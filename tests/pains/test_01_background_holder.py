"""A backgrounded child that keeps the pipe open does not keep the call."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest
from support import is_running, marked_processes, python, wait_until

import limpet

HOLDER_S = 60
RETURNED_S = 5.0
"""Far less than the holders live; how soon exactly is measured by the benchmarks."""


@pytest.fixture(autouse=True)
def end_survivors() -> Iterator[None]:
    """What a test leaves running on purpose is ended by the test."""
    yield
    for pid in marked_processes():
        os.kill(pid, signal.SIGKILL)


HOLDERS = {
    "silent": f"sleep {HOLDER_S} &",
    "noisy": "yes &",
    "stderr only": f"sleep {HOLDER_S} 2>&1 >/dev/null &",
    "nohup": f"nohup sleep {HOLDER_S} 2>/dev/null &",
    "disowned": f"sleep {HOLDER_S} & disown;",
    "own session": f"setsid sleep {HOLDER_S} &",
    "own session, forked": f"setsid -f sleep {HOLDER_S};",
    "detached from the pipe": f"setsid sleep {HOLDER_S} >/dev/null 2>&1 &",
    "grandchild": python(f"import subprocess; subprocess.Popen(['sleep', '{HOLDER_S}'])") + ";",
    "subshell": f"(sleep {HOLDER_S} &);",
}


@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS.keys())
def test_the_call_returns_while_the_holder_lives(bash: limpet.Bash, holder: str) -> None:
    started = time.monotonic()
    result = bash.run_sync(f"{holder} echo done")
    assert time.monotonic() - started < RETURNED_S
    assert result.outcome is limpet.Outcome.EXITED
    assert result.exit_code == 0
    assert "done\n" in result.output
    (survivor,) = result.survivors
    assert survivor.fate == "left"
    assert survivor.command in (f"sleep {HOLDER_S}", "yes")
    assert is_running(survivor.pid)
    assert str(survivor.pid) in (result.hint or "")


def test_a_job_that_is_waited_for_is_waited_for(bash: limpet.Bash) -> None:
    result = bash.run_sync("(sleep 0.3; echo late) & wait; echo end")
    assert result.output == "late\nend\n"
    assert result.survivors == ()


def test_output_of_a_process_substitution_that_ends_a_little_later_is_kept(
    bash: limpet.Bash,
) -> None:
    assert bash.run_sync("echo hi > >(sleep 0.03; cat)").output == "hi\n"


def test_a_process_that_is_about_to_end_is_no_survivor(bash: limpet.Bash) -> None:
    assert bash.run_sync("(sleep 0.01 >/dev/null 2>&1 &)").survivors == ()


def test_a_survivor_that_writes_is_not_killed_by_the_end_of_the_call(bash: limpet.Bash) -> None:
    """Its output goes on into the file that the result names."""
    result = bash.run_sync("(for i in $(seq 100); do echo line $i; sleep 0.02; done; sleep 60) &")
    survivor = result.survivors[0]
    assert result.spill_path is not None

    def saved() -> str:
        assert result.spill_path is not None
        with open(result.spill_path) as file:
            return file.read()

    assert wait_until(lambda: "line 100\n" in saved())
    assert saved() == "".join(f"line {i}\n" for i in range(1, 101))
    assert is_running(survivor.pid)


def test_survivors_can_be_killed_by_policy() -> None:
    result = limpet.Bash(survivors="kill").run_sync(f"sleep {HOLDER_S} & echo done")
    assert result.output == "done\n"
    assert result.exit_code == 0
    assert [s.fate for s in result.survivors] == ["killed"]
    assert marked_processes() == {}


def test_survivors_can_be_waited_for_by_policy() -> None:
    bash = limpet.Bash(survivors="wait")
    assert bash.run_sync("(sleep 0.3; echo late) & echo done").output == "done\nlate\n"
    silent = bash.run_sync("(sleep 0.3 >/dev/null 2>&1) & echo done")
    assert silent.duration_s >= 0.3
    assert silent.survivors == ()


def test_waiting_for_survivors_ends_at_the_time_limit() -> None:
    result = limpet.Bash(survivors="wait").run_sync("sleep 60 & echo done", timeout_s=0.5)
    assert result.outcome is limpet.Outcome.TIMED_OUT
    assert result.output == "done\n"
    assert marked_processes() == {}
