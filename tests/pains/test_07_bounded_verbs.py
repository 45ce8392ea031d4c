"""What cannot be killed is named; it is not waited for."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import wait_until

import limpet

FREEZERS = (Path("/sys/fs/cgroup/freezer"), Path("/sys/fs/cgroup"))


@pytest.fixture
def freezer() -> Iterator[Path]:
    """Return a cgroup that freezes: what is in it does not even die of SIGKILL (cgroup v1)."""
    root = FREEZERS[0]
    if not (os.geteuid() == 0 and root.is_dir()):
        pytest.skip("to make an unkillable process takes root and a v1 freezer")
    path = root / f"limpet-test-{os.getpid()}"
    path.mkdir()
    yield path
    (path / "freezer.state").write_text("THAWED")
    assert wait_until(lambda: not (path / "cgroup.procs").read_text().split())
    path.rmdir()


def test_an_unkillable_process_does_not_block_the_call(bash: limpet.Bash, freezer: Path) -> None:
    command = (
        f"sleep 60 & echo $! > {freezer}/cgroup.procs;"
        f" echo FROZEN > {freezer}/freezer.state; sleep 60"
    )
    started = time.monotonic()
    result = bash.run_sync(command, timeout_s=0.5)
    assert time.monotonic() - started < 3.0
    assert result.outcome is limpet.Outcome.TIMED_OUT
    (survivor,) = result.survivors
    assert survivor.fate == "kill_failed"
    assert survivor.command == "sleep 60"
    assert str(survivor.pid) in (result.hint or "")


def test_an_unkillable_shell_does_not_block_the_call(bash: limpet.Bash, freezer: Path) -> None:
    command = f"echo $$ > {freezer}/cgroup.procs; echo FROZEN > {freezer}/freezer.state; sleep 60"
    result = bash.run_sync(command, timeout_s=0.5)
    assert result.outcome is limpet.Outcome.TIMED_OUT
    assert result.exit_code is None
    assert [s.fate for s in result.survivors] == ["kill_failed"]
    (freezer / "freezer.state").write_text("THAWED")
    # It dies now, and the next run reaps it.
    assert wait_until(lambda: bash.run_sync("(true &)").ok and not _children())


def _children() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
