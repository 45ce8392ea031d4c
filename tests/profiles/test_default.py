from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from support import is_running, python, wait_until

import limpet
from limpet.profiles import Answer, Toolbox, profile
from limpet.tasks.shelf import UNTOLD, Shelf


@pytest.fixture
def box() -> Toolbox:
    return profile("default")


def call(box: Toolbox, tool: str, **given: Any) -> Answer:  # noqa: ANN401 -- any input
    return box.call_sync(given, tool=tool)


def started(box: Toolbox, command: str, **given: Any) -> str:  # noqa: ANN401 -- any input
    answer = call(box, "bash", command=command, background=True, **given)
    task_id = answer.data["task_id"]
    assert isinstance(task_id, str), answer
    return task_id


def split(text: str) -> tuple[str, str]:
    """Return the output and the line of facts."""
    output, _, facts = text.rpartition("\n")
    return output, facts


# bash


def test_the_tools_are_these(box: Toolbox) -> None:
    fields = {tool.name: list(tool.input_schema["properties"]) for tool in box.definitions()}
    assert fields["bash"] == ["command", "description", "timeout_s", "background"]
    assert fields["bash_output"] == ["task", "cursor", "lines", "search"]
    assert list(fields) == "bash bash_output bash_wait bash_send bash_stop bash_list".split()


def test_success_is_the_output_and_no_more(box: Toolbox) -> None:
    answer = call(box, "bash", command="echo out; echo err >&2", description="Say hello")
    assert answer.text == "out\nerr\n"
    assert not answer.is_error
    assert answer.data["description"] == "Say hello"
    assert call(box, "bash", command="true").text == "(no output)"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo hi; exit 3", "exit code 3"),
        ("printf hi; exit 3", "exit code 3"),
        ("echo hi; kill -9 $$", "SIGKILL"),
        ("echo hi; exec no-such-program-here", "exit code 127"),
        ("echo hi; sleep 60 & true", "task"),
    ],
)
def test_facts_are_one_line_below_the_output(box: Toolbox, command: str, said: str) -> None:
    answer = call(box, "bash", command=command)
    output, facts = split(answer.text)
    assert output.startswith("hi")
    assert facts.startswith("[")
    assert facts.endswith("]")
    assert said in facts
    assert not answer.is_error or "SIGKILL" in facts


def test_a_time_out_names_the_limit(box: Toolbox) -> None:
    answer = call(box, "bash", command="echo hi; sleep 60", timeout_s=0.3)
    assert (answer.is_error, answer.can_retry) == (True, True)
    output, facts = split(answer.text)
    assert output == "hi"
    assert re.search(r"timed out after \d\.\d s; stopped at the limit of 0\.3 s", facts)


def test_a_refusal_says_why_and_what_instead(box: Toolbox, work: Path) -> None:
    answer = call(box, "bash", command="touch ran; git add -A")
    assert (answer.is_error, answer.can_retry) == (True, True)
    assert answer.text.startswith("[nothing ran; ")
    assert "git-add-blind" in answer.text
    assert "Instead" in answer.text
    assert "\n" not in answer.text
    assert not (work / "ran").exists()


def test_what_cannot_start_says_why(tmp_path: Path, box: Toolbox) -> None:
    ctx = limpet.ToolContext(tmp_path / "nowhere")
    answer = box.call_sync({"command": "true"}, ctx)
    assert (answer.is_error, answer.can_retry) == (True, True)
    assert "nowhere" in answer.text


def test_a_denial_of_the_sandbox_is_told(box: Toolbox, work: Path) -> None:
    answer = box.call_sync({"command": "touch x"}, limpet.ToolContext(work, restricted=True))
    _, facts = split(answer.text)
    assert "exit code 1" in facts
    assert "sandbox" in facts


def test_survivors_become_a_task_that_can_be_stopped(box: Toolbox) -> None:
    answer = call(box, "bash", command="sleep 60 & echo $!")
    pid = int(answer.text.splitlines()[0])
    task = answer.data["task_id"]
    assert task in answer.text
    assert not call(box, "bash_stop", task=task).is_error
    assert not is_running(pid)


# The budget


def test_thirty_thousand_characters_are_whole(box: Toolbox) -> None:
    answer = call(box, "bash", command=python("print('x' * 99 + '\\n', end='') or print(('y' * 99 + '\\n') * 299, end='')"))  # fmt: skip  # noqa: E501 -- one line
    assert len(answer.text) == 30_000
    assert "left out" not in answer.text


