"""What would wait for a person fails at once, with a hint."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support import python

import limpet

ANSWERED_S = 5.0
"""Far less than anyone who waits for an answer would take."""


def test_reading_from_standard_input_meets_its_end(bash: limpet.Bash) -> None:
    assert bash.run_sync("cat").output == ""
    read = bash.run_sync("read x")
    assert read.exit_code == 1
    assert "standard input was at its end" in (read.hint or "")
    asked = bash.run_sync(python("input('Name? ')"), timeout_s=ANSWERED_S)
    assert asked.exit_code == 1
    assert "nobody can answer" in (asked.hint or "")


def test_there_is_no_terminal_to_ask_on(bash: limpet.Bash) -> None:
    result = bash.run_sync("exec </dev/tty")
    assert result.exit_code != 0
    assert "No such device or address" in result.output
    assert bash.run_sync("tty").output == "not a tty\n"


def test_the_callers_terminal_is_out_of_reach_too() -> None:
    """Also when the host itself runs on one: the command is in a session of its own."""
    import pty
    import subprocess
    import sys

    controller, terminal = pty.openpty()
    code = "import limpet; print(limpet.Bash().run_sync('exec </dev/tty').output)"
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import os, fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n{code}",
        ],
        stdin=terminal,
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    ) as host:
        output, _ = host.communicate(timeout=10)
    os.close(controller)
    os.close(terminal)
    assert "No such device or address" in output


def test_text_for_standard_input_is_read_to_its_end(bash: limpet.Bash) -> None:
    assert bash.run_sync("read a; read b; echo $b $a", stdin="one\ntwo\n").output == "two one\n"
    large = "x" * 3_000_000
    assert bash.run_sync("wc -c", stdin=large).output == "3000000\n"
    assert bash.run_sync("od -An -tx1", stdin=b"\x00\xff").output == " 00 ff\n"
    assert bash.run_sync("true", stdin=large).ok  # nobody reads it


QUESTIONS = {
    "sudo": "sudo: a terminal is required to read the password",
    "git": "fatal: could not read Username for 'https://x': terminal prompts disabled",
    "ssh": "Host key verification failed.",
}


@pytest.mark.parametrize("message", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_a_program_that_could_not_ask_is_recognised(bash: limpet.Bash, message: str) -> None:
    result = bash.run_sync(f'echo "{message}" >&2; exit 1')
    assert "nobody can answer" in (result.hint or "")


def test_text_that_only_looks_like_a_prompt_is_not_taken_for_one(bash: limpet.Bash) -> None:
    for text in ("collecting ... ", "Password: ", "Continue? [y/N] "):
        assert bash.run_sync(f"printf '{text}'").hint is None


def test_who_waits_for_input_at_the_limit_is_asked_of_the_kernel(
    bash: limpet.Bash, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "fifo")
    context = limpet.ToolContext(tmp_path)
    result = bash.run_sync("exec 3<>fifo; head -1 <&3", timeout_s=0.3, ctx=context)
    assert result.outcome is limpet.Outcome.TIMED_OUT
    assert f"head -1 was waiting to read from {tmp_path}/fifo" in (result.hint or "")
    working = bash.run_sync("sleep 60 | cat", timeout_s=0.3, ctx=context)
    assert "waiting to read" not in (working.hint or "")
