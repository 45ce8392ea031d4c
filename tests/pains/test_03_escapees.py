"""Processes that leave the group or the session are found and ended too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from support import all_pids, marked_processes, python, wait_until

import limpet
from limpet.process import reap, table
from limpet.process.table import command_line

DAEMON = python(
    "import os, time\n"
    "if os.fork(): os._exit(0)\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    "os.close(1); os.close(2); time.sleep(60)"
)

ESCAPES = {
    "setsid": "setsid sleep 60 & sleep 60",
    "setsid, forked": "setsid -f sleep 60; sleep 60",
    "double fork": f"{DAEMON}; sleep 60",
    "cleared environment": "env -i sleep 60 & sleep 60",
    "cleared environment, own session": "env -i setsid sleep 60 & sleep 60",
    "nested shells": "setsid bash -c 'setsid bash -c \"sleep 60; :\" & sleep 60' & sleep 60",
}


@pytest.mark.parametrize("command", ESCAPES.values(), ids=ESCAPES.keys())
def test_all_are_dead_after_the_timeout(bash: limpet.Bash, command: str) -> None:
    # A nap of its own length tells a sleeper whose environment was cleared from all others.
    nap = f"{60 + os.getpid() / 1e6:.6f}"
    result = bash.run_sync(command.replace("60", nap), timeout_s=0.5)
    assert result.outcome is limpet.Outcome.TIMED_OUT
    assert marked_processes() == {}
    assert [pid for pid in all_pids() if command_line(pid) == f"sleep {nap}"] == []


def test_a_pid_whose_start_time_changed_is_never_signalled() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        process = table.look_up(child.pid)
        assert process is not None
        impostor = process._replace(start_ticks=process.start_ticks - 1)
        reap.send(impostor, signal.SIGKILL)
        assert child.poll() is None
        reap.send(process, signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    finally:
        child.kill()
        child.wait()


def test_an_older_process_that_bears_the_marker_is_not_of_the_run() -> None:
    """A run cannot have started what was there before it, whatever its environment says."""
    environment = {**os.environ, "LIMPET_RUN": "abc"}
    child = subprocess.Popen([sys.executable, "-c", "input()"], env=environment, stdin=-1)
    try:
        now = table.now_ticks()

        def found() -> list[int]:
            return [p.pid for p in table.members(table.NOBODY, "abc", now - 1000)]

        # Right after its start a process has no environment yet.
        assert wait_until(lambda: found() == [child.pid])
        assert table.members(table.NOBODY, "abc", now + 1000) == []
    finally:
        child.communicate()
