"""What is kept of tasks, how much, for how long; and ids that are none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import wait_until

import limpet
from limpet.tasks.record import TaskStatus
from limpet.tasks.shelf import Shelf
from limpet.tasks.task import Task
from tasks.helpers import ended, finished_text, kill_supervisor, killed_host, printed

CAP = 20_000


def finished(bash: limpet.Bash, command: str = "true") -> Task:
    """Return a task that has ended, and whose supervisor is gone."""
    task = bash.start_sync(command)
    ended(task)
    finished_text(task)
    assert wait_until(lambda: task.state().record.supervisor.find() is None)
    return task


def age(task: Task, days: float) -> None:
    """Have a task ended longer ago."""
    path = Path(task.directory, "task.json")
    record = json.loads(path.read_text())
    record["end"]["ended_at"] -= days * 86400
    path.write_text(json.dumps(record))


# The log


def test_a_log_is_capped_and_the_command_goes_on(tmp_path: Path) -> None:
    bash = limpet.Bash(output=limpet.OutputPolicy(spill_bytes=CAP))
    task = bash.start_sync(f"seq 100000; echo end > {tmp_path}/end; exit 3")
    waited = ended(task)
    assert (waited.status, waited.exit_code) == (TaskStatus.EXITED, 3)
    assert (tmp_path / "end").exists()
    text = finished_text(task)
    assert len(text) <= CAP
    assert text.startswith("1\n2\n3\n")
    assert f"its cap of {CAP} bytes" in text
    assert text.splitlines()[-1].startswith("[limpet: exit 3")


def test_a_log_is_capped_when_the_host_is_dead(bash: limpet.Bash, tmp_path: Path) -> None:
    code = (
        f"capped = limpet.Bash(output=limpet.OutputPolicy(spill_bytes={CAP}))\n"
        f"print(capped.start_sync('sleep 0.3; seq 100000; echo > {tmp_path}/end; exit 3').id)\n"
        "print('now')\ntime.sleep(60)"
    )
    task = bash.task(killed_host(code, after="now")[0])
    assert ended(task).exit_code == 3
    assert (tmp_path / "end").exists()
    assert Path(task.output_path).stat().st_size <= CAP


def test_a_promoted_log_is_capped_too(tmp_path: Path) -> None:
    bash = limpet.Bash(output=limpet.OutputPolicy(spill_bytes=CAP))
    result = bash.run_sync(
        f"echo first; sleep 0.4; seq 100000; echo > {tmp_path}/end; exit 3",
        timeout_s=0.2,
        on_timeout="background",
    )
    task = bash.task(result.task_id or "")
    assert ended(task).exit_code == 3
    assert (tmp_path / "end").exists()
    assert Path(task.output_path).stat().st_size <= CAP
    assert task.output(0).text.startswith("first\n1\n2\n")


def test_all_logs_together_are_capped() -> None:
    bash = limpet.Bash(
        output=limpet.OutputPolicy(spill_bytes=4 << 20, spill_directory_bytes=6 << 20)
    )
    old = [finished(bash, "head -c 3000000 /dev/zero") for _ in range(2)]
    for place, task in enumerate(old):
        age(task, 1)
        os.utime(task.output_path, (place, place))
    ended(bash.start_sync("head -c 3000000 /dev/zero; exit 3"))
    sizes = [Path(task.output_path).stat().st_size for task in bash.tasks()]
    assert sum(sizes) <= 6 << 20
    assert old[0].id not in {task.id for task in bash.tasks()}


# Retention


def test_finished_tasks_are_kept_for_a_stated_time(bash: limpet.Bash) -> None:
    old, new = finished(bash), finished(bash)
    age(old, 8)
    Path(Shelf.of_this_user().path, ".swept").unlink(missing_ok=True)
    latest = finished(bash)
    assert wait_until(lambda: {t.id for t in bash.tasks()} == {new.id, latest.id}), bash.tasks()


def test_finished_tasks_are_kept_up_to_a_stated_count() -> None:
    bash = limpet.Bash(tasks_kept=2)
    tasks = [finished(bash) for _ in range(4)]
    for place, task in enumerate(reversed(tasks), start=1):
        age(task, place / 100)
    Path(Shelf.of_this_user().path, ".swept").unlink(missing_ok=True)
    tasks.append(finished(bash))
    assert wait_until(lambda: {t.id for t in bash.tasks()} == {t.id for t in tasks[-2:]})


def test_what_has_just_ended_can_be_read_whatever_the_policy_says() -> None:
    bash = limpet.Bash(tasks_kept=0, task_days=0)
    task = finished(bash, "echo hi")
    Path(Shelf.of_this_user().path, ".swept").unlink(missing_ok=True)
    finished(bash)
    assert task.output().text == "hi\n"


def test_pruning_leaves_what_runs_and_what_is_left_of_the_lost(bash: limpet.Bash) -> None:
    running = bash.start_sync("sleep 60")
    lost = bash.start_sync("sleep 60")
    kill_supervisor(lost)
    gone = finished(bash)
    shelf = Shelf.of_this_user()
    assert shelf.prune(0, 0) == [gone.id]
    assert {task.id for task in bash.tasks()} == {running.id, lost.id}
    assert not Path(gone.directory).exists()
    with pytest.raises(limpet.TaskNotFound):
        bash.task(gone.id)
    os.kill(lost.pid, signal.SIGKILL)
    assert wait_until(lambda: shelf.prune(0, 0) == [lost.id])


def test_pruning_by_age_and_by_count(bash: limpet.Bash) -> None:
    tasks = [finished(bash) for _ in range(4)]
    for place, task in enumerate(tasks):
        age(task, place)
    shelf = Shelf.of_this_user()
    assert shelf.prune(2.5, 100) == [tasks[3].id]
    assert shelf.prune(100, 2) == [tasks[2].id]
    assert {task.id for task in bash.tasks()} == {tasks[0].id, tasks[1].id}


def test_a_task_that_is_removed_meanwhile_is_an_error_that_says_so(bash: limpet.Bash) -> None:
    task = finished(bash)
    Shelf.of_this_user().prune(0, 0)
    for ask in (task.state, task.output, task.stop_sync, task.wait_sync):
        with pytest.raises(OSError, match=task.id):
            ask()


def test_what_never_became_a_task_is_swept(bash: limpet.Bash) -> None:
    shelf = Shelf.of_this_user()
    _, draft = shelf.draft()
    shelf.prune(0, 0)
    assert draft.exists()
    an_hour = time.time() + 3700
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: an_hour)
        shelf.prune(0, 0)
    assert not draft.exists()


def test_pruning_beside_each_other_harms_nobody(bash: limpet.Bash) -> None:
    finished(bash)
    code = (
        "from limpet.tasks.shelf import Shelf\nshelf = Shelf.of_this_user()\n"
        "for _ in range(40): bash.tasks(); shelf.states(); shelf.prune(0, 0)\nprint('fine')"
    )
    pruners = [
        subprocess.Popen(
            [sys.executable, "-c", f"import limpet\nbash = limpet.Bash()\n{code}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for _ in range(10):
        bash.start_sync("true")
    assert [process.communicate(timeout=30)[0] for process in pruners] == ["fine\n"] * 2


# Ids

NO_IDS = ["", ".", "..", "../x", "bash-../..", "bash-ABCDEF", "bash-abcdef/", "bash-abcdef\n",
          "bash-abcde", "bash-abcdefg", "/etc/passwd", "running", "bash-abcde\0", "bash-äbcdef",
          None, 7, b"bash-abcdef", "*", "bash-??????"]  # fmt: skip


@pytest.mark.parametrize("task_id", NO_IDS)
def test_what_is_no_id_is_refused_and_reaches_no_file(
    bash: limpet.Bash, task_id: str, state_dir: Path
) -> None:
    decoy = {"end": None}
    for place in (state_dir / "x", state_dir / "tasks/bash-ABCDEF", state_dir / "tasks/running"):
        place.mkdir(parents=True, mode=0o700, exist_ok=True)
        (place / "task.json").touch(mode=0o600)
        (place / "task.json").write_text(json.dumps(decoy))
    for place in (state_dir, state_dir / "tasks"):
        place.chmod(0o700)
    with pytest.raises(limpet.TaskNotFound, match=r"not the id of a task.*there are none"):
        bash.task(task_id)
    (state_dir / "tasks/running/task.json").unlink()


def test_an_unknown_id_is_told_with_those_that_there_are(bash: limpet.Bash) -> None:
    task = finished(bash)
    with pytest.raises(LookupError, match=f"no task bash-zzzzzz; there are: {task.id}"):
        bash.task("bash-zzzzzz")


def test_of_many_ids_some_are_told(bash: limpet.Bash) -> None:
    for _ in range(12):
        bash.start_sync("true")
    with pytest.raises(
        limpet.TaskNotFound, match=r"there are: (bash-\w{6}, ){9}bash-\w{6} and 2 more"
    ):
        bash.task("bash-zzzzzz")


def test_what_lies_around_is_no_task(bash: limpet.Bash, state_dir: Path) -> None:
    task = bash.start_sync("echo hi; sleep 60")
    printed(task, "hi")
    (state_dir / "tasks/bash-emptyx").mkdir(mode=0o700)
    (state_dir / "tasks/notes").mkdir(mode=0o700)
    (state_dir / "tasks/bash-filexx").touch(mode=0o600)
    assert [found.record.id for found in Shelf.of_this_user().states()] == [task.id]
    assert [found.id for found in bash.tasks()] == [task.id]
