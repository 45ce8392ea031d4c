"""Stopping a task: SIGTERM, a grace, SIGKILL, a sweep; bounded, and it says what it did."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest
from support import all_pids, marked_processes, python, wait_until

import limpet
from limpet.process import table
from limpet.tasks.record import TaskStatus
from tasks.helpers import ended, finished_text, killed_host, printed


def test_sigterm_is_honoured(bash: limpet.Bash) -> None:
    task = bash.start_sync("trap 'echo bye; exit 4' TERM; echo ready; sleep 60 & wait")
    printed(task, "ready")
    stopped = task.stop_sync()
    assert (stopped.status, stopped.exit_code) == (TaskStatus.STOPPED, 4)
    assert "ended with SIGTERM" in stopped.what
    assert task.output().text == "ready\nbye\n"
    assert marked_processes() == {}
    assert "[limpet: stopped, exit 4 after" in finished_text(task)


def test_who_ignores_sigterm_gets_sigkill(bash: limpet.Bash) -> None:
    task = bash.start_sync("trap '' TERM; echo ready; while :; do sleep 0.1; done")
    printed(task, "ready")
    stopped = task.stop_sync()
    assert (stopped.status, stopped.exit_code) == (TaskStatus.STOPPED, 137)
    assert "ended with SIGKILL" in stopped.what
    assert task.to_dict()["stopped_with"] == "SIGKILL"
    assert marked_processes() == {}


def test_the_grace_is_the_policys() -> None:
    bash = limpet.Bash(kill_grace_s=10)
    task = bash.start_sync("trap 'sleep 1; echo saved; exit' TERM; echo ready; sleep 60 & wait")
    printed(task, "ready")
    assert "SIGTERM" in task.stop_sync().what
    assert task.output().text == "ready\nsaved\n"


DAEMON = (
    "import os, time\n"
    "if os.fork(): os._exit(0)\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    "os.closerange(0, 64)\n"
    "os.execve('/bin/sleep', ['sleep', '61.{tag}'], {{}})"
)


def sleepers(tag: str) -> list[int]:
    """Return the daemons, which carry no mark."""
    return [pid for pid in all_pids() if table.command_line(pid) == f"sleep 61.{tag}"]


@pytest.mark.parametrize("waits", [True, False])
def test_a_daemon_that_left_everything_behind_is_caught(bash: limpet.Bash, waits: bool) -> None:
    """Forked twice, in a session of its own, without environment, group or pipe."""
    tag = f"{os.getpid()}{int(waits)}"
    after = "sleep 60" if waits else "true"
    task = bash.start_sync(f"{python(DAEMON.format(tag=tag))}; echo begun; {after}")
    printed(task, "begun")
    assert wait_until(lambda: len(sleepers(tag)) == 1)
    assert task.status is TaskStatus.RUNNING
    assert task.stop_sync().status is TaskStatus.STOPPED
    left = sleepers(tag)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


def test_its_own_sessions_are_caught(bash: limpet.Bash) -> None:
    task = bash.start_sync("setsid sleep 60 & setsid -f sleep 60; echo begun; wait")
    printed(task, "begun")
    task.stop_sync()
    assert marked_processes() == {}


def test_stopping_twice_and_what_has_ended_is_fine_and_true(bash: limpet.Bash) -> None:
    task = bash.start_sync("sleep 60")
    assert task.stop_sync().status is TaskStatus.STOPPED
    again = task.stop_sync()
    assert (again.status, again.what) == (TaskStatus.STOPPED, "it had ended already: stopped")
    other = bash.start_sync("exit 3")
    ended(other)
    stopped = other.stop_sync()
    assert (stopped.status, stopped.exit_code) == (TaskStatus.EXITED, 3)
    assert stopped.what == "it had ended already: exited"


def test_many_stop_at_once(bash: limpet.Bash) -> None:
    task = bash.start_sync("trap 'echo once' TERM; echo ready; while :; do sleep 0.1; done")
    printed(task, "ready")

    async def main() -> set[TaskStatus]:
        return {
            stopped.status for stopped in await asyncio.gather(*(task.stop() for _ in range(5)))
        }

    assert asyncio.run(main()) == {TaskStatus.STOPPED}
    assert task.output().text.count("once") == 1


def test_a_stop_that_is_cancelled_does_not_keep_the_task(bash: limpet.Bash) -> None:
    task = bash.start_sync("trap '' TERM; echo ready; while :; do sleep 0.1; done")
    printed(task, "ready")

    async def main() -> None:
        stopping = asyncio.create_task(task.stop())
        await asyncio.sleep(0.1)
        stopping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopping

    asyncio.run(main())
    assert ended(task).status is TaskStatus.STOPPED


def test_a_stopped_process_is_ended_too(bash: limpet.Bash) -> None:
    task = bash.start_sync("echo ready; kill -STOP $$")
    printed(task, "ready")
    assert task.stop_sync().status is TaskStatus.STOPPED
    assert marked_processes() == {}


def test_stopping_is_bounded(bash: limpet.Bash) -> None:
    task = bash.start_sync("trap '' TERM; while :; do (trap '' TERM; sleep 60) & sleep 0.05; done")
    started = time.monotonic()
    assert task.stop_sync().status is TaskStatus.STOPPED
    assert time.monotonic() - started < 10
    assert marked_processes() == {}


# Time limits


def test_a_time_limit_ends_it(bash: limpet.Bash) -> None:
    task = bash.start_sync("echo begun; setsid sleep 60 & sleep 60", timeout_s=0.5)
    waited = ended(task)
    assert (waited.status, waited.text) == (TaskStatus.TIMED_OUT, "begun\n")
    assert "0.5 s" in (task.state().reason or "")
    assert "[limpet: timed out, exit 143" in finished_text(task)
    assert marked_processes() == {}


def test_a_time_limit_counts_for_what_the_shell_has_left(bash: limpet.Bash) -> None:
    task = bash.start_sync("sleep 60 & echo begun", timeout_s=0.5)
    assert ended(task).status is TaskStatus.TIMED_OUT
    assert marked_processes() == {}


def test_a_time_limit_holds_when_the_host_is_dead(bash: limpet.Bash) -> None:
    code = (
        "print(bash.start_sync('echo begun; sleep 60', timeout_s=1).id)\n"
        "print('now'); time.sleep(60)"
    )
    task_id, *_ = killed_host(code, after="now")
    assert ended(bash.task(task_id)).status is TaskStatus.TIMED_OUT
    assert marked_processes() == {}


def test_without_a_time_limit_the_policys_does_not_count() -> None:
    task = limpet.Bash(timeout_s=0.2).start_sync("sleep 0.6; echo done")
    assert ended(task).text == "done\n"
    assert task.to_dict()["timeout_s"] is None


def test_a_limit_that_the_policys_grace_follows() -> None:
    bash = limpet.Bash(kill_grace_s=5)
    task = bash.start_sync(
        "trap 'sleep 0.5; echo saved; exit 0' TERM; sleep 60 & wait", timeout_s=0.3
    )
    waited = ended(task)
    assert (waited.status, waited.exit_code, waited.text) == (TaskStatus.TIMED_OUT, 0, "saved\n")


def test_sigterm_to_the_supervisor_is_a_stop(bash: limpet.Bash) -> None:
    """As a machine that shuts down sends it to all."""
    task = bash.start_sync("echo begun; sleep 60")
    printed(task, "begun")
    os.kill(task.state().record.supervisor.pid, signal.SIGTERM)
    assert ended(task).status is TaskStatus.STOPPED
    assert marked_processes() == {}
