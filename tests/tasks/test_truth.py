"""A status is a fact: pid with start time, the lock, the supervisor's word; else it is lost."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import is_running, marked_processes, state_of, wait_until

import limpet
from limpet.tasks.record import TaskStatus
from limpet.tasks.task import Task
from tasks.helpers import (
    Stranger,
    ended,
    finished_text,
    host,
    kill_supervisor,
    printed,
    supervisor_of,
)

FOREVER = "echo begun; while :; do sleep 0.1; done"


def doctor(task: Task, **values: object) -> None:
    """Write something else into the record of a task."""
    path = Path(task.directory, "task.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_a_task_whose_supervisor_was_killed_is_lost_and_can_be_stopped(bash: limpet.Bash) -> None:
    task = bash.start_sync(FOREVER)
    printed(task, "begun")
    kill_supervisor(task)
    state = task.state()
    assert (state.status, task.exit_code) == (TaskStatus.LOST, None)
    assert "still runs" in (state.reason or "")
    assert task.output().text == "begun\n"
    assert is_running(task.pid)
    stopped = task.stop_sync()
    assert stopped.status is TaskStatus.STOPPED
    assert "supervisor was gone" in stopped.what
    assert marked_processes() == {}
    assert task.output().text == "begun\n"
    assert "had ended already" in task.stop_sync().what


def test_a_lost_task_that_ignores_sigterm_is_killed(bash: limpet.Bash) -> None:
    task = bash.start_sync(f"trap '' TERM; {FOREVER}")
    printed(task, "begun")
    kill_supervisor(task)
    assert "SIGKILL" in task.stop_sync().what
    assert marked_processes() == {}


def test_a_task_that_died_with_its_supervisor_is_lost_and_nothing_is_claimed(
    bash: limpet.Bash,
) -> None:
    task = bash.start_sync("echo begun; exec sleep 60")
    printed(task, "begun")
    pid = task.pid
    kill_supervisor(task)
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not is_running(pid))
    state = task.state()
    assert (state.status, task.exit_code) == (TaskStatus.LOST, None)
    assert "not known" in (state.reason or "")
    stopped = task.stop_sync()
    assert (stopped.status, stopped.exit_code) == (TaskStatus.LOST, None)
    assert "had ended" in stopped.what


def test_what_a_lost_task_has_left_is_found_and_stopped(bash: limpet.Bash) -> None:
    task = bash.start_sync("echo begun; (setsid sleep 60 >/dev/null 2>&1 &); exec sleep 60")
    printed(task, "begun")
    pid = task.pid
    kill_supervisor(task)
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not is_running(pid))
    assert marked_processes() != {}
    task.stop_sync()
    assert marked_processes() == {}


def test_a_supervisor_killed_by_the_command_itself_is_lost(bash: limpet.Bash) -> None:
    task = bash.start_sync("echo begun; sleep 0.3; kill -9 $PPID; sleep 60")
    assert task.wait_sync(timeout_s=20).status is TaskStatus.LOST
    assert task.stop_sync().status is TaskStatus.STOPPED
    assert marked_processes() == {}


def test_stop_by_two_at_once_of_a_lost_task(bash: limpet.Bash) -> None:
    task = bash.start_sync(f"trap '' TERM; {FOREVER}")
    printed(task, "begun")
    kill_supervisor(task)
    stoppers = [
        subprocess.Popen(
            [sys.executable, "-m", "limpet.cli", "stop", task.id], stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    said = [stopper.communicate(timeout=20)[0] for stopper in stoppers]
    assert [stopper.returncode for stopper in stoppers] == [0, 0, 0]
    assert any(": stopped: " in output for output in said)
    assert task.status is TaskStatus.STOPPED
    assert marked_processes() == {}


def test_stop_by_many_at_once_of_a_lost_task_on_one_loop(bash: limpet.Bash) -> None:
    task = bash.start_sync(FOREVER)
    printed(task, "begun")
    kill_supervisor(task)

    async def main() -> None:
        async with asyncio.timeout(20):
            await asyncio.gather(*(task.stop() for _ in range(8)))

    asyncio.run(main())
    assert task.status is TaskStatus.STOPPED
    assert marked_processes() == {}


@pytest.mark.parametrize("field", ["shell", "supervisor", "processes"])
def test_a_reused_pid_is_neither_called_running_nor_signalled(
    bash: limpet.Bash, field: str
) -> None:
    """The record names a stranger's pid, as after the pid was given to another process."""
    task = bash.start_sync("true")
    ended(task)
    finished_text(task)
    with Stranger() as stranger:
        mark = [stranger.pid, stranger.start_ticks - 1]
        doctor(task, end=None, **{field: [mark] if field == "processes" else mark})
        assert task.status is TaskStatus.LOST
        assert "still runs" not in (task.state().reason or "")
        assert task.wait_sync(timeout_s=5).matched == "exit"
        assert "had ended" in task.stop_sync().what
        assert stranger.is_alive


