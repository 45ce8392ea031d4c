"""kill -9 of the host, at any moment, loses no output, no task and no exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import marked_processes, wait_until

import limpet
from limpet.tasks.record import TaskStatus
from limpet.tasks.shelf import Shelf
from tasks.helpers import (
    end_all,
    ended,
    finished_text,
    host,
    killed_host,
    printed,
    random_delays,
    without_note,
)


@pytest.fixture(autouse=True)
def end_tasks(no_leaks: None, state_dir: Path) -> Iterator[None]:
    """End what a test leaves running."""
    yield
    end_all()


COMMAND = "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.02; done; exit {code}"
LINES = "".join(f"line {number}\n" for number in range(1, 9))
STARTS = f"""
print('go')
for code in range(1, 200):
    task = bash.start_sync({COMMAND!r}.format(code=code))
    print(task.id, code)
"""
PROMOTES = f"""
print('go')
for code in range(1, 200):
    command = {COMMAND!r}.format(code=code)
    result = bash.run_sync(command, timeout_s=0.03, on_timeout='background')
    if result.task_id: print(result.task_id, code)
"""
LEAVES = f"""
print('go')
for code in range(1, 200):
    result = bash.run_sync('(' + {COMMAND!r}.format(code=code) + ') & true')
    if result.task_id: print(result.task_id, 'left')
"""
AT_ONCE = f"""
async def main():
    print('go')
    async def start(code):
        task = await bash.start({COMMAND!r}.format(code=code)); print(task.id, code)
    async def promote(code):
        command = {COMMAND!r}.format(code=code)
        result = await bash.run(command, timeout_s=0.05, on_timeout='background')
        print(result.task_id, code)
    await asyncio.gather(*(f(c) for c in range(1, 9) for f in (start, promote)))
    await asyncio.sleep(60)
