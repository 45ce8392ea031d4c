"""Starting a task: what comes back, what it inherits, and what is refused."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import stat
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from support import is_running, python, wait_until

import limpet
from limpet import login
from limpet.tasks import nursery
from limpet.tasks.record import TaskStatus
from limpet.tasks.task import Task
from tasks.helpers import ended, finished_text, host, kill_supervisor, printed, without_note


def test_a_task_has_an_id_a_process_group_and_an_output_file(
    bash: limpet.Bash, state_dir: Path
) -> None:
    task = bash.start_sync("echo hi; sleep 60")
    assert isinstance(task, limpet.Task)
    assert re.fullmatch(r"bash-[a-z0-9]{6}", task.id)
    assert task.pgid == task.pid == os.getpgid(task.pid)
    assert os.getsid(task.pid) == task.pid
    assert task.output_path == str(state_dir / "tasks" / task.id / "output")
    assert (task.status, task.exit_code) == (TaskStatus.RUNNING, None)
    printed(task, "hi")


def test_start_can_be_awaited_and_so_can_all_else(bash: limpet.Bash) -> None:
    async def main() -> str:
        task = await bash.start("read line; echo got $line", stdin=True)
        await task.send("this\n")
        assert (await task.wait(timeout_s=20)).status is TaskStatus.EXITED
        assert (await task.stop()).status is TaskStatus.EXITED
        return (await task.output()).text

    assert asyncio.run(main()) == "got this\n"


def test_what_it_leaves_on_disk_is_private(bash: limpet.Bash, state_dir: Path) -> None:
    before = os.umask(0)
    try:
        task = bash.start_sync("cat", stdin=True)
    finally:
        os.umask(before)
    for path in [*state_dir.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path
    assert {path.name for path in Path(task.directory).iterdir()} >= {"task.json", "output"}


ENDS = {
    "exit 0": (TaskStatus.EXITED, 0, None, "exit 0 after"),
    "echo hi; exit 3": (TaskStatus.EXITED, 3, None, "exit 3 after"),
    "kill -9 $$": (TaskStatus.SIGNALED, 137, "SIGKILL", "exit 137 (SIGKILL) after"),
    "kill -SEGV $$": (TaskStatus.SIGNALED, 139, "SIGSEGV", "exit 139 (SIGSEGV) after"),
    "(": (TaskStatus.EXITED, 2, None, "exit 2 after"),
    "no-such-program": (TaskStatus.EXITED, 127, None, "exit 127 after"),
}


def test_their_ends_are_true_and_noted_at_the_end_of_their_outputs(bash: limpet.Bash) -> None:
    tasks = [bash.start_sync(command) for command in ENDS]
    for task, (status, code, name, note) in zip(tasks, ENDS.values(), strict=True):
        waited = ended(task)
        assert (waited.status, waited.exit_code) == (status, code) == (task.status, task.exit_code)
        assert task.to_dict()["signal"] == name
        assert f"[limpet: {note}" in finished_text(task).splitlines()[-1]


LAST_WORDS = {
    "a line": (b"a\n", b"a\n"),
    "half a line": (b"a", b"a\n"),
    "nothing": (b"", b""),
    "a bell": (b"a\a", b"a\a\n"),
    "a carriage return": (b"a\r", b"a\r\n"),
    "half a character": (b"a\xc3", b"a\xc3\n"),
    "half a sequence": (b"a\x1b[3", b"a\x1b[3\n"),
    "a newline among controls": (b"\0\0\0\n", b"\0\0\0\n"),
}


def test_the_note_has_a_line_of_its_own(bash: limpet.Bash) -> None:
    tasks = [bash.start_sync("cat", stdin=words) for words, _ in LAST_WORDS.values()]
    for task, (name, (_, before)) in zip(tasks, LAST_WORDS.items(), strict=True):
        ended(task)
        finished_text(task)
        assert Path(task.output_path).read_bytes().startswith(before + b"[limpet: exit 0"), name


def test_its_group_killed_by_hand_has_a_true_status(bash: limpet.Bash) -> None:
    task = bash.start_sync("echo begun; sleep 60 | cat; echo never")
    printed(task, "begun")
    os.killpg(task.pgid, signal.SIGKILL)
    waited = ended(task)
    assert (waited.status, waited.exit_code, waited.text) == (TaskStatus.SIGNALED, 137, "begun\n")
    assert "exit 137 (SIGKILL)" in finished_text(task)


def test_statuses_are_a_closed_set() -> None:
    assert {*TaskStatus} == {"running", "exited", "signaled", "stopped", "timed_out", "lost"}


def test_both_streams_are_in_order(bash: limpet.Bash) -> None:
    task = bash.start_sync("for i in 1 2 3; do echo out $i; echo err $i >&2; done")
    assert ended(task).text == "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"


def test_separate_streams_become_one(state_dir: Path) -> None:
    bash = limpet.Bash(output=limpet.OutputPolicy(streams="separate"))
    assert ended(bash.start_sync("echo out; echo err >&2")).text == "out\nerr\n"


def test_what_it_is_given_is_what_it_has(bash: limpet.Bash, tmp_path: Path) -> None:
    task = bash.start_sync(
        'pwd; echo "$GREETING"; cat',
        env={"GREETING": "hello"},
        stdin="from the caller\n",
        description="a test",
        ctx=limpet.ToolContext(tmp_path, session_id="s1"),
        timeout_s=50,
    )
    assert ended(task).text == f"{tmp_path}\nhello\nfrom the caller\n"
    record = task.to_dict()
    assert record["description"] == "a test"
    assert (record["session_id"], record["cwd"], record["timeout_s"]) == ("s1", str(tmp_path), 50)
    assert (record["origin"], record["input"], record["sandbox"]) == ("started", "none", "off")


@pytest.mark.parametrize("make", [dict, MappingProxyType])
def test_any_mapping_is_an_environment(
    bash: limpet.Bash, make: type[dict[str, str]] | type[MappingProxyType[str, str]]
) -> None:
    extra: Mapping[str, str] = make({"GREETING": "hello"})
    assert ended(bash.start_sync("echo $GREETING", env=extra)).text == "hello\n"
    result = bash.run_sync("sleep 60 & echo $GREETING", env=extra)
    assert result.output == "hello\n"
    assert result.task_id is not None


def test_the_hosts_own_environment_can_be_given_as_it_is(bash: limpet.Bash) -> None:
    assert ended(bash.start_sync("echo $LIMPET_TEST_SESSION", env=os.environ)).exit_code == 0
    result = bash.run_sync("sleep 60; true", env=os.environ, timeout_s=0.1, on_timeout="background")
    assert result.outcome is limpet.Outcome.BACKGROUNDED


def test_the_environment_is_the_hosts_of_now(
    bash: limpet.Bash, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(bash.start_sync("true"))
    monkeypatch.setenv("SET_LATER", "yes")
    assert ended(bash.start_sync("echo $SET_LATER")).text == "yes\n"


def test_a_descriptor_is_read_from(bash: limpet.Bash) -> None:
    read_end, write_end = os.pipe()
    with open(write_end, "wb") as file:
        task = bash.start_sync("cat", stdin=read_end)
        os.close(read_end)
        file.write(b"through a pipe\n")
    assert ended(task).text == "through a pipe\n"


def test_without_input_it_reads_nothing_and_has_no_terminal(bash: limpet.Bash) -> None:
    code = "import os; print(os.readlink('/proc/self/fd/0'), os.isatty(1))"
    assert ended(bash.start_sync(f"cat; {python(code)}; : </dev/tty")).text.startswith(
        "/dev/null False\nbash: line 1: /dev/tty:"
    )


def test_a_command_longer_than_an_argument_may_be(bash: limpet.Bash) -> None:
    task = bash.start_sync(f"cat <<'E' | wc -c\n{'x' * 300_000}\nE\nexit 4")
    waited = ended(task)
    assert (waited.text, waited.exit_code) == ("300001\n", 4)
    assert len(task.command) > 300_000


def test_the_login_profile_counts_if_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(login, "_known", {})
    (tmp_path / ".bash_profile").write_text("export FROM_PROFILE=yes\n")
    bash = limpet.Bash(environment=limpet.EnvironmentPolicy(login=True))
    assert ended(bash.start_sync("echo $FROM_PROFILE")).text == "yes\n"

    async def main() -> Task:
        return await bash.start("echo $FROM_PROFILE")

    assert ended(asyncio.run(main())).text == "yes\n"


def test_secrets_are_masked_on_disk_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "supersecretvalue123")
    bash = limpet.Bash(environment=limpet.EnvironmentPolicy(hide_secrets=True))
    split = "import sys,time\nfor p in 'supersec','retvalue123\\n': print(p, end='', flush=True); "
    task = bash.start_sync(python(split + "time.sleep(0.2)"))
    assert ended(task).text == "[masked]\n"
    assert "supersecret" not in finished_text(task)


def test_the_file_mode_mask_is_the_hosts_of_now(bash: limpet.Bash) -> None:
    ended(bash.start_sync("true"))
    before = os.umask(0o077)
    try:
        assert ended(bash.start_sync("umask")).text == "0077\n"
    finally:
        os.umask(before)


def test_a_conversation_that_moves_is_no_hindrance(tmp_path: Path) -> None:
    bash = limpet.Bash(persist_cwd=True)
    ctx = limpet.ToolContext(tmp_path)
    bash.run_sync("cd /usr", ctx=ctx)
    waited = ended(bash.start_sync("pwd; cd /; exit 3", ctx=ctx))
    assert (waited.text, waited.exit_code) == ("/usr\n", 3)


def test_a_job_of_its_own_keeps_it_running(bash: limpet.Bash) -> None:
    task = bash.start_sync("(sleep 0.5; echo late) & echo early; exit 5")
    printed(task, "early")
    assert wait_until(lambda: not is_running(task.pid))
    assert task.status is TaskStatus.RUNNING
    waited = ended(task)
    assert (waited.text, waited.exit_code) == ("early\nlate\n", 5)


def test_a_silent_job_without_the_pipe_keeps_it_running_too(bash: limpet.Bash) -> None:
    task = bash.start_sync("setsid sleep 60 >/dev/null 2>&1 & true")
    assert wait_until(lambda: not is_running(task.pid))
    assert task.wait_sync(timeout_s=0.5).matched == "timeout"
    assert task.status is TaskStatus.RUNNING
    assert task.stop_sync().status is TaskStatus.STOPPED


# What is refused


def test_a_refused_command_leaves_no_task(bash: limpet.Bash) -> None:
    with pytest.raises(limpet.CommandRefused) as caught:
        bash.start_sync("rm -rf /")
    assert caught.value.result.outcome is limpet.Outcome.REFUSED
    with pytest.raises(limpet.CommandRefused):
        asyncio.run(bash.start("rm -rf /"))
    assert bash.tasks() == []


@pytest.mark.parametrize("is_approved", [True, False])
def test_what_must_be_approved_is_asked_about(is_approved: bool) -> None:
    bash = limpet.Bash(
        permissions=limpet.PermissionPolicy(ask=("echo *",)), approve=lambda _: is_approved
    )
    if is_approved:
        assert ended(bash.start_sync("echo approved")).text == "approved\n"
    else:
        with pytest.raises(limpet.CommandRefused, match="not approved"):
            bash.start_sync("echo never")
        assert bash.tasks() == []


CANNOT = {
    "no such directory": ({}, {"ctx": limpet.ToolContext("/no/such/place")}, "/no/such/place"),
    "no such shell": ({"shell": "no-such-shell"}, {}, "no-such-shell"),
    "no such descriptor": ({}, {"stdin": 987}, "987|[Bb]ad file descriptor"),
}


@pytest.mark.parametrize(("policy", "call", "why"), CANNOT.values(), ids=CANNOT.keys())
def test_what_cannot_start_is_explained_and_leaves_nothing(
    policy: dict[str, object], call: dict[str, object], why: str, state_dir: Path
) -> None:
    with pytest.raises(limpet.SpawnFailed, match=why):
        limpet.Bash(**policy).start_sync("true", **call)  # type: ignore[arg-type]  # see CANNOT
    assert list(state_dir.rglob("*bash-*")) == []


def test_a_state_directory_that_cannot_be_is_explained(
    bash: limpet.Bash, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMPET_STATE_DIR", "/dev/null/state")
    with pytest.raises(limpet.SpawnFailed, match="/dev/null/state"):
        bash.start_sync("true")


def test_a_cancelled_conversation_starts_nothing(bash: limpet.Bash) -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(limpet.SpawnFailed, match="cancelled"):
        bash.start_sync("true", ctx=limpet.ToolContext(cancel=cancel))
    assert bash.tasks() == []


WRONG = {
    "timeout": ({"timeout_s": 0}, ValueError),
    "size": ({"pty": True, "size": (0, 24)}, ValueError),
    "huge": ({"pty": True, "size": (80, 5000)}, ValueError),
    "no size": ({"pty": True, "size": "80x24"}, TypeError),
    "argument": ({"on_timeout": "background"}, TypeError),
    "both": ({"pty": True, "stdin": "text"}, ValueError),
    "stdin": ({"stdin": False}, TypeError),
    "environment": ({"env": {"A=B": "c"}}, ValueError),
}


@pytest.mark.parametrize(("call", "error"), WRONG.values(), ids=WRONG.keys())
def test_wrong_arguments_start_nothing(
    bash: limpet.Bash, call: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        bash.start_sync("true", **call)  # type: ignore[arg-type]  # that is the point
    assert bash.tasks() == []


def test_no_more_tasks_run_than_may() -> None:
    bash = limpet.Bash(max_tasks=2)
    first = bash.start_sync("sleep 60")
    bash.start_sync("sleep 60")
    with pytest.raises(limpet.SpawnFailed, match=r"2 tasks are running.*max_tasks.*stop one"):
        bash.start_sync("true")
    left = bash.run_sync("sleep 60 & echo done")
    assert (left.output, left.task_id) == ("done\n", None)
    assert "2 tasks are running" in (left.hint or "")
    first.stop_sync()
    assert ended(bash.start_sync("echo room")).text == "room\n"


def test_lost_tasks_take_no_room_for_good() -> None:
    bash = limpet.Bash(max_tasks=1)
    kill_supervisor(bash.start_sync("sleep 60"))
    assert ended(bash.start_sync("echo room")).text == "room\n"


# Where supervisors come from


def test_many_threads_start_at_once(bash: limpet.Bash) -> None:
    tasks: list[Task] = []

    def start(number: int) -> None:
        tasks.append(bash.start_sync(f"echo {number}; exit {number}"))

    threads = [threading.Thread(target=start, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    outcomes = {(ended(task).text, task.exit_code) for task in tasks}
    assert outcomes == {(f"{number}\n", number) for number in range(20)}


def test_a_killed_nursery_is_replaced(bash: limpet.Bash) -> None:
    for _ in range(3):
        ended(bash.start_sync("true"))
        assert nursery._nursery is not None
        os.kill(nursery._nursery.pid, signal.SIGKILL)
        for number in range(3):
            assert ended(bash.start_sync(f"echo {number}")).text == f"{number}\n"


def test_a_killed_nursery_costs_no_promoted_call(bash: limpet.Bash) -> None:
    ended(bash.start_sync("true"))
    assert nursery._nursery is not None
    os.kill(nursery._nursery.pid, signal.SIGKILL)
    tasks = []
    for _ in range(3):
        result = bash.run_sync(
            "sleep 0.5; echo late; exit 5", timeout_s=0.1, on_timeout="background"
        )
        tasks.append(bash.task(result.task_id or ""))
    for task in tasks:
        waited = ended(task)
        assert (waited.text, waited.exit_code) == ("late\n", 5)


def test_a_forked_host_has_tasks_of_its_own() -> None:
    said = host(
        "bash.start_sync('true').wait_sync()\n"
        "if (pid := os.fork()) == 0:\n"
        "    print(bash.start_sync('echo child').wait_sync().text, end='', flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(pid, 0)\n"
        "print(bash.start_sync('echo parent').wait_sync().text, end='')"
    )
    assert said == "child\nparent\n"


def test_a_host_that_ends_in_order_leaves_its_tasks_running(bash: limpet.Bash) -> None:
    task_id = host("print(bash.start_sync('sleep 0.5; echo late; exit 6').id)").strip()
    waited = ended(bash.task(task_id))
    assert (waited.text, waited.exit_code) == ("late\n", 6)


def test_an_output_file_is_complete_when_its_task_has_ended(bash: limpet.Bash) -> None:
    task = bash.start_sync("seq 100000")
    ended(task)
    content = without_note(finished_text(task))
    assert content == "".join(f"{number}\n" for number in range(1, 100001))
