"""Background tasks: how soon they start, how many there may be, and whether one was ever lost."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measure import Row
from limpet import Bash, Task
from limpet.process.spawn import find_program
from limpet.tasks import nursery, record
from limpet.tasks.shelf import Shelf

STARTS = 100
AT_ONCE = 500
RECORDS = 2000
WAKES = 50
ROUNDS = 200
START_GOAL_S, LIST_GOAL_S, WAKE_GOAL_S = 0.010, 0.300, 0.100


def measure() -> Iterator[Row]:
    """Yield the rows of what tasks cost, and of what was lost when hosts were killed."""
    with _state():
        yield from asyncio.run(_starts())
    with _state():
        yield asyncio.run(_wakes())
    with _state():
        yield asyncio.run(_many())
    with _state():
        yield from _listing()
    with _state():
        yield _killed_hosts(ROUNDS)


@contextmanager
def _state() -> Iterator[None]:
    """Give what is measured a state directory of its own."""
    before = os.environ.get("LIMPET_STATE_DIR")
    path = tempfile.mkdtemp(prefix="limpet-bench-")
    os.environ["LIMPET_STATE_DIR"] = path
    try:
        yield
    finally:
        nursery.close()
        if before is None:
            del os.environ["LIMPET_STATE_DIR"]
        else:
            os.environ["LIMPET_STATE_DIR"] = before
        shutil.rmtree(path, ignore_errors=True)


async def _starts() -> list[Row]:
    bash = Bash()
    shell = find_program("bash") or "bash"
    await (await bash.start(":")).wait()
    task_s, bare_s = [], []
    for _ in range(STARTS):
        began = time.perf_counter()
        task = await bash.start(":")
        task_s.append(time.perf_counter() - began)
        await task.wait()
        began = time.perf_counter()
        process = subprocess.Popen([shell, "-c", ":"], stdout=-1)  # noqa: ASYNC220 -- the floor
        bare_s.append(time.perf_counter() - began)
        process.communicate()
    start, bare = statistics.median(task_s), statistics.median(bare_s)
    beyond = start - bare
    return [
        Row(
            "start(), median, beyond a bare Popen",
            f"{start * 1000:.1f} ms",
            f"{bare * 1000:.1f} ms",
            beyond / START_GOAL_S,
            "+ < 10 ms",
            beyond < START_GOAL_S,
        )
    ]


async def _wakes() -> Row:
    bash = Bash()
    late_s = []
    for _ in range(WAKES):
        task = await bash.start("sleep 0.05; date +%s.%N; sleep 5")
        waited = await task.wait(until=r"/\d+\.\d+/", timeout_s=5)
        late_s.append(time.time() - float(waited.match or 0))
        await task.stop()
    late = statistics.quantiles(late_s, n=20)[-1]
    return Row(
        "a reader is woken after output, 95th percentile",
        f"{late * 1000:.1f} ms",
        "100 ms",
        late / WAKE_GOAL_S,
        "≤ 1",
        late < WAKE_GOAL_S,
    )


async def _many() -> Row:
    bash = Bash()
    tasks = [await bash.start("sleep 600") for _ in range(AT_ONCE)]
    running = sum(task.status == "running" for task in tasks)
    stopped = await asyncio.gather(*(task.stop() for task in tasks))
    ended = sum(one.status == "stopped" for one in stopped)
    is_true = running == ended == AT_ONCE
    return Row(
        f"{AT_ONCE} tasks at once: running, then stopped",
        f"{running}, {ended}",
        str(AT_ONCE),
        running / AT_ONCE,
        "= 1",
        is_true,
    )


def _listing() -> Iterator[Row]:
    task = Bash().start_sync("echo hello")
    task.wait_sync()
    shelf = Shelf.of_this_user()
    found = task.state().record
    for _ in range(RECORDS - 1):
        task_id, draft = shelf.draft()
        (draft / record.OUTPUT).write_bytes(Path(task.output_path).read_bytes())
        record.write(draft, found._replace(id=task_id))
        draft.rename(shelf.path / task_id)
    for what, list_them in (("Shelf.states()", _list_here), ("`limpet tasks --json`", _list_there)):
        times = []
        for _ in range(5):
            began = time.perf_counter()
            assert list_them() == RECORDS
            times.append(time.perf_counter() - began)
        took = statistics.median(times)
        yield Row(
            f"listing {RECORDS} tasks, {what}",
            f"{took * 1000:.0f} ms",
            "300 ms",
            took / LIST_GOAL_S,
            "≤ 1",
            took < LIST_GOAL_S,
        )


def _list_here() -> int:
    return len(Shelf.of_this_user().states())


def _list_there() -> int:
    command = [sys.executable, "-m", "limpet.cli", "tasks", "--json"]
    return len(json.loads(subprocess.run(command, capture_output=True, check=True).stdout))


LINES = 300
HOST = f"""
import random, sys
from limpet import Bash
bash = Bash()
command = "for i in $(seq {LINES}); do echo line $i; done; sleep 0.0%d; echo end; exit %d"
while True:
    code = random.randrange(1, 100)
    if random.random() < 0.5:
        task_id = bash.start_sync(command % (code % 10, code)).id
    else:
        call = bash.run_sync(command % (9, code), timeout_s=0.02, on_timeout="background")
        task_id = call.task_id
    if task_id:
        print(task_id, code, flush=True)
"""
WHOLE = "".join(f"line {number}\n" for number in range(1, LINES + 1)) + "end\n"


def _killed_hosts(rounds: int) -> Row:
    """Kill hosts at random moments, and count what is not as it should be."""
    tasks, problems = 0, []
    for _ in range(rounds):
        seen, wrong = killed_host(random.uniform(0.1, 0.6))  # noqa: S311 -- not for secrets
        tasks += seen
        problems += wrong
    for problem in problems[:10]:
        print(problem, file=sys.stderr)
    return Row(
        f"{rounds} hosts killed at a random moment, {tasks} tasks",
        f"{len(problems)} lost",
        "0",
        float(len(problems)),
        "= 0",
        not problems,
    )


def killed_host(after_s: float) -> tuple[int, list[str]]:
    """Kill a host; return how many tasks it had begun, and what is wrong with them."""
    host = subprocess.Popen([sys.executable, "-c", HOST], stdout=subprocess.PIPE, text=True)
    time.sleep(after_s)
    host.kill()
    told, _ = host.communicate()
    codes = dict(line.split() for line in told.splitlines() if line.count(" ") == 1)
    shelf = Shelf.of_this_user()
    known = shelf.ids()
    problems = [f"{task_id} is not listed" for task_id in codes if task_id not in known]
    for task_id in known:
        problems += _problems(Task(shelf, task_id), codes.get(task_id))
    shelf.prune(0, 0)
    return len(known), problems


def _problems(task: Task, told: str | None) -> list[str]:
    task.wait_sync(timeout_s=20)
    text = task.output(0, limit=1 << 20).text
    expected = task.command.rpartition(" ")[2]
    state = task.state()
    found = []
    if state.status != "exited":
        found.append(f"{task.id} is {state.status}: {state.reason}")
    if text != WHOLE:
        found.append(f"{task.id} has {len(text)} characters of {len(WHOLE)}")
    if str(task.exit_code) != expected or (told is not None and told != expected):
        found.append(f"{task.id} has exit code {task.exit_code}, not {expected}")
    return found
