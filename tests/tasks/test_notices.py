"""A host is told once when a task ends, also of those that ended while nobody listened."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import aclosing

import pytest
from support import wait_until

import limpet
from limpet.tasks import watch
from limpet.tasks.notices import Notice
from limpet.tasks.record import TaskStatus
from limpet.tasks.shelf import Shelf
from limpet.tasks.task import Task
from tasks.helpers import ended, finished_text, host, kill_supervisor, printed


def over(bash: limpet.Bash, command: str, session_id: str | None = None) -> Task:
    """Return a task that has ended."""
    task = bash.start_sync(command, ctx=limpet.ToolContext(session_id=session_id), description="d")
    ended(task)
    finished_text(task)
    return task


def taken(bash: limpet.Bash, count: int, session_id: str | None = None) -> list[Notice]:
    """Return so many notices, as soon as they are there."""
    found: list[Notice] = []

    def is_enough() -> bool:
        found.extend(bash.take_notices(session_id))
        return len(found) >= count

    assert wait_until(is_enough), found
    return found


def test_what_has_ended_is_told_once(bash: limpet.Bash) -> None:
    task = over(bash, "seq 30; exit 3", "s")
    (notice,) = taken(bash, 1)
    assert (notice.task_id, notice.status, notice.exit_code) == (task.id, TaskStatus.EXITED, 3)
    assert (notice.command, notice.description, notice.session_id) == ("seq 30; exit 3", "d", "s")
    assert notice.last_lines == "".join(f"{number}\n" for number in range(21, 31))
    assert 0 <= notice.duration_s < 20
    assert bash.take_notices() == []


def test_what_runs_is_not_told_of(bash: limpet.Bash) -> None:
    bash.start_sync("sleep 60")
    assert bash.take_notices() == []


def test_a_host_that_was_not_there_is_told_of_all(bash: limpet.Bash) -> None:
    said = host(
        "ids = [bash.start_sync(f'sleep 0.{i}; exit {i}').id for i in range(1, 4)]\nprint(*ids)"
    )
    found = taken(bash, 3)
    assert [notice.task_id for notice in found] == said.split()
    assert [notice.exit_code for notice in found] == [1, 2, 3]
    assert bash.take_notices() == []


def test_each_conversation_is_told_of_its_own(bash: limpet.Bash) -> None:
    first, second = over(bash, "true", "one"), over(bash, "true", "two")
    third = over(bash, "true")
    assert [notice.task_id for notice in taken(bash, 1, "one")] == [first.id]
    assert bash.take_notices("one") == []
    assert [notice.task_id for notice in taken(bash, 1, "two")] == [second.id]
    assert [notice.task_id for notice in taken(bash, 1)] == [third.id]


def test_a_lost_task_is_told_of_once(bash: limpet.Bash) -> None:
    task = bash.start_sync("echo begun; sleep 60")
    printed(task, "begun")
    kill_supervisor(task)
    (notice,) = taken(bash, 1)
    assert (notice.task_id, notice.status, notice.exit_code) == (task.id, TaskStatus.LOST, None)
    assert notice.last_lines == "begun\n"
    task.stop_sync()
    assert bash.take_notices() == []


def test_stopped_and_timed_out_tasks_are_told_of(bash: limpet.Bash) -> None:
    bash.start_sync("sleep 60").stop_sync()
    ended(bash.start_sync("sleep 60", timeout_s=0.2))
    found = {notice.status: notice for notice in taken(bash, 2)}
    assert found.keys() == {TaskStatus.STOPPED, TaskStatus.TIMED_OUT}
    assert "0.2 s" in (found[TaskStatus.TIMED_OUT].reason or "")


def test_adopted_tasks_are_told_of(bash: limpet.Bash) -> None:
    ctx = limpet.ToolContext(session_id="s")
    left = bash.run_sync("sleep 0.2 & echo x", ctx=ctx)
    promoted = bash.run_sync("sleep 0.4; exit 4", timeout_s=0.1, on_timeout="background", ctx=ctx)
    found = {notice.task_id: notice.exit_code for notice in taken(bash, 2, "s")}
    assert found.keys() == {left.task_id, promoted.task_id}
    assert found[promoted.task_id or ""] == 4


def test_another_program_is_not_told_of_tasks_whose_own_is_alive(bash: limpet.Bash) -> None:
    task = over(bash, "true")
    assert host("print(len(bash.take_notices()))") == "0\n"
    assert [notice.task_id for notice in bash.take_notices()] == [task.id]


def test_of_several_who_ask_one_is_told(bash: limpet.Bash) -> None:
    ids = host("print(*[bash.start_sync('true').id for _ in range(5)])").split()
    for task_id in ids:
        finished_text(bash.task(task_id))
    assert wait_until(lambda: len(Shelf.of_this_user().untold()) == len(ids))
    code = "print(*[n.task_id for n in bash.take_notices()])"
    askers = [
        subprocess.Popen(
            [sys.executable, "-c", f"import limpet; bash = limpet.Bash(); {code}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    told = " ".join(asker.communicate(timeout=20)[0] for asker in askers).split()
    assert sorted(told) == sorted(ids)


@pytest.mark.parametrize("use_inotify", [True, False])
def test_a_subscriber_is_told_as_it_happens_and_of_before(
    bash: limpet.Bash, monkeypatch: pytest.MonkeyPatch, use_inotify: bool
) -> None:
    monkeypatch.setattr(watch, "USE_INOTIFY", use_inotify)
    before = over(bash, "exit 1")

    async def main() -> list[tuple[str, int | None]]:
        told = []
        async with aclosing(bash.notices()) as notices:  # type: ignore[type-var]  # it has aclose
            async with asyncio.timeout(20):
                async for notice in notices:
                    told.append((notice.task_id, notice.exit_code))
                    if len(told) == 3:
                        break
                    task = await bash.start(f"sleep 0.1; exit {len(told) + 1}")
                    ids.append(task.id)
        return told

    ids = [before.id]
    assert asyncio.run(main()) == [(task_id, place) for place, task_id in enumerate(ids, start=1)]
    assert bash.take_notices() == []


def test_a_subscriber_of_a_lost_task_is_told(bash: limpet.Bash) -> None:
    async def main() -> Notice:
        async with aclosing(bash.notices("s")) as notices:  # type: ignore[type-var]  # it has aclose
            task = await bash.start("sleep 60", ctx=limpet.ToolContext(session_id="s"))
            await asyncio.to_thread(kill_supervisor, task)
            async with asyncio.timeout(20):
                return await anext(notices)

    assert asyncio.run(main()).status is TaskStatus.LOST


def test_a_task_removed_before_anybody_asked_is_not_told_of(bash: limpet.Bash) -> None:
    over(bash, "true")
    assert wait_until(lambda: len(Shelf.of_this_user().prune(0, 0)) == 1)
    assert bash.take_notices() == []