asyncio.run(main())
"""
HOSTS = {"starts": STARTS, "promotes": PROMOTES, "leaves": LEAVES, "all at once": AT_ONCE}
ROUNDS = [
    pytest.param(code, delay, id=f"{name}, {1000 * delay:.0f} ms")
    for seed, (name, code) in enumerate(HOSTS.items())
    for delay in random_delays(4, 0.4, seed)
]


@pytest.mark.parametrize(("code", "delay_s"), ROUNDS)
def test_a_host_that_is_killed_loses_nothing(bash: limpet.Bash, code: str, delay_s: float) -> None:
    said = [line.split() for line in killed_host(code, after="go", delay_s=delay_s)]
    told = {words[0]: words[1] for words in said if len(words) == 2}
    shelf = Shelf.of_this_user()
    assert told.keys() <= {state.record.id for state in shelf.states()}
    for task_id, code_told in told.items():
        task = bash.task(task_id)
        waited = ended(task)
        assert waited.status is TaskStatus.EXITED, (waited, task.state().reason)
        assert waited.text == LINES
        assert without_note(finished_text(task)) == LINES
        if code_told != "left":
            assert waited.exit_code == int(code_told)
    # What was begun and not told of has a true end too.
    for state in shelf.states():
        task = bash.task(state.record.id)
        waited = ended(task)
        assert waited.status is TaskStatus.EXITED, (waited, task.state().reason)
        assert waited.text == LINES
    assert wait_until(lambda: marked_processes() == {})


def test_a_host_that_is_killed_in_the_middle_of_a_start_leaves_a_task_or_nothing(
    bash: limpet.Bash,
) -> None:
    for delay in random_delays(4, 0.15, seed=7):
        killed_host("print('go')\nbash.start_sync('echo hi; exit 3')\ntime.sleep(60)", "go", delay)
    shelf = Shelf.of_this_user()
    assert wait_until(lambda: marked_processes() == {})
    for state in shelf.states():
        waited = ended(bash.task(state.record.id))
        assert (waited.status, waited.exit_code, waited.text) == (TaskStatus.EXITED, 3, "hi\n")
    assert wait_until(lambda: shelf.running() == 0)
    assert wait_until(lambda: not [*shelf.path.glob(".bash-*")])


def test_another_program_lists_reads_types_and_stops_what_a_killed_one_has_started(
    bash: limpet.Bash,
) -> None:
    code = (
        "print(bash.start_sync('read line; echo got $line; sleep 60', stdin=True).id)\n"
        "print(bash.start_sync('echo on a terminal; sleep 60', pty=True).id)\n"
        "print(bash.run_sync('sleep 60 & echo left').task_id)\n"
        "print(bash.run_sync('echo p; sleep 60', timeout_s=.2, on_timeout='background').task_id)\n"
        "print('now'); time.sleep(60)"
    )
    ids = killed_host(code, after="now")[:4]
    piped, terminal, left, promoted = map(bash.task, ids)
    assert {task.id for task in bash.tasks()} == {*ids}
    assert {task.status for task in bash.tasks()} == {TaskStatus.RUNNING}
    piped.send_sync("this\n")
    printed(piped, "got this")
    printed(terminal, "on a terminal")
    assert terminal.screen().lines[0] == "on a terminal"
    assert left.output().text == "left\n"
    assert promoted.output().text == "p\n"
    for task in (piped, terminal, left, promoted):
        assert task.stop_sync().status is TaskStatus.STOPPED
    assert marked_processes() == {}


def test_a_host_killed_with_its_whole_session_takes_no_task_along(bash: limpet.Bash) -> None:
    """As a terminal that is closed does, or a service manager that ends a group."""
    code = (
        "os.setsid()\n"
        "ids = [bash.start_sync('sleep 0.5; echo late; exit 6').id]\n"
        "ids += [bash.run_sync('sleep .6; echo late; exit 6', timeout_s=.1,"
        " on_timeout='background').task_id]\n"
        "print(*ids, flush=True)\n"
        "os.killpg(0, signal.SIGHUP)"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import limpet, os, signal\nbash = limpet.Bash()\n{code}"],
        stdout=subprocess.PIPE,
        text=True,
        timeout=20,
    )
    assert done.returncode == -1
    for task_id in done.stdout.split():
        waited = ended(bash.task(task_id))
        assert (waited.text, waited.exit_code) == ("late\n", 6)


def test_ctrl_c_in_the_hosts_terminal_reaches_no_task(bash: limpet.Bash) -> None:
    said = host(
        "os.setsid()\n"
        "task = bash.start_sync('sleep 0.5; echo late; exit 6')\n"
        "signal.signal(signal.SIGINT, lambda *_: print('interrupted'))\n"
        "os.killpg(0, signal.SIGINT)\n"
        "print(bash.start_sync('echo more').wait_sync().text, end='')\n"
        "print(task.id)"
    ).splitlines()
    assert said[:2] == ["interrupted", "more"]
    waited = ended(bash.task(said[2]))
    assert (waited.text, waited.exit_code) == ("late\n", 6)


def test_a_promoted_server_does_not_die_of_the_hosts_end(bash: limpet.Bash) -> None:
    """It writes to what was the host's pipe, again and again."""
    code = (
        "command = 'for i in $(seq 40); do echo $i || exit 9; sleep 0.02; done; exit 4'\n"
        "print(bash.run_sync(command, timeout_s=0.1, on_timeout='background').task_id)\n"
        "print('now'); time.sleep(60)"
    )
    task = bash.task(killed_host(code, after="now")[0])
    waited = ended(task)
    assert (waited.status, waited.exit_code) == (TaskStatus.EXITED, 4)
    assert waited.text == "".join(f"{number}\n" for number in range(1, 41))


def test_a_promoted_task_that_is_killed_after_its_host_has_a_true_status(
    bash: limpet.Bash,
) -> None:
    code = (
        "print(bash.run_sync('echo x; sleep 60', timeout_s=.2, on_timeout='background').task_id)\n"
        "print('now'); time.sleep(60)"
    )
    task = bash.task(killed_host(code, after="now")[0])
    os.killpg(task.pgid, signal.SIGKILL)
    waited = ended(task)
    assert (waited.status, waited.exit_code) == (TaskStatus.SIGNALED, 137)
