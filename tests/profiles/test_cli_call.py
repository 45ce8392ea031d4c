from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import is_running, wait_until

from limpet.cli import main

Called = Callable[..., Any]


def limpet(*argv: str, **options: Any) -> subprocess.CompletedProcess[str]:  # noqa: ANN401 -- of run
    return subprocess.run(
        [sys.executable, "-m", "limpet.cli", *argv],
        capture_output=options.pop("capture_output", True),
        text=True,
        timeout=30,
        check=False,
        **options,
    )


@pytest.fixture
def called(capfd: pytest.CaptureFixture[str]) -> Called:
    """Return a function that calls in this process, and returns what was printed."""

    def call(*argv: str) -> Any:  # noqa: ANN401 -- JSON
        assert main(["call", *argv]) == 0
        return json.loads(capfd.readouterr().out)

    return call


def test_the_answer_is_printed_as_json(called: Called) -> None:
    answer = called('{"command": "echo hé"}')
    assert list(answer) == ["text", "is_error", "data"]
    assert (answer["text"], answer["is_error"]) == ("hé\n", False)


def test_every_profile_can_be_called(called: Called) -> None:
    cases: list[str] = ["report", "tasks", "modes", "tail", "streams", "default"]
    for profile in cases:
        answer = called("--profile", profile, '{"command": "echo hi"}')
        assert "hi" in answer["text"]
        assert answer["is_error"] is False
        assert isinstance(answer["data"], dict)


def test_a_failing_command_is_an_answer(called: Called) -> None:
    answer = called("--profile", "modes", '{"command": "exit 3"}')
    assert (answer["is_error"], answer["data"]["exit_code"]) == (False, 3)


def test_wrong_input_is_an_answer(called: Called) -> None:
    cases: list[str] = ["not json", "[]", "{}", "", '{"command": 5}']
    for given in cases:
        answer = called(given)
        assert answer["is_error"] is True
        assert answer["data"]["error"] == "invalid_input"


def test_an_unknown_profile_or_tool_is_a_mistake(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["call", "--profile", "nothing", "{}"])
    assert caught.value.code == 2
    assert "report" in capfd.readouterr().err
    assert main(["call", "--tool", "nothing", "{}"]) == 2
    said = capfd.readouterr()
    assert "bash_output" in said.err
    assert "Traceback" not in said.err
    assert said.out == ""


def test_other_tools_can_be_called(called: Called) -> None:
    task = called('{"command": "echo hi", "background": true}')["data"]["task_id"]
    waited = called("--tool", "bash_wait", json.dumps({"task": task}))
    assert waited["text"].startswith("hi\n")
    listed = called("--tool", "bash_list", "{}")
    assert [one["id"] for one in listed["data"]["tasks"]] == [task]


def test_a_session_sees_its_own_tasks(called: Called) -> None:
    call = '{"command": "sleep 60", "background": true}'
    task = called("--session", "one", call)["data"]["task_id"]
    assert task in called("--session", "one", "--tool", "bash_list", "{}")["text"]
    assert called("--session", "two", "--tool", "bash_list", "{}")["text"] == "(no tasks)"


def test_only_the_text_is_printed_if_so_asked(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "--text", '{"command": "echo hi; exit 3"}']) == 0
    assert capfd.readouterr().out == "hi\n[exit code 3]\n"


def test_text_that_is_no_unicode_can_be_printed(capfd: pytest.CaptureFixture[str]) -> None:
    for flags in ([], ["--text"]):
        assert main(["call", *flags, '{"command": "echo \\ud800"}']) == 0
        assert "command" in capfd.readouterr().out


def test_restricted_writes_nothing(called: Called, work: Path) -> None:
    for profile in ("modes", "default", "tasks"):
        called("--profile", profile, "--restricted", '{"command": "touch ran"}')
    assert not (work / "ran").exists()


def test_the_directory_can_be_another(called: Called, work: Path) -> None:
    (work / "below").mkdir()
    for given in ("below", str(work / "below")):
        answer = called("--cwd", given, '{"command": "pwd"}')
        assert answer["text"] == f"{work}/below\n"


def test_tails_files_are_kept_for_whoever_reads_the_answer(
    called: Called,
    work: Path,
) -> None:
    answer = called("--profile", "tail", "--output-dir", "saved", '{"command": "seq 1 200"}')
    (path,) = (work / "saved").iterdir()
    assert str(path) in answer["text"]
    assert path.read_text().endswith("200\n")


def test_options_of_other_profiles_are_mistakes(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "--profile", "modes", "--local", "{}"]) == 2
    assert "report" in capfd.readouterr().err
    assert main(["call", "--profile", "modes", "--output-dir", "x", "{}"]) == 2
    assert "tail" in capfd.readouterr().err


def test_local_reports_are_shorter(called: Called) -> None:
    call = '{"command": "seq 1 2000"}'
    assert len(called("--profile", "report", "--local", call)["text"]) <= 1500
    assert len(called("--profile", "report", call)["text"]) > 3000


# As a program


def test_input_can_come_from_stdin_and_be_long() -> None:
    call = json.dumps({"command": f": {'x' * 300_000}; echo hi"})
    done = limpet("call", "-", input=call)
    assert json.loads(done.stdout)["text"] == "hi\n"


def test_input_from_stdin_that_is_no_text_is_an_answer() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "limpet.cli", "call", "-"],
        input=b'{"command": "echo \xff\xfe"}',
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert isinstance(json.loads(done.stdout)["is_error"], bool)


@pytest.mark.parametrize("redirect", ["<&- 2>&-", ">&-", "> /dev/full"])
def test_closed_and_full_streams_are_no_crash(redirect: str) -> None:
    command = f"{sys.executable} -m limpet.cli call - {redirect}"
    done = subprocess.run(
        ["bash", "-c", command],
        input='{"command": "echo hi"}',
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    if redirect == "> /dev/full":
        assert done.returncode != 0


def test_a_reader_that_has_gone_is_no_crash() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with open(write_end, "wb") as gone:
        done = limpet(
            "call", '{"command": "seq 1 5000"}', capture_output=False, stdout=gone,
            stderr=subprocess.PIPE,
        )  # fmt: skip
    assert "Traceback" not in done.stderr


def test_no_home_is_no_crash(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name not in ("HOME", "USER")}
    done = limpet("call", "--profile", "modes", '{"command": "echo hi"}', env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["data"]["output"] == "hi\n"


def test_a_working_directory_that_was_removed_is_no_crash(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    command = (
        f"mkdir {gone} && cd {gone} && rmdir {gone} && "
        f'{sys.executable} -m limpet.cli call \'{{"command": "echo hi"}}\'; '
        f"{sys.executable} -m limpet.cli schema --profile modes"
    )
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=30, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_to_end_the_program_ends_what_it_runs(number: signal.Signals, work: Path) -> None:
    command = json.dumps({"command": "echo $$ > pid; sleep 60"})
    with subprocess.Popen(
        [sys.executable, "-m", "limpet.cli", "call", command], stdout=subprocess.PIPE, cwd=work
    ) as process:
        assert wait_until(lambda: (work / "pid").exists() and bool((work / "pid").read_text()))
        process.send_signal(number)
        assert process.wait(timeout=20) == 130
    assert not is_running(int((work / "pid").read_text()))
