"""The file that keeps long output is private and bounded, and reaching the bound has a name."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from support import marked_processes, wait_until

import limpet

CAP = 2_000_000


def test_a_command_that_reaches_the_cap_is_stopped_and_says_so() -> None:
    bash = limpet.Bash(output=limpet.OutputPolicy(spill_bytes=CAP))
    result = bash.run_sync("seq 100000000", timeout_s=50)
    assert result.outcome is limpet.Outcome.OUTPUT_CAPPED
    assert result.is_error
    assert str(CAP) in (result.hint or "")
    assert result.spill_path is not None
    saved = Path(result.spill_path).read_bytes()
    assert len(saved) == CAP
    assert saved.startswith(b"1\n2\n3\n")
    assert result.output.startswith("1\n2\n3\n")
    assert marked_processes() == {}


def test_output_of_exactly_the_cap_is_not_capped() -> None:
    bash = limpet.Bash(output=limpet.OutputPolicy(spill_bytes=CAP))
    result = bash.run_sync(f"head -c {CAP} /dev/zero")
    assert result.outcome is limpet.Outcome.EXITED
    assert result.spill_path is not None
    assert Path(result.spill_path).stat().st_size == CAP


def test_the_cap_holds_for_what_survivors_write_later() -> None:
    """Their log is capped, and they are not killed by it."""
    bash = limpet.Bash(output=limpet.OutputPolicy(spill_bytes=1 << 20))
    command = "(sleep 0.3; head -c 5M /dev/zero; echo survived > survived; sleep 60) & echo x"
    result = bash.run_sync(command, ctx=limpet.ToolContext(os.environ["LIMPET_STATE_DIR"] + "/.."))
    assert result.spill_path is not None
    survived = Path(os.environ["LIMPET_STATE_DIR"]).parent / "survived"
    assert wait_until(survived.exists)
    assert Path(result.spill_path).stat().st_size <= 1 << 20
    for pid in marked_processes():
        os.kill(pid, 9)


def test_the_file_is_for_this_user_only(bash: limpet.Bash, state_dir: Path) -> None:
    before = os.umask(0)
    try:
        result = bash.run_sync("seq 100000")
    finally:
        os.umask(before)
    assert result.spill_path is not None
    path = Path(result.spill_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert state_dir in path.parents


def test_short_output_touches_no_disk(bash: limpet.Bash, state_dir: Path) -> None:
    result = bash.run_sync("seq 1000 | head -5; seq 1000")
    assert result.spill_path is None
    assert not state_dir.exists()