def test_the_very_process_of_an_earlier_boot_is_a_stranger(bash: limpet.Bash) -> None:
    """Start times count from the boot: after another one, pid and time may both be the same."""
    task = bash.start_sync("true")
    ended(task)
    finished_text(task)
    with Stranger() as stranger:
        doctor(task, end=None, boot_id="another", shell=[stranger.pid, stranger.start_ticks])
        state = task.state()
        assert state.status is TaskStatus.LOST
        assert "started anew" in (state.reason or "")
        task.stop_sync()
        assert stranger.is_alive


def test_a_running_task_is_not_ended_by_a_record_that_says_otherwise(bash: limpet.Bash) -> None:
    """Nobody is signalled by its number alone; the lock tells that it runs."""
    task = bash.start_sync(FOREVER)
    printed(task, "begun")
    supervisor_of(task)
    with Stranger() as stranger:
        before = json.loads(Path(task.directory, "task.json").read_text())
        doctor(task, shell=[stranger.pid, stranger.start_ticks - 1])
        assert task.status is TaskStatus.RUNNING
        assert task.stop_sync().status is TaskStatus.STOPPED
        assert stranger.is_alive
    assert not is_running(before["shell"][0])


GARBAGE = {
    "empty": b"",
    "half": b'{"id": "bash-',
    "no object": b"[]",
    "other object": b'{"end": null}',
    "bytes": b"\xff\0",
    "marks": b'{"end": null, "shell": 1, "supervisor": null, "processes": 2}',
}


def test_a_record_that_cannot_be_read_is_lost_and_said_so(bash: limpet.Bash) -> None:
    task = bash.start_sync("echo hi")
    ended(task)
    finished_text(task)
    for name, data in GARBAGE.items():
        Path(task.directory, "task.json").write_bytes(data)
        (found,) = bash.tasks()
        assert (found.id, found.status) == (task.id, TaskStatus.LOST), name
        assert "cannot be read" in (found.state().reason or "")
        assert found.output().text.startswith("hi\n")
        assert found.stop_sync().status is TaskStatus.LOST


def test_a_task_whose_output_is_gone_is_no_crash(bash: limpet.Bash) -> None:
    task = bash.start_sync("true")
    ended(task)
    finished_text(task)
    Path(task.output_path).unlink()
    assert (task.status, task.exit_code) == (TaskStatus.EXITED, 0)
    with pytest.raises(OSError, match="No such file"):
        task.output()
    assert [found.id for found in bash.tasks()] == [task.id]


def test_two_programs_share_a_state_directory(bash: limpet.Bash) -> None:
    mine = bash.start_sync("read line; echo got $line; sleep 60", stdin=True)
    said = host(
        f"mine = bash.task({mine.id!r})\n"
        "theirs = bash.start_sync('echo theirs; sleep 60')\n"
        "theirs.wait_sync('/theirs/'); mine.send_sync('this\\n')\n"
        "print(mine.wait_sync('/got/').match); print(mine.stop_sync().status)\n"
        "print(theirs.id); print(len(bash.tasks()))"
    ).splitlines()
    assert said[:2] == ["got this", "stopped"]
    assert mine.status is TaskStatus.STOPPED
    theirs = bash.task(said[2])
    assert (theirs.status, theirs.output().text, said[3]) == (TaskStatus.RUNNING, "theirs\n", "2")
    assert theirs.stop_sync().status is TaskStatus.STOPPED


def test_what_has_exited_is_never_called_stopped(bash: limpet.Bash, tmp_path: Path) -> None:
    """It has ended by itself when its supervisor, which has not seen that yet, is told to stop."""
    go = tmp_path / "go"
    os.mkfifo(go)
    task = bash.start_sync(f"read < {go}; exit 7")
    supervisor = supervisor_of(task)
    os.kill(supervisor, signal.SIGSTOP)
    go.write_text("\n")
    assert wait_until(lambda: state_of(task.pid) == "Z")
    os.kill(supervisor, signal.SIGTERM)
    os.kill(supervisor, signal.SIGCONT)
    waited = ended(task)
    assert (waited.status, waited.exit_code) == (TaskStatus.EXITED, 7)


def test_all_of_them_are_listed_the_latest_first(bash: limpet.Bash) -> None:
    ids = []
    for _ in range(3):
        task = bash.start_sync("true")
        ended(task)
        finished_text(task)
        ids.append(task.id)
    assert {task.id for task in bash.tasks()} == {*ids}
