"""A command cannot end the program that runs it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import limpet

ATTACKS = {
    "its group": "kill -9 0",
    "its group by number": "kill -9 -- -$$",
    "itself": "kill -9 $$",
    "a polite one": "kill 0",
}


@pytest.mark.parametrize("command", ATTACKS.values(), ids=ATTACKS.keys())
def test_a_kill_of_its_own_group_does_not_reach_the_host(bash: limpet.Bash, command: str) -> None:
    result = bash.run_sync(command)
    assert result.outcome is limpet.Outcome.SIGNALED
    assert result.signal in ("SIGKILL", "SIGTERM")
    assert result.exit_code in (137, 143)


def test_the_command_is_in_a_group_and_session_of_its_own(bash: limpet.Bash) -> None:
    result = bash.run_sync("echo $$; ps -o pgid=,sid= -p $$")
    pid, group, session = map(int, result.output.split())
    assert pid == group == session
    assert group not in (os.getpgrp(), os.getsid(0))


def test_the_command_line_hides_the_command_from_pattern_kills() -> None:
    """`pkill -f` looks at all argument lists: the shell's holds the pattern, ours must not."""
    command = "pkill -f 'no-such-thing-but-here'; echo still here"
    run = subprocess.run(
        [sys.executable, "-m", "limpet.cli", "run", command],
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert run.returncode == 143  # the shell found itself; limpet lived to tell
    assert run.stdout == ""
