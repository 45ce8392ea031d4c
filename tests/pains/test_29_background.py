"""A server blocks no call: it is started as a task, or becomes one, and not a byte is lost."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import is_running, marked_processes, python, wait_until

import limpet
from limpet.events import Finished, Output
from limpet.tasks.record import TaskStatus
from limpet.tasks.task import Task
from tasks.helpers import end_all, ended, finished_text, printed, without_note

RETURNED_S = 5.0
"""Far less than what is started lives; how soon exactly is measured by the benchmarks."""


@pytest.fixture(autouse=True)
def end_tasks(no_leaks: None, state_dir: Path) -> Iterator[None]:
    """End what a test leaves running."""
    yield
    end_all()


def test_start_returns_while_the_server_lives(bash: limpet.Bash) -> None:
    started = time.monotonic()
    task = bash.start_sync("echo listening; exec sleep 60")
    assert time.monotonic() - started < RETURNED_S
    printed(task, "listening")
    assert is_running(task.pid)
    assert task.stop_sync().status is TaskStatus.STOPPED


Promote = Callable[[limpet.Bash, str], tuple[limpet.Result, str]]


def promoted_by_run_sync(bash: limpet.Bash, command: str) -> tuple[limpet.Result, str]:
    result = bash.run_sync(command, timeout_s=0.3, on_timeout="background")
    return result, result.output


def promoted_by_run(bash: limpet.Bash, command: str) -> tuple[limpet.Result, str]:
    result = asyncio.run(bash.run(command, timeout_s=0.3, on_timeout="background"))
    return result, result.output


def promoted_by_stream(bash: limpet.Bash, command: str) -> tuple[limpet.Result, str]:
    async def main() -> tuple[limpet.Result, str]:
        seen = ""
        async for event in bash.stream(command, timeout_s=0.3, on_timeout="background"):
            if isinstance(event, Output):
                seen += event.text
            if isinstance(event, Finished):
                return event.result, seen
        raise AssertionError("no end")

    return asyncio.run(main())


WAYS = {"run_sync": promoted_by_run_sync, "run": promoted_by_run, "stream": promoted_by_stream}


@pytest.mark.parametrize("promote", WAYS.values(), ids=WAYS.keys())
def test_a_call_at_its_limit_goes_on_as_a_task(bash: limpet.Bash, promote: Promote) -> None:
    result, seen = promote(bash, "echo before; sleep 0.8; echo after; exit 7")
    assert result.outcome is limpet.Outcome.BACKGROUNDED
    assert (result.exit_code, result.signal, result.is_error) == (None, None, False)
    assert result.output == seen == "before\n"
    assert result.check() is result
    assert result.task_id is not None
    assert result.task_id in (result.hint or "")
    task = bash.task(result.task_id)
    assert (task.status, task.to_dict()["origin"]) == (TaskStatus.RUNNING, "promoted")
    waited = ended(task)
    assert (waited.status, waited.exit_code) == (TaskStatus.EXITED, 7)
    assert waited.text == "before\nafter\n"
    assert without_note(finished_text(task)) == "before\nafter\n"
    assert "[limpet: exit 7" in finished_text(task)


COUNTER = """
import sys, time
for n in range(60000):
    sys.stdout.write(f'{n:06d}\\n')
    if n % 3000 == 0: sys.stdout.flush(); time.sleep(0.04)
