"""Nothing that ended stays in the process table under us."""

from __future__ import annotations

import subprocess
import sys

from support import zombie_children

import limpet


def test_many_runs_leave_no_zombies(bash: limpet.Bash) -> None:
    for _ in range(50):
        bash.run_sync("(true &); (sleep 0.001 &)")
    assert zombie_children() == []


REAPER = """
import ctypes, os, subprocess, sys, time
sys.path[:0] = {path!r}
from support import wait_until, zombie_children
import limpet
PR_SET_CHILD_SUBREAPER = 36
assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
others = subprocess.Popen(['true'])
bash = limpet.Bash()
for _ in range(40):
    bash.run_sync("(sleep 0.005 &) ; (true &)")
time.sleep(0.05)
def only_the_others():
    bash.run_sync('(true &)')
    return set(zombie_children()) <= {{others.pid}}
assert wait_until(only_the_others), zombie_children()
assert others.wait() == 0, 'the exit of a child that is not ours was taken away'
"""


def test_orphans_that_come_to_us_are_reaped_and_no_one_elses_children_are() -> None:
    """As pid 1 of a container, or as a subreaper, the host inherits what commands orphan."""
    code = REAPER.format(path=sys.path)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert run.returncode == 0, run.stderr