def test_longer_output_keeps_head_tail_and_errors_by_lines(box: Toolbox) -> None:
    command = "seq 1 20000; echo 'x.c:5: error: no'; seq 20001 60000"
    answer = call(box, "bash", command=command)
    output, facts = split(answer.text)
    assert len(output) <= 30_000
    assert output.startswith("1\n2\n3\n")
    assert output.endswith("\n59999\n60000")
    assert "\nx.c:5: error: no\n" in output
    whole = [line for line in output.splitlines() if not line.startswith("[…")]
    assert all(line.isdecimal() or line == "x.c:5: error: no" for line in whole)
    left = re.search(r"([\d,]+) lines of the output were left out", facts)
    assert left is not None
    assert len(whole) + int(left[1].replace(",", "")) == 60_001
    path = answer.data["spill_path"]
    assert path in facts
    assert len(Path(path).read_text().splitlines()) == 60_001


@pytest.mark.parametrize("count", [8000, 60_000, 600_000])
def test_what_is_left_out_is_counted_exactly(box: Toolbox, count: int) -> None:
    """Also if the engine has cut before the profile did."""
    output, facts = split(call(box, "bash", command=f"seq 1 {count}").text)
    whole = [line for line in output.splitlines() if not line.startswith("[…")]
    left = re.search(r"([\d,]+) lines of the output were left out", facts)
    assert left is not None
    assert len(whole) + int(left[1].replace(",", "")) == count


def test_a_line_that_was_shortened_is_not_told_as_no_lines(box: Toolbox) -> None:
    answer = call(box, "bash", command=python("print('a' + 'x' * 100000 + 'z')"))
    output, facts = split(answer.text)
    assert "0 lines" not in facts
    assert "left out" in facts
    assert answer.data["spill_path"] in facts
    assert output.startswith("axx")
    assert output.endswith("xxz")
    assert len(output) > 20_000


@pytest.mark.parametrize("name", ["default", "modes", "tasks"])
def test_capped_output_is_not_said_to_be_all_in_the_file(name: str) -> None:
    output = limpet.OutputPolicy(spill_bytes=200_000)
    answer = profile(name, limpet.Policy(output=output)).call_sync({"command": "yes"})
    assert answer.is_error
    assert "cap" in answer.text
    assert "all of it" not in answer.text
    assert "Full output" not in answer.text


def test_every_tool_keeps_the_budget() -> None:
    box = profile("default", budget_chars=1000)
    task = started(box, "seq 1 5000; echo é{1..500}; exit 3")
    answers = [
        call(box, "bash", command="seq 1 5000"),
        call(box, "bash_wait", task=task),
        call(box, "bash_output", task=task),
        call(box, "bash_output", task=task, search="1"),
        call(box, "bash_output", task=task, lines=4000),
        call(box, "bash_output", task=task, lines="1:4000"),
        call(box, "bash_output", task=task, cursor=0),
    ]
    for number in range(20):
        started(box, f": {number} {'x' * 90}")
    answers.append(call(box, "bash_list"))
    assert [len(answer.text) < 1500 for answer in answers] == [True] * 8, [
        len(answer.text) for answer in answers
    ]


# Tasks


def test_a_background_task_returns_at_once(box: Toolbox) -> None:
    answer = call(box, "bash", command="echo hi; sleep 60", background=True, description="Serve")
    data = answer.data
    assert data["outcome"] == "backgrounded"
    assert data["task_id"] in answer.text
    assert str(data["pid"]) in answer.text
    assert is_running(data["pid"])
    assert not answer.is_error


def test_a_background_task_can_have_a_limit(box: Toolbox) -> None:
    task = started(box, "sleep 60", timeout_s=0.2)
    answer = call(box, "bash_wait", task=task)
    assert answer.data["task"]["status"] == "timed_out"


def test_a_refused_task_is_told_like_a_refused_command(box: Toolbox) -> None:
    answer = call(box, "bash", command="git add -A", background=True)
    assert answer.is_error
    assert answer.text.startswith("[nothing ran; ")


def test_output_is_read_from_a_cursor(box: Toolbox) -> None:
    task = started(box, "echo one; read; echo two; read")
    call(box, "bash_wait", task=task, until="/one/")
    first = call(box, "bash_output", task=task)
    assert first.text.startswith("one\n[")
    assert f"cursor {first.data['cursor']}" in first.text
    again = call(box, "bash_output", task=task, cursor=first.data["cursor"])
    assert again.data["text"] == ""
    call(box, "bash_send", task=task, text="\n")
    call(box, "bash_wait", task=task, until="/two/")
    assert call(box, "bash_output", task=task, cursor=first.data["cursor"]).data["text"] == "two\n"