"""


@pytest.mark.parametrize("promote", WAYS.values(), ids=WAYS.keys())
def test_not_a_byte_is_lost_or_repeated_in_the_middle_of_a_flood(
    bash: limpet.Bash, promote: Promote
) -> None:
    result, _ = promote(bash, f"{python(COUNTER)}; exit 3")
    assert result.outcome is limpet.Outcome.BACKGROUNDED
    task = bash.task(result.task_id or "")
    assert ended(task).exit_code == 3
    assert without_note(finished_text(task)) == "".join(f"{n:06d}\n" for n in range(60000))


def test_both_streams_go_on(state_dir: Path) -> None:
    bash = limpet.Bash(output=limpet.OutputPolicy(streams="separate"))
    result = bash.run_sync(
        "echo out; echo err >&2; sleep 0.8; echo out2; sleep 0.2; echo err2 >&2",
        timeout_s=0.5,
        on_timeout="background",
    )
    assert (result.stdout, result.stderr) == ("out\n", "err\n")
    text = ended(bash.task(result.task_id or "")).text
    assert sorted(text.split()) == ["err", "err2", "out", "out2"]


def test_a_secret_is_masked_across_the_hand_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "supersecretvalue123")
    bash = limpet.Bash(environment=limpet.EnvironmentPolicy(hide_secrets=True))
    halves = python(
        "import time\nfor p in 'a supersecret', 'value123 b\\n': print(p, end='', flush=True);"
        " time.sleep(0.6)"
    )
    result = bash.run_sync(halves, timeout_s=0.4, on_timeout="background")
    assert "super" not in result.output
    task = bash.task(result.task_id or "")
    assert ended(task).text == "a [masked] b\n"
    assert "super" not in finished_text(task)


def test_what_was_killed_by_hand_after_promotion_has_a_true_status(bash: limpet.Bash) -> None:
    result = bash.run_sync("echo x; sleep 60", timeout_s=0.3, on_timeout="background")
    task = bash.task(result.task_id or "")
    os.killpg(task.pgid, 9)
    waited = ended(task)
    assert (waited.status, waited.exit_code) == (TaskStatus.SIGNALED, 137)


def test_a_promoted_task_is_stopped_with_all_it_started(bash: limpet.Bash) -> None:
    result = bash.run_sync(
        "setsid sleep 60 & trap 'echo bye; exit 4' TERM; sleep 60 & wait",
        timeout_s=0.3,
        on_timeout="background",
    )
    task = bash.task(result.task_id or "")
    stopped = task.stop_sync()
    assert (stopped.status, stopped.exit_code) == (TaskStatus.STOPPED, 4)
    assert marked_processes() == {}
    assert task.output().text == "bye\n"


def test_a_promoted_task_waits_for_what_its_shell_leaves(bash: limpet.Bash) -> None:
    result = bash.run_sync(
        "(sleep 1; echo late) & sleep 0.5; echo early; exit 5",
        timeout_s=0.2,
        on_timeout="background",
    )
    task = bash.task(result.task_id or "")
    printed(task, "early")
    assert task.status is TaskStatus.RUNNING
    waited = ended(task)
    assert (waited.text, waited.exit_code) == ("early\nlate\n", 5)


def test_a_call_that_ends_in_time_is_no_task(bash: limpet.Bash) -> None:
    result = bash.run_sync("echo quick; exit 2", timeout_s=20, on_timeout="background")
    assert (result.outcome, result.exit_code) == (limpet.Outcome.EXITED, 2)
    assert result.task_id is None
    assert bash.tasks() == []


def test_at_the_very_limit_it_is_one_or_the_other(bash: limpet.Bash) -> None:
    for delay in (0.19, 0.2, 0.21):
        result = bash.run_sync(
            f"echo a; sleep {delay}; echo b; exit 3", timeout_s=0.2, on_timeout="background"
        )
        if result.task_id is None:
            assert (result.output, result.exit_code) == ("a\nb\n", 3)
        else:
            waited = ended(bash.task(result.task_id))
            assert (waited.text, waited.exit_code) == ("a\nb\n", 3)


def test_where_there_is_no_room_for_a_task_it_is_killed_and_said_so() -> None:
    bash = limpet.Bash(max_tasks=1)
    bash.start_sync("sleep 60")
    result = bash.run_sync("echo x; sleep 61", timeout_s=0.3, on_timeout="background")
    assert result.outcome is limpet.Outcome.TIMED_OUT
    assert result.task_id is None
    assert "1 tasks are running" in (result.hint or "")
    assert not any("sleep 61" in words for words in marked_processes().values())


def test_input_that_was_given_is_read_on(bash: limpet.Bash) -> None:
    text = "".join(f"{n}\n" for n in range(50_000))
    result = bash.run_sync(
        "sleep 0.5; sha256sum", stdin=text, timeout_s=0.2, on_timeout="background"
    )
    plain = bash.run_sync("sha256sum", stdin=text).output
    assert ended(bash.task(result.task_id or "")).text == plain


def test_on_timeout_takes_two_words(bash: limpet.Bash) -> None:
    with pytest.raises(ValueError, match="on_timeout must be"):
        bash.run_sync("true", on_timeout="wait")  # type: ignore[arg-type]  # that is the point


# Survivors


def adopted(bash: limpet.Bash, command: str) -> tuple[limpet.Result, Task]:
    result = bash.run_sync(command)
    assert result.task_id is not None, result
    return result, bash.task(result.task_id)


def test_what_a_call_leaves_running_is_a_task(bash: limpet.Bash) -> None:
    result, task = adopted(bash, "(echo one; sleep 0.5; echo two) & echo done; exit 2")
    assert (result.outcome, result.exit_code) == (limpet.Outcome.EXITED, 2)
    assert task.id in (result.hint or "")
    assert (task.status, task.to_dict()["origin"]) == (TaskStatus.RUNNING, "survivors")
    waited = ended(task)
    assert sorted(waited.text.split()) == ["done", "one", "two"]
    assert waited.text.startswith(result.output)
    assert waited.status is TaskStatus.EXITED


def test_a_survivor_without_the_pipe_is_waited_for(bash: limpet.Bash) -> None:
    _, task = adopted(bash, "(sleep 0.6; exit 9) >/dev/null 2>&1 & echo done")
    assert task.status is TaskStatus.RUNNING
    waited = ended(task)
    assert (waited.status, waited.text) == (TaskStatus.EXITED, "done\n")
    assert waited.exit_code in (9, None)
    if waited.exit_code is None:
        assert "not known" in (task.state().reason or "")


def test_a_killed_survivor_is_never_said_to_have_exited_well(bash: limpet.Bash) -> None:
    result, task = adopted(bash, "sleep 60 & echo done")
    os.kill(result.survivors[0].pid, 9)
    waited = ended(task)
    assert waited.exit_code in (137, None)
    assert (waited.status is TaskStatus.SIGNALED) == (waited.exit_code == 137)


def test_survivors_are_stopped_together(bash: limpet.Bash) -> None:
    result, task = adopted(bash, "sleep 60 & setsid sleep 60 & (sleep 60 &); echo done")
    assert len(result.survivors) == 3
    assert task.stop_sync().status is TaskStatus.STOPPED
    assert marked_processes() == {}


def test_what_survivors_start_later_belongs_to_them(bash: limpet.Bash) -> None:
    _, task = adopted(bash, "(sleep 0.2; setsid sleep 0.3; echo last) & echo done")
    assert ended(task).text == "done\nlast\n"
    _, task = adopted(bash, "(sleep 0.2; setsid sleep 60 & sleep 0.1; echo forked) & echo done")
    printed(task, "forked")
    assert task.wait_sync(timeout_s=0.3).matched == "timeout"
    task.stop_sync()
    assert marked_processes() == {}


def test_an_adopted_task_goes_on_while_the_host_works(bash: limpet.Bash) -> None:
    _, task = adopted(bash, "for i in 1 2 3 4 5; do echo $i; sleep 0.1; done & true")
    for _ in range(5):
        assert bash.run_sync("echo other").output == "other\n"
    assert ended(task).text == "1\n2\n3\n4\n5\n"


def test_many_promotions_at_once(bash: limpet.Bash) -> None:
    async def main() -> list[limpet.Result]:
        calls = (
            bash.run(
                f"echo a{n}; sleep 0.8; echo b{n}; exit {n}", timeout_s=0.5, on_timeout="background"
            )
            for n in range(10)
        )
        return await asyncio.gather(*calls)

    for number, result in enumerate(asyncio.run(main())):
        waited = ended(bash.task(result.task_id or ""))
        assert (waited.text, waited.exit_code) == (f"a{number}\nb{number}\n", number)


def test_nothing_is_kept_of_it_in_the_host(bash: limpet.Bash) -> None:
    """Neither a thread nor a zombie: `no_leaks` looks for both."""
    result = bash.run_sync("sleep 0.5", timeout_s=0.1, on_timeout="background")
    ended(bash.task(result.task_id or ""))
    assert wait_until(lambda: marked_processes() == {})
