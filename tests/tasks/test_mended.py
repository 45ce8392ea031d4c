"""What attacks have found, and must not find again."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support import marked_processes, python, wait_until

import limpet
from limpet.tasks import nursery, record
from limpet.tasks.record import TaskStatus
from limpet.tasks.shelf import Shelf
from limpet.tasks.task import Task
from tasks.helpers import ended, finished_text, host, printed

SLOW = "echo begun; sleep 60"


def test_a_call_that_is_cancelled_as_it_becomes_a_task_leaves_nothing(bash: limpet.Bash) -> None:
    async def cancelled_at(after_s: float) -> None:
        call = asyncio.create_task(bash.run(SLOW, timeout_s=0.1, on_timeout="background"))
        await asyncio.sleep(after_s)
        call.cancel()
        try:
            await call
        except asyncio.CancelledError:
            assert wait_until(lambda: marked_processes() == {})
        else:
            await bash.task(call.result().task_id or "").stop()

    async def around_the_limit() -> None:
        for step in range(12):
            await cancelled_at(0.095 + step * 0.002)

    asyncio.run(around_the_limit())
    assert all(task.status is not TaskStatus.RUNNING for task in bash.tasks())


PRIVATE = """
ctx = limpet.ToolContext(os.environ["WORK"])
bash = limpet.Bash(sandbox=limpet.SandboxPolicy(mode="workspace", temp="private"))
command = "echo $TMPDIR; sleep 0.6; mktemp >/dev/null && echo works"
print(bash.run_sync(command, timeout_s=0.2, on_timeout="background", ctx=ctx).task_id)
"""


@pytest.mark.parametrize("end", ["", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_private_temporary_directory_lives_as_long_as_the_task(
    bash: limpet.Bash, tmp_path: Path, end: str
) -> None:
    try:
        task_id = host(PRIVATE + "sys.stdout.flush()\n" + end, WORK=str(tmp_path)).strip()
    except AssertionError:
        (task_id,) = (task.id for task in bash.tasks())
    task = bash.task(task_id)
    directory, works = ended(task).text.split()
    assert works == "works"
    assert wait_until(lambda: not Path(directory).exists())


TYPES = """
import os, socket, sys
try:
    directory = os.open(os.path.dirname(sys.argv[1]), os.O_PATH)
    with socket.socket(socket.AF_UNIX) as free:
        free.connect(f"/proc/self/fd/{directory}/input")
        free.sendall(b"t\\0\\5hello")
    print("typed")
except OSError as error:
    print("refused", error.errno)