def test_output_is_read_by_lines(box: Toolbox) -> None:
    task = started(box, "seq 1 100")
    call(box, "bash_wait", task=task)
    for lines, expected in ((3, "98\n99\n100\n"), ("3:5", "3\n4\n5\n"), ("99:", "99\n100\n")):
        assert call(box, "bash_output", task=task, lines=lines).data["text"] == expected
    for wrong in ("5:3", "0:2", "a", ":", "1:2:3", "-3"):
        answer = call(box, "bash_output", task=task, lines=wrong)
        assert answer.is_error, wrong
        assert "lines" in answer.text


def test_a_number_of_lines_given_as_text_is_no_range(box: Toolbox) -> None:
    task = started(box, "seq 1 100")
    call(box, "bash_wait", task=task)
    answer = call(box, "bash_output", task=task, lines="2")
    assert answer.is_error or answer.data["text"] == "99\n100\n"


def test_output_is_searched(box: Toolbox) -> None:
    task = started(box, "seq 1 100")
    call(box, "bash_wait", task=task)
    answer = call(box, "bash_output", task=task, search="^.7$")
    assert answer.data["matches"] == 9
    assert "9 lines match" in answer.text
    assert "17" in answer.text
    none = call(box, "bash_output", task=task, search="nothing")
    assert "0 lines match" in none.text
    bad = call(box, "bash_output", task=task, search="(")
    assert (bad.is_error, bad.can_retry) == (True, True)


@pytest.mark.parametrize(
    ("until", "said"),
    [
        ("exit", "ended"),
        ("/hel+o/", "hello"),
        (["/never/", "exit"], "ended"),
    ],
)
def test_waiting_says_what_came(box: Toolbox, until: object, said: str) -> None:
    task = started(box, "echo hello")
    answer = call(box, "bash_wait", task=task, until=until)
    output, facts = split(answer.text)
    assert output == "hello"
    assert said in facts
    assert task in facts


def test_waiting_for_quiet(box: Toolbox) -> None:
    task = started(box, "echo hello; sleep 60")
    answer = call(box, "bash_wait", task=task, until="quiet:0.2")
    assert answer.data["matched"] == "quiet"
    assert answer.text.startswith("hello\n[it is quiet")


def test_waiting_for_the_first_of_several(box: Toolbox) -> None:
    slow, quick = started(box, "sleep 60"), started(box, "echo quick")
    answer = call(box, "bash_wait", task=[slow, quick])
    assert answer.data["task"]["id"] == quick
    assert quick in answer.text


def test_waiting_ends_at_its_limit(box: Toolbox) -> None:
    task = started(box, "sleep 60")
    answer = call(box, "bash_wait", task=task, timeout_s=0.1)
    assert answer.data["matched"] == "timeout"
    assert "running" in answer.text
    assert not answer.is_error


def test_waiting_for_nothing_is_an_error(box: Toolbox) -> None:
    task = started(box, "sleep 60")
    assert call(box, "bash_wait", task=[]).is_error
    assert call(box, "bash_wait", task=task, until=[], timeout_s=0.1).is_error
    for wrong in ("never", "quiet:x", "port:x", "/(/"):
        answer = call(box, "bash_wait", task=task, until=wrong, timeout_s=0.1)
        assert (answer.is_error, answer.can_retry) == (True, True), wrong


def test_a_task_is_typed_into(box: Toolbox) -> None:
    task = started(box, "while read line; do echo got $line; done; echo end")
    answer = call(box, "bash_send", task=task, text="hi\n")
    assert answer.text.startswith("got hi\n[")
    call(box, "bash_send", task=task, eof=True)
    assert call(box, "bash_wait", task=task).data["task"]["exit_code"] == 0
    late = call(box, "bash_send", task=task, text="hi\n")
    assert late.is_error
    assert "input" in late.text


def test_an_unknown_key_lists_those_there_are(box: Toolbox) -> None:
    task = started(box, "cat")
    answer = call(box, "bash_send", task=task, key="any")
    assert answer.is_error
    assert "ctrl-c" in answer.text


