"""Background tasks on the command line."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import marked_processes, wait_until

import limpet
from limpet.cli import main
from limpet.render.width import cells
from limpet.tasks.reader import LIMIT_BYTES
from limpet.tasks.record import TaskStatus
from limpet.tasks.task import Task
from tasks.helpers import end_all, ended, finished_text, kill_supervisor, printed

LIMPET = [sys.executable, "-m", "limpet.cli"]


@pytest.fixture(autouse=True)
def end_tasks(no_leaks: None, state_dir: Path) -> Iterator[None]:
    """End what a test leaves running."""
    yield
    end_all()


def cli(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload,no-any-return]  # options of subprocess.run
        [*LIMPET, *arguments], capture_output=True, text=True, timeout=30, **options
    )


def as_json(*arguments: str) -> Any:  # noqa: ANN401 -- JSON is of any type
    return json.loads(cli(*arguments).stdout)


def finished(bash: limpet.Bash, command: str) -> Task:
    task = bash.start_sync(command)
    ended(task)
    finished_text(task)
    return task


# run --background


def test_run_background_prints_the_id_and_leaves_it_running(bash: limpet.Bash) -> None:
    done = cli("run", "--background", "echo hi; sleep 60")
    assert done.returncode == 0
    task = bash.task(done.stdout.rstrip("\n"))
    assert task.id in done.stderr
    assert task.output_path in done.stderr
    printed(task, "hi")
    assert task.status is TaskStatus.RUNNING


def test_run_background_as_json_is_a_result_and_a_record(bash: limpet.Bash) -> None:
    done = cli("run", "--background", "--json", "--description", "why", "--cwd", "/", "pwd; exit 3")
    value = json.loads(done.stdout)
    assert (done.returncode, value["outcome"], value["description"]) == (0, "backgrounded", "why")
    assert value["task"]["id"] == value["task_id"]
    assert value["task"].keys() >= {"id", "pid", "pgid", "status", "output_path"}
    waited = ended(bash.task(value["task_id"]))
    assert (waited.text, waited.exit_code) == ("/\n", 3)


def test_run_background_passes_on_what_it_is_given(bash: limpet.Bash) -> None:
    done = cli("run", "--background", "--env", "A=b", "--stdin", "echo $A; cat", input="typed\n")
    assert ended(bash.task(done.stdout.strip())).text == "b\ntyped\n"
    done = cli("run", "--background", "--timeout", "0.3", "sleep 60")
    assert ended(bash.task(done.stdout.strip())).status is TaskStatus.TIMED_OUT
    done = cli("run", "--background", "-", input="echo from stdin")
    assert ended(bash.task(done.stdout.strip())).text == "from stdin\n"


REFUSED = {
    "refused": (["rm -rf /"], 126),
    "no directory": (["--cwd", "/no/such/place", "true"], 125),
    "bad size": (["--pty", "--size", "80", "true"], 2),
    "bad variable": (["--env", "A", "true"], 2),
    "bad limit": (["--timeout", "-1", "true"], 2),
}


@pytest.mark.parametrize(("arguments", "status"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_started_has_a_status_and_a_reason(
    bash: limpet.Bash, arguments: list[str], status: int
) -> None:
    done = cli("run", "--background", *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert "Traceback" not in done.stderr
    assert done.stderr
    assert bash.tasks() == []


def test_a_refused_task_as_json_is_a_result() -> None:
    done = cli("run", "--background", "--json", "rm -rf /")
    assert (done.returncode, json.loads(done.stdout)["outcome"]) == (126, "refused")


@pytest.mark.parametrize("option", ["--interactive", "--pty"])
def test_what_only_tasks_have_needs_background(option: str) -> None:
    done = cli("run", "true", option)
    assert done.returncode == 2
    assert "need --background" in done.stderr


def test_run_on_timeout_background_names_the_task(bash: limpet.Bash) -> None:
    done = cli("run", "--timeout", "0.5", "--on-timeout", "background", "echo a; sleep 1; exit 4")
    assert (done.returncode, done.stdout) == (0, "a\n")
    (task_id,) = re.findall(r"bash-[a-z0-9]{6}", done.stderr)[:1]
    waited = ended(bash.task(task_id))
    assert (waited.text, waited.exit_code) == ("a\n", 4)


# tasks


def test_tasks_is_a_table(bash: limpet.Bash) -> None:
    done, running = finished(bash, "echo one; echo the end; exit 3"), bash.start_sync("sleep 60")
    lines = cli("tasks").stdout.splitlines()
    assert lines[0].split() == ["ID", "STATUS", "AGE", "COMMAND", "LAST", "LINE"]
    assert [line.split()[0] for line in lines[1:]] == [running.id, done.id]
    assert re.search(r"running +\d+s +sleep 60$", lines[1])
    assert re.search(r"exited 3 +\d+s +echo one; echo the end; exit 3 +the end$", lines[2])


def test_nothing_that_was_printed_does_anything_to_the_terminal(bash: limpet.Bash) -> None:
    finished(bash, "printf 'a\\033]0;title\\007b\\033[2J\\nc\\rd'; # \033[2J")
    assert "\033" not in cli("tasks").stdout


def test_tasks_as_json_are_records(bash: limpet.Bash) -> None:
    task = finished(bash, "echo last; exit 3")
    (record,) = as_json("tasks", "--json")
    assert record == task.to_dict() | {"last_line": "last"}
    assert (record["status"], record["exit_code"]) == ("exited", 3)
    assert as_json("tasks", "--json", "--status", "running") == []
    assert len(as_json("tasks", "--json", "--status", "exited")) == 1


def test_no_tasks_is_no_error() -> None:
    done = cli("tasks")
    assert (done.returncode, done.stdout) == (0, "")
    assert "there are no tasks" in done.stderr
    assert as_json("tasks", "--json") == []


def test_lost_tasks_are_listed_as_such(bash: limpet.Bash) -> None:
    task = bash.start_sync("echo begun; sleep 60")
    printed(task, "begun")
    kill_supervisor(task)
    (record,) = as_json("tasks", "--json")
    assert (record["status"], record["exit_code"]) == ("lost", None)
    assert "still runs" in record["reason"]
    assert " lost " in cli("tasks").stdout


def test_prune_removes_what_has_ended(bash: limpet.Bash) -> None:
    running = bash.start_sync("sleep 60")
    old = [finished(bash, "true") for _ in range(3)]
    assert cli("tasks", "--prune", "--days", "1").stdout == "removed 0 tasks\n"
    assert as_json("tasks", "--prune", "--keep", "2", "--json")["removed"] == [old[0].id]
    assert cli("tasks", "--prune").stdout == "removed 2 tasks\n"
    assert [task.id for task in bash.tasks()] == [running.id]


# output


def test_output_is_all_of_it(bash: limpet.Bash) -> None:
    task = finished(bash, "seq 50000")
    done = cli("output", task.id)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "".join(f"{number}\n" for number in range(1, 50001))


def test_output_of_a_part(bash: limpet.Bash) -> None:
    task = finished(bash, "for i in $(seq 9); do echo line $i; done")
    assert cli("output", task.id, "--last", "2").stdout == "line 8\nline 9\n"
    assert cli("output", task.id, "--lines", "2:3").stdout == "line 2\nline 3\n"
    assert cli("output", task.id, "--lines", "8:").stdout == "line 8\nline 9\n"
    assert cli("output", task.id, "--since", "49").stdout == "line 8\nline 9\n"
    searched = cli("output", task.id, "--search", "5", "--context", "1").stdout
    assert searched == "4-line 4\n5:line 5\n6-line 6\n"


def test_output_as_json_has_a_cursor(bash: limpet.Bash) -> None:
    task = finished(bash, "echo one; echo two; exit 3")
    first = as_json("output", task.id, "--json", "--limit", "5")
    assert (first["text"], first["cursor"], first["more"]) == ("one\n", 4, True)
    rest = as_json("output", task.id, "--json", "--since", str(first["cursor"]))
    assert (rest["text"], rest["more"]) == ("two\n", False)
    assert (rest["status"], rest["exit_code"], rest["id"]) == ("exited", 3, task.id)


def test_output_of_what_prints_without_end_has_an_end(bash: limpet.Bash) -> None:
    """Also for a reader that is slower than the task."""
    task = bash.start_sync("while :; do seq 1000 3000; done")
    path = Path(task.output_path)
    with subprocess.Popen([*LIMPET, "output", task.id], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        seen = len(process.stdout.read(1 << 16))
        size = path.stat().st_size
        assert wait_until(lambda: path.stat().st_size > size + (4 << 20))
        task.stop_sync()
        seen += len(process.stdout.read())
    assert seen <= size + LIMIT_BYTES


WRONG_OUTPUT = {
    "lines": ["--lines", "x"],
    "backwards": ["--lines", "3:2"],
    "search": ["--search", "("],
    "two ways": ["--last", "1", "--lines", "1:2"],
    "cursor": ["--since", "-1"],
    "no number": ["--last", "x"],
    "nothing": ["--last", "0"],
    "no limit": ["--limit", "0"],
    "no screen": ["--screen"],
    "follow as json": ["-f", "--json"],
    "follow a search": ["-f", "--search", "x"],
}


def test_wrong_arguments_of_output_are_told(
    bash: limpet.Bash, capfd: pytest.CaptureFixture[str]
) -> None:
    task = finished(bash, "echo hi")
    statuses = {name: here("output", task.id, *words) for name, words in WRONG_OUTPUT.items()}
    assert statuses == dict.fromkeys(WRONG_OUTPUT, 2)
    assert capfd.readouterr().out == ""


def here(*arguments: str) -> int:
    """Run the command line in this process, which is quicker, and return its status."""
    try:
        return main(arguments)
    except SystemExit as error:
        return int(error.code or 0)


def test_output_follows_until_the_end(bash: limpet.Bash) -> None:
    task = bash.start_sync("for i in 1 2 3; do echo line $i; sleep 0.2; done; exit 3")
    done = cli("output", "-f", task.id)
    assert (done.returncode, done.stdout) == (0, "line 1\nline 2\nline 3\n")
    assert re.fullmatch(r"\[limpet: exit 3 after \d+\.\d s\]\n", done.stderr)
    last = cli("output", "-f", "--last", "1", task.id)
    assert last.stdout == "line 3\n"


def test_output_follows_as_it_is_printed_and_ctrl_c_leaves_the_task_running(
    bash: limpet.Bash,
) -> None:
    task = bash.start_sync("echo begun; read line; echo got $line; sleep 60", stdin=True)
    with subprocess.Popen(
        [*LIMPET, "output", "-f", task.id],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        task.send_sync("this\n")
        assert process.stdout.readline() == "got this\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 130
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert task.status is TaskStatus.RUNNING


def test_following_ends_when_nobody_reads_and_when_the_task_is_lost(bash: limpet.Bash) -> None:
    task = bash.start_sync("while :; do echo tick; sleep 0.05; done")
    with subprocess.Popen(
        [*LIMPET, "output", "-f", task.id], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        process.wait(timeout=10)
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
    assert task.status is TaskStatus.RUNNING
    with subprocess.Popen(
        [*LIMPET, "output", "-f", task.id], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        kill_supervisor(task)
        _, said = process.communicate(timeout=10)
    assert process.returncode == 0
    assert b"supervisor is gone" in said


def test_the_screen_of_a_terminal(bash: limpet.Bash) -> None:
    started = cli(
        "run", "--background", "--pty", "--size", "40x5", r"printf 'a\033[3;4Hb'; sleep 60"
    )
    task = bash.task(started.stdout.strip())
    assert wait_until(lambda: task.screen().text == "a\n\n   b\n")
    assert cli("output", "--screen", task.id).stdout == "a\n\n   b\n"
    screen = as_json("output", "--screen", "--json", task.id)
    assert (screen["lines"], screen["row"], screen["column"]) == (["a", "", "   b", "", ""], 2, 4)


# wait


def test_wait_has_a_status_for_each_end(bash: limpet.Bash) -> None:
    over, running = finished(bash, "echo over; exit 3"), bash.start_sync("echo ready; sleep 60")
    done = cli("wait", over.id)
    assert (done.returncode, done.stdout) == (0, "over\n")
    assert "exit: exited, exit 3" in done.stderr
    assert cli("wait", over.id, "--until", "/never/").returncode == 3
    assert cli("wait", over.id, "--until", "/never/", "--until", "exit").returncode == 0
    assert cli("wait", running.id, "--until", "/read/").returncode == 0
    assert cli("wait", running.id, "--until", "quiet:0.2").returncode == 0
    assert cli("wait", running.id, "--timeout", "0.2").returncode == 124
    assert cli("wait", running.id, over.id).returncode == 0


def test_wait_as_json(bash: limpet.Bash) -> None:
    task = bash.start_sync("echo ready; sleep 60")
    waited = as_json("wait", task.id, "--until", "/re(a)dy/", "--json")
    assert (waited["task_id"], waited["matched"], waited["match"]) == (task.id, "regex", "ready")
    assert (waited["status"], waited["exit_code"], waited["cursor"]) == ("running", None, 6)


def test_wrong_arguments_of_wait_are_told(
    bash: limpet.Bash, capfd: pytest.CaptureFixture[str]
) -> None:
    task = finished(bash, "true")
    for words in (["--until", "x"], ["--until", "/(/"], ["--timeout", "x"], ["--timeout", "-1"]):
        assert here("wait", task.id, *words) == 2, words
    assert capfd.readouterr().out == ""


def test_ctrl_c_ends_a_wait_and_not_the_task(bash: limpet.Bash) -> None:
    task = bash.start_sync("sleep 60")
    with subprocess.Popen([*LIMPET, "wait", task.id], stderr=subprocess.PIPE, text=True) as process:
        assert wait_until(lambda: "inotify" in descriptors_of(process.pid))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=10)
    assert (process.returncode, said) == (130, "")
    assert task.status is TaskStatus.RUNNING


def descriptors_of(pid: int) -> str:
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(str(entry.readlink()))
        except OSError:
            continue
    return " ".join(found)


# send and stop


def test_send_types_a_line_a_key_and_the_end(bash: limpet.Bash) -> None:
    started = cli("run", "--background", "--interactive", "cat; echo over")
    task = bash.task(started.stdout.strip())
    assert cli("send", task.id, "one").returncode == 0
    assert cli("send", task.id, "-n", "tw").returncode == 0
    assert as_json("send", task.id, "o", "--json") == {
        "id": task.id, "bytes": 2, "key": None, "eof": False,
    }  # fmt: skip
    assert cli("send", task.id, "-", input="three\n").returncode == 0
    assert cli("send", task.id, "--eof").returncode == 0
    assert ended(task).text == "one\ntwo\nthree\nover\n"
    done = cli("send", task.id, "more")
    assert done.returncode == 1
    assert "takes no input" in done.stderr


def test_send_tells_what_cannot_be_sent(bash: limpet.Bash) -> None:
    task = bash.start_sync("sleep 60")
    assert cli("send", task.id, "x").returncode == 1
    assert cli("send", task.id).returncode == 2
    other = bash.start_sync("cat", stdin=True)
    done = cli("send", other.id, "--key", "no-such-key")
    assert done.returncode == 2
    assert "no such key" in done.stderr


def test_stop_says_what_it_did(bash: limpet.Bash) -> None:
    task = bash.start_sync("sleep 60")
    done = cli("stop", task.id)
    assert (done.returncode, done.stdout) == (
        0,
        f"{task.id}: stopped: ended with SIGTERM, all of it\n",
    )
    again = as_json("stop", task.id, "--json")
    assert (again["status"], again["what"]) == ("stopped", "it had ended already: stopped")
    both = as_json("stop", task.id, finished(bash, "exit 3").id, "--json")
    assert [one["exit_code"] for one in both] == [143, 3]
    assert marked_processes() == {}


# All of them


@pytest.mark.parametrize("command", ["output", "wait", "send", "stop"])
def test_an_unknown_id_lists_the_known_ones(
    bash: limpet.Bash, command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    known = finished(bash, "true")
    for task_id in ("bash-zzzzzz", "../../etc", "", "bash-ABCDEF", "bash-??????"):
        assert here(command, task_id, *(["x"] if command == "send" else [])) == 1
        captured = capfd.readouterr()
        assert captured.out == ""
        assert known.id in captured.err


def test_nobody_who_reads_is_no_crash(bash: limpet.Bash) -> None:
    task = finished(bash, "seq 100000")
    for words in (["output", task.id], ["tasks"], ["tasks", "--json"], ["wait", task.id]):
        read_end, write_end = os.pipe()
        os.close(read_end)
        done = subprocess.run(
            [*LIMPET, *words], stdout=write_end, stderr=subprocess.PIPE, text=True, timeout=20
        )
        os.close(write_end)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr


def test_closed_streams_are_no_crash(bash: limpet.Bash) -> None:
    words = " ".join([*LIMPET, "run", "--background", "'echo hi; exit 3'"])
    subprocess.run(f"{words} >&- 2>&- <&-", shell=True, timeout=20)
    (task,) = bash.tasks()
    waited = ended(task)
    assert (waited.text, waited.exit_code) == ("hi\n", 3)


def test_without_a_home_tasks_have_a_place(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "LIMPET_STATE_DIR")}
    environment |= {"TMPDIR": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "xdg")}
    started = cli("run", "--background", "echo hi; exit 3", env=environment)
    assert started.returncode == 0, started.stderr
    done = cli("wait", started.stdout.strip(), env=environment)
    assert (done.returncode, done.stdout) == (0, "hi\n")


def test_a_terminal_gets_a_table_that_fits_it(bash: limpet.Bash) -> None:
    finished(bash, f"echo {'word ' * 60}; # {'漢' * 60}")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    subprocess.run([*LIMPET, "tasks"], stdout=theirs, stderr=theirs, timeout=20, check=True)
    os.close(theirs)
    text = os.read(ours, 65536).decode()
    os.close(ours)
    assert "\x1b[32mexited 0" in text
    header, _, row = re.sub(r"\x1b\[[\d;]*m", "", text).splitlines()
    assert header.split() == ["ID", "STATUS", "AGE", "COMMAND", "LAST", "LINE"]
    assert all(cells(line) <= 80 for line in (header, row))