"""


@pytest.mark.parametrize(
    ("mode", "said"), [("off", "typed"), ("read-only", "refused"), ("workspace", "refused")]
)
def test_a_jailed_command_cannot_type_into_a_free_task(
    bash: limpet.Bash, state_dir: Path, mode: str, said: str
) -> None:
    free = bash.start_sync("cat", stdin=True)
    jailed = limpet.Bash(sandbox=mode)
    script = state_dir.parent / "typing_into.py"
    script.write_text(TYPES)
    command = f"{sys.executable} {script} {free.directory}/input"
    result = jailed.run_sync(command, ctx=limpet.ToolContext(state_dir.parent))
    assert result.output.startswith(said), result
    if said == "typed":
        printed(free, "hello")
    else:
        assert free.output().text == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's jail cannot leave out a part")
def test_a_jailed_command_cannot_change_records(bash: limpet.Bash, state_dir: Path) -> None:
    task = bash.start_sync("sleep 60")
    jailed = limpet.Bash(sandbox="workspace")
    command = f"echo x > {task.directory}/task.json; mv {state_dir} {state_dir}-gone"
    result = jailed.run_sync(command, ctx=limpet.ToolContext(state_dir.parent))
    assert result.output.count("Read-only file system") + result.output.count("busy") == 2, result
    assert task.status is TaskStatus.RUNNING


def test_no_reader_of_its_files_can_make_a_lost_task_run(bash: limpet.Bash) -> None:
    task = bash.start_sync("sleep 60")
    with open(Path(task.directory) / record.LOCK, "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        with open(task.output_path, "rb") as output:
            fcntl.flock(output, fcntl.LOCK_EX)
            os.kill(task.state().record.supervisor.pid, signal.SIGKILL)
            assert wait_until(lambda: task.status is TaskStatus.LOST)


def test_a_lock_on_its_saved_output_does_not_hold_up_a_call(bash: limpet.Bash) -> None:
    grab = python(
        "import fcntl, glob, os, time\n"
        "path, = glob.glob(os.environ['LIMPET_STATE_DIR'] + '/output/*')\n"
        "fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_SH); time.sleep(60)"
    )
    result = bash.run_sync(f"seq 100000; {grab} & sleep 0.5", timeout_s=20)
    assert result.outcome is limpet.Outcome.EXITED
    assert result.task_id is not None


def test_an_expression_that_would_take_forever_is_an_error(bash: limpet.Bash) -> None:
    task = bash.start_sync(f"echo {'a' * 5000}!")
    finished_text(task)
    for use in (
        lambda: task.wait_sync(r"/^(a|a?)+$/", timeout_s=30),
        lambda: task.output(search=r"^(a|a?)+$"),
    ):
        with pytest.raises(ValueError, match="takes too long"):
            use()


def test_a_wait_through_a_flood_ends_in_time(bash: limpet.Bash) -> None:
    task = bash.start_sync("yes a line that is not looked for")
    assert wait_until(lambda: Path(task.output_path).stat().st_size > 50 << 20, 30)
    began = time.monotonic()
    assert task.wait_sync("/never/", timeout_s=0.5).matched == "timeout"
    assert time.monotonic() - began < 10
    task.stop_sync()


def test_a_record_of_a_later_version_can_be_read(bash: limpet.Bash) -> None:
    task = bash.start_sync("exit 3")
    finished_text(task)
    path = Path(task.directory) / record.RECORD
    values = json.loads(path.read_text())
    path.write_text(json.dumps(values | {"more": 1, "end": values["end"] | {"else": 2}}))
    assert (task.status, task.exit_code) == (TaskStatus.EXITED, 3)


def test_a_record_that_cannot_be_read_makes_no_running_task_lost(bash: limpet.Bash) -> None:
    task = bash.start_sync("sleep 60")
    (Path(task.directory) / record.RECORD).write_text('{"id": ')
    assert task.status is TaskStatus.RUNNING
    assert Shelf.of_this_user().prune(0, 0) == []


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put the state on a disk of a megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=True)
    monkeypatch.setenv("LIMPET_STATE_DIR", str(disk / "state"))
    yield
    nursery.close()
    assert wait_until(lambda: subprocess.run(["umount", disk], stderr=-3).returncode == 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk takes root")
@pytest.mark.usefixtures("small_disk")
def test_a_full_disk_does_not_cost_the_exit_code() -> None:
    task = limpet.Bash().start_sync("head -c 3M /dev/zero; exit 3")
    waited = ended(task)
    assert (waited.status, waited.exit_code) == (TaskStatus.EXITED, 3)
    assert "could not be saved" in (task.state().reason or "")


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk takes root")
@pytest.mark.usefixtures("small_disk")
def test_nor_does_it_after_a_change_of_size() -> None:
    # With a long command, so that the record does not fit into what a full disk has left over.
    command = f": {'x' * 50000}; read go; head -c 3M /dev/zero; exit 3"
    task = limpet.Bash().start_sync(command, pty=True)
    asyncio.run(task.resize(100, 30))
    assert wait_until(lambda: task.state().record.columns == 100)
    task.send_sync("go\n")
    waited = ended(task)
    assert (waited.status, waited.exit_code) == (TaskStatus.EXITED, 3)


def test_a_start_that_is_cancelled_leaves_no_task(bash: limpet.Bash) -> None:
    async def main() -> None:
        await (await bash.start("true")).wait()
        for step in range(8):
            starting = asyncio.create_task(bash.start(SLOW))
            await asyncio.sleep(step * 0.002)
            starting.cancel()
            with suppress(asyncio.CancelledError):
                await (await starting).stop()

    asyncio.run(main())
    assert wait_until(lambda: all(task.status != "running" for task in bash.tasks()))
    assert wait_until(lambda: marked_processes() == {})


def test_a_killed_nursery_is_replaced_and_its_orders_are_carried_out(bash: limpet.Bash) -> None:
    ended(bash.start_sync("true"))
    for _ in range(3):
        assert nursery._nursery is not None
        os.kill(nursery._nursery.pid, signal.SIGKILL)
        assert ended(bash.start_sync("exit 3")).exit_code == 3


def test_a_task_started_inside_a_call_outlives_the_end_of_the_call(bash: limpet.Bash) -> None:
    inner = f"{sys.executable} -m limpet.cli run --background 'sleep 60' 2>/dev/null; sleep 60"
    result = bash.run_sync(inner, timeout_s=3)
    assert result.outcome is limpet.Outcome.TIMED_OUT
    (task_id,) = re.findall(r"bash-\w{6}", result.output)
    assert bash.task(task_id).status is TaskStatus.RUNNING
    assert [task.id for task in bash.tasks()] == [task_id]


def test_visitors_who_say_nothing_keep_nobody_out(bash: limpet.Bash) -> None:
    task = bash.start_sync("cat", stdin=True)
    silent = []
    for _ in range(20):
        visitor = socket.socket(socket.AF_UNIX)
        directory = os.open(task.directory, os.O_PATH)
        visitor.connect(f"/proc/self/fd/{directory}/input")
        os.close(directory)
        silent.append(visitor)
    task.send_sync("heard\n")
    printed(task, "heard")
    for visitor in silent:
        visitor.close()


def test_secrets_of_the_host_are_not_in_the_environment_of_supervisors(
    bash: limpet.Bash, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "supersecretvalue123")
    task = bash.start_sync("echo $MY_TOKEN; sleep 60")
    printed(task, "supersecretvalue123")
    environment = Path(f"/proc/{task.state().record.supervisor.pid}/environ").read_bytes()
    assert b"supersecret" not in environment


def test_a_start_after_a_change_of_rights_has_the_new_ones(bash: limpet.Bash) -> None:
    def umask_of(task: Task) -> str:
        return ended(task).text.strip()

    before = os.umask(0o022)
    try:
        assert umask_of(bash.start_sync("umask")) == "0022"
        os.umask(0o077)
        assert umask_of(bash.start_sync("umask")) == "0077"
    finally:
        os.umask(before)