def test_a_task_is_stopped_with_all_that_it_started(box: Toolbox, work: Path) -> None:
    task = started(box, "sleep 60 & echo $! > pid; wait")
    assert wait_until(lambda: (work / "pid").exists() and bool((work / "pid").read_text()))
    answer = call(box, "bash_stop", task=task)
    assert not answer.is_error
    assert answer.data["status"] == "stopped"
    assert not is_running(int((work / "pid").read_text()))
    again = call(box, "bash_stop", task=task)
    assert not again.is_error
    assert "stopped" in again.text


def test_tasks_are_listed(box: Toolbox) -> None:
    assert call(box, "bash_list").text == "(no tasks)"
    ended = started(box, "echo last words; exit 3")
    call(box, "bash_wait", task=ended)
    running = started(box, "sleep 60", description="Sleep a while")
    rows = call(box, "bash_list").text.splitlines()
    assert len(rows) == 2
    assert rows[0].startswith(f"{running} running")
    assert "Sleep a while" in rows[0]
    assert rows[1].startswith(f"{ended} exited 3")
    assert rows[1].endswith("last words")
    only = call(box, "bash_list", status="running").data["tasks"]
    assert [task["id"] for task in only] == [running]


def test_an_unknown_task_lists_those_there_are(box: Toolbox) -> None:
    task = started(box, "sleep 60")
    for tool in ("bash_output", "bash_wait", "bash_send", "bash_stop"):
        answer = call(box, tool, task="bash-nothere")
        assert (answer.is_error, answer.can_retry) == (True, True)
        assert "bash-nothere" in answer.text
        assert task in answer.text


def test_an_odd_name_of_a_task_is_an_answer(box: Toolbox) -> None:
    cases: list[str] = ["", "../..", "/etc", "bash-\0", "x" * 10_000, "~", "."]
    for odd in cases:
        for tool in ("bash_output", "bash_stop"):
            assert call(box, tool, task=odd).is_error


# Notices


WAITS = "until [ -e go ]; do sleep 0.02; done"


def wait_for_end(box: Toolbox, task: str) -> None:
    """Let a task end, and wait until somebody can be told: that is a moment later."""
    Path("go").touch()
    box.bash.task(task).wait_sync()
    assert wait_until(lambda: (Shelf.of_this_user().path / UNTOLD / task).exists())


def test_a_named_conversation_is_told_once_that_its_task_has_ended(box: Toolbox) -> None:
    ctx = limpet.ToolContext(session_id="one")
    task = box.call_sync({"command": f"{WAITS}; exit 3", "background": True}, ctx).data["task_id"]
    wait_for_end(box, task)
    other = box.call_sync({"command": "true"}, limpet.ToolContext(session_id="two"))
    assert task not in other.text
    told = box.call_sync({"command": "echo hi"}, ctx)
    assert told.text.startswith("hi\n[")
    assert task in told.text
    assert "exited 3" in told.text
    assert box.call_sync({"command": "echo hi"}, ctx).text == "hi\n"


def test_output_that_names_a_task_does_not_swallow_the_notice(box: Toolbox) -> None:
    ctx = limpet.ToolContext(session_id="one")
    task = box.call_sync({"command": f"{WAITS}; exit 3", "background": True}, ctx).data["task_id"]
    wait_for_end(box, task)
    answers = [box.call_sync({"command": f"echo {task}"}, ctx) for _ in range(2)]
    assert any("exited 3" in answer.text for answer in answers), answers


def test_the_program_and_the_model_see_the_same_text(box: Toolbox) -> None:
    answer = call(box, "bash", command="seq 1 60000; false")
    assert answer.text.startswith(answer.data["output"])


def test_streaming_yields_the_engines_events_and_the_answer(box: Toolbox) -> None:
    async def events() -> list[Any]:
        return [one async for one in box.stream({"command": "echo hi"})]

    *seen, answer = asyncio.run(events())
    names = [type(one).__name__ for one in seen]
    assert (names[0], names[-1]) == ("Started", "Finished")
    assert answer.text == "hi\n"


def test_a_task_that_was_stopped_is_not_told_of_a_second_time(box: Toolbox) -> None:
    ctx = limpet.ToolContext(session_id="one")
    task = box.call_sync({"command": "sleep 60", "background": True}, ctx).data["task_id"]
    stopped = box.call_sync({"task": task}, ctx, tool="bash_stop")
    assert "meanwhile" not in stopped.text
    assert box.call_sync({"command": "echo hi"}, ctx).text == "hi\n"
