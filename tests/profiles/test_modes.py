"""Each requirement by its number, at least one test for each WHEN."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shlex
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from support import is_running, python, wait_until

import limpet
from limpet.profiles import Answer, Toolbox, profile
from limpet.profiles import modes as subject
from tasks.helpers import NOTE

FIELDS = "command display mode output exit_code truncated timed_out pid pgid output_file".split()


@pytest.fixture
def box() -> Toolbox:
    return profile("modes")


@pytest.fixture
def restricted(work: Path) -> limpet.ToolContext:
    return limpet.ToolContext(work, restricted=True)


# 001: command execution


def test_req_bash_001_a_command_runs_with_bash_in_the_working_directory(
    box: Toolbox, tmp_path: Path
) -> None:
    ctx = limpet.ToolContext(tmp_path)
    answer = box.call_sync({"command": "a=(x y); pwd; echo $0 ${a[1]}"}, ctx)
    assert answer.data["output"] == f"{tmp_path}\nbash y\n"
    assert answer.text == answer.data["output"]
    assert not answer.is_error


def test_req_bash_001_stdout_and_stderr_are_combined_in_order(box: Toolbox) -> None:
    answer = box.call_sync({"command": "echo 1; echo 2 >&2; echo 3; echo 4 >&2"})
    assert answer.data["output"] == "1\n2\n3\n4\n"


def test_req_bash_001_the_data_has_these_fields(box: Toolbox) -> None:
    answer = box.call_sync({"command": "echo hi"})
    assert list(answer.data) == FIELDS
    assert answer.data == {
        "command": "echo hi",
        "display": "echo hi",
        "mode": "default",
        "output": "hi\n",
        "exit_code": 0,
        "truncated": False,
        "timed_out": False,
        "pid": None,
        "pgid": None,
        "output_file": None,
    }


def test_req_bash_001_128_kb_of_output_are_whole(box: Toolbox) -> None:
    answer = box.call_sync({"command": python("print('x' * 131072, end='')")})
    assert answer.data["output"] == "x" * 131_072
    assert answer.data["truncated"] is False


def test_req_bash_001_longer_output_keeps_the_first_and_last_4_kb(box: Toolbox) -> None:
    code = "print('a' * 4096 + 'x' * 122881 + 'b' * 4096, end='')"
    answer = box.call_sync({"command": python(code)})
    output = answer.data["output"]
    assert output.startswith("a" * 4096 + "\n[")
    assert output.endswith("]\n" + "b" * 4096)
    marker = output[4096:-4096]
    assert "x" not in marker.replace("/", "") or len(marker) < 400
    assert "122881 bytes truncated" in marker
    assert answer.data["truncated"] is True
    assert Path(answer.data["output_file"]).stat().st_size == 131_073
    assert answer.data["output_file"] in answer.text


def test_req_bash_001_no_character_is_split(box: Toolbox) -> None:
    code = "print('x' + '€' * 100_000, end='')"
    output = box.call_sync({"command": python(code)}).data["output"]
    head, _, rest = output.partition("\n[")
    assert head == "x" + "€" * 1365
    assert rest.rpartition("]\n")[2] == "€" * 1365


def test_req_bash_001_no_part_of_truncated_output_is_shown_twice(box: Toolbox) -> None:
    """Colour is not shown: then what is kept of the ends may be less than 4 KB."""
    colour = r"\033[38;5;100;48;5;200;1;2;3;4m"
    code = f"print(''.join(f'{colour}{{i:04}},' for i in range(4600)), end='')"
    answer = box.call_sync({"command": python(code)})
    numbers = [int(one) for one in re.findall(r"(?<!\d)\d{4}(?=,)", answer.data["output"])]
    assert numbers == sorted(set(numbers))
    assert (numbers[0], numbers[-1]) == (0, 4599)


# 002: timeouts


def test_req_bash_002_the_limits_are_30_seconds_and_15_minutes() -> None:
    assert subject.TIMEOUTS_S == {"default": 30.0, "slow": 900.0}


@pytest.mark.parametrize("mode", ["default", "slow"])
def test_req_bash_002_a_command_that_exceeds_its_limit_is_killed_with_its_group(
    box: Toolbox, work: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(subject.TIMEOUTS_S, mode, 0.3)
    command = "sleep 60 & echo $! > child; echo partial; sleep 60"
    answer = box.call_sync({"command": command, "mode": mode})
    assert answer.is_error
    assert answer.data["timed_out"] is True
    assert answer.data["output"] == "partial\n"
    assert answer.text.startswith("partial\n[timed out after 0.3 seconds")
    assert not is_running(int((work / "child").read_text()))


def test_req_bash_002_a_slow_command_outlives_the_default_limit(
    box: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(subject.TIMEOUTS_S, "default", 0.1)
    answer = box.call_sync({"command": "sleep 0.2; echo done", "mode": "slow"})
    assert (answer.data["output"], answer.data["timed_out"]) == ("done\n", False)


# 003: background execution


def background(box: Toolbox, command: str, ctx: limpet.ToolContext | None = None) -> Answer:
    return box.call_sync({"command": command, "mode": "background"}, ctx)


def test_req_bash_003_background_returns_at_once_with_pid_and_output_file(box: Toolbox) -> None:
    answer = background(box, "echo hi; sleep 60")
    data = answer.data
    assert list(data) == FIELDS
    assert (data["mode"], data["exit_code"], data["output"]) == ("background", None, "")
    assert is_running(data["pid"])
    assert os.getpgid(data["pid"]) == data["pgid"] != os.getpgrp()
    assert wait_until(lambda: Path(data["output_file"]).read_text() == "hi\n")
    for fact in (str(data["pid"]), str(data["pgid"]), data["output_file"]):
        assert fact in answer.text


def test_req_bash_003_background_outlives_the_agent(work: Path) -> None:
    """Of a program that has ended since: by then nothing of it can hold the command up."""
    import subprocess
    import sys

    code = (
        "import limpet; from limpet.profiles import profile\n"
        "call = {'command': 'until test -e go; do sleep 0.02; done; echo on', "
        "'mode': 'background'}\n"
        "print(profile('modes').call_sync(call).data['output_file'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    path = Path(done.stdout.strip())
    assert path.read_text() == ""
    (work / "go").touch()
    assert wait_until(lambda: NOTE.search(path.read_text()) is not None)
    assert path.read_text().startswith("on\n")


@pytest.mark.parametrize(
    ("command", "said"), [("exit 3", "exit 3"), ("true", "exit 0"), ("kill -9 $$", "137")]
)
def test_req_bash_003_completion_is_appended_to_the_output_file(
    box: Toolbox, command: str, said: str
) -> None:
    path = Path(background(box, f"echo hi; {command}").data["output_file"])
    assert wait_until(lambda: NOTE.search(path.read_text()) is not None)
    assert path.read_text().startswith("hi\n")
    assert said in path.read_text()


def test_req_bash_003_kill_9_of_the_group_stops_it_and_is_noted(box: Toolbox, work: Path) -> None:
    data = background(box, "sleep 60 & echo $! > child; wait").data
    assert wait_until(lambda: (work / "child").exists() and bool((work / "child").read_text()))
    child = int((work / "child").read_text())
    stop = box.call_sync({"command": f"kill -9 -{data['pgid']}"})
    assert stop.data["exit_code"] == 0
    assert wait_until(lambda: not is_running(child) and not is_running(data["pid"]))
    path = Path(data["output_file"])
    assert wait_until(lambda: NOTE.search(path.read_text()) is not None)
    assert "137" in path.read_text()


def test_req_bash_003_the_answer_says_how_to_stop_it(box: Toolbox) -> None:
    answer = background(box, "sleep 60")
    assert f"kill -9 -{answer.data['pgid']}" in answer.text
    os.killpg(answer.data["pgid"], signal.SIGKILL)


# 004: no terminal


@pytest.mark.parametrize("mode", ["default", "slow", "background"])
def test_req_bash_004_there_is_no_terminal(box: Toolbox, work: Path, mode: str) -> None:
    command = (
        "{ tty; test -t 0 || test -t 1 || test -t 2 || echo none; "
        "(: < /dev/tty) 2> /dev/null || echo no controlling one; cat; echo end; } > said"
    )
    box.call_sync({"command": command, "mode": mode})
    said = work / "said"
    assert wait_until(lambda: said.exists() and said.read_text().endswith("end\n"))
    assert said.read_text() == "not a tty\nnone\nno controlling one\nend\n"


# 005: schema


def test_req_bash_005_the_schema_has_command_and_mode(box: Toolbox) -> None:
    (tool,) = box.definitions()
    assert tool.name == "bash"
    schema = tool.input_schema
    assert list(schema["properties"]) == ["command", "mode"]
    assert schema["required"] == ["command"]
    assert schema["properties"]["command"]["type"] == "string"
    assert schema["properties"]["mode"]["enum"] == ["default", "slow", "background"]


@pytest.mark.parametrize("given", [{}, {"mode": None}, {"mode": "default"}])
def test_req_bash_005_without_a_mode_it_is_the_default(
    box: Toolbox, given: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(subject.TIMEOUTS_S, "default", 0.1)
    answer = box.call_sync({"command": "sleep 60", **given})
    assert (answer.data["mode"], answer.data["timed_out"]) == ("default", True)


def test_req_bash_005_there_are_no_other_modes(box: Toolbox) -> None:
    answer = box.call_sync({"command": "touch ran", "mode": "fast"})
    assert answer.is_error
    assert answer.text == 'mode must be one of "default", "slow", "background", not "fast"'
    assert not Path("ran").exists()


def test_req_bash_005_the_description_names_the_working_directory(
    box: Toolbox, work: Path, tmp_path: Path
) -> None:
    assert f"Working directory: {work}" in box.description.splitlines()
    for given, shown in ((tmp_path, tmp_path), (f"{tmp_path}/", tmp_path), ("~", Path.home())):
        (tool,) = box.definitions(limpet.ToolContext(given))
        assert f"Working directory: {shown}" in tool.description.splitlines()


def test_req_bash_005_the_description_follows_the_conversation(box: Toolbox, work: Path) -> None:
    (work / "below").mkdir()
    box = profile("modes", limpet.Policy(persist_cwd=True))
    ctx = limpet.ToolContext(work)
    box.call_sync({"command": "cd below"}, ctx)
    (tool,) = box.definitions(ctx)
    assert f"Working directory: {work}/below" in tool.description.splitlines()


# 006: errors


def test_req_bash_006_a_failure_has_its_code_and_its_output(box: Toolbox) -> None:
    answer = box.call_sync({"command": "echo why >&2; exit 3"})
    assert answer.data["exit_code"] == 3
    assert answer.text == "why\n[exit code: 3]"
    assert not answer.is_error


def test_req_bash_006_output_without_an_end_of_line_is_not_joined_with_the_code(
    box: Toolbox,
) -> None:
    assert box.call_sync({"command": "printf why; false"}).text == "why\n[exit code: 1]"


def test_req_bash_006_a_signal_is_named(box: Toolbox) -> None:
    answer = box.call_sync({"command": "kill -9 $$"})
    assert answer.data["exit_code"] == 137
    assert "SIGKILL" in answer.text


@pytest.mark.parametrize("mode", ["default", "background"])
def test_req_bash_006_a_system_error_is_told_apart_from_a_failure(
    box: Toolbox, tmp_path: Path, mode: str
) -> None:
    ctx = limpet.ToolContext(tmp_path / "nowhere")
    answer = box.call_sync({"command": "echo hi", "mode": mode}, ctx)
    assert answer.is_error
    assert answer.data["exit_code"] is None
    assert answer.text.startswith("[system error")
    assert "nowhere" in answer.text
    assert "exit code" not in answer.text


# 007: safety

REFUSED = [
    "git add -A",
    "git add .",
    "git add --all",
    "git add *",
    "git push --force",
    "git push -f",
    "git push origin main -f",
    "rm -rf /",
    "rm -rf ~",
    "rm -rf $HOME",
    'rm -rf "$HOME"',
    "rm -rf .git",
    "rm -rf *",
    "rm -rf .*",
    "rm -fr .git",
    "rm -r -f .git",
]


def all_refused(box: Toolbox, *around: str) -> None:
    for command in REFUSED:
        for one in around:
            made = one.format(command)
            assert box.bash.check(made).decision == "deny", made


def test_req_bash_007_dangerous_patterns_are_rejected(box: Toolbox) -> None:
    all_refused(box, "{}", "  {}  ", "{} # harmless", "A=b {}")


def test_req_bash_007_what_follows_sudo_is_checked(box: Toolbox) -> None:
    all_refused(box, "sudo {}", "sudo -u root {}", "sudo -E -n {}")


def test_req_bash_007_all_parts_of_a_line_are_checked(box: Toolbox) -> None:
    all_refused(
        box,
        "ls | {}",
        "{} | cat",
        "true && {}",
        "{} || true",
        "ls; {}",
        "( {} )",
        "{{ {}; }}",
        "if true; then {}; fi",
        "echo $({})",
        "ls\n{}",
    )


@pytest.mark.parametrize("mode", ["default", "slow", "background"])
def test_req_bash_007_what_is_rejected_is_not_executed(box: Toolbox, work: Path, mode: str) -> None:
    answer = box.call_sync({"command": "touch ran; git add -A", "mode": mode})
    assert answer.is_error
    assert answer.text.startswith("[not executed: ")
    assert "git-add-blind" in answer.text
    assert answer.data["exit_code"] is None
    assert not (work / "ran").exists()


def test_req_bash_007_safer_ways_are_allowed(box: Toolbox) -> None:
    cases: list[str] = [
        "git push --force-with-lease",
        "git add src/x.py",
        "git commit -m 'do not git add -A'",
        "rm -rf build",
        "rm -rf ./node_modules /tmp/x",
        "echo rm -rf /",
        "sudo ls",
    ]
    for command in cases:
        assert box.bash.check(command).decision == "allow"


# 008: restricted


def test_req_bash_008_restricted_nothing_can_be_written(
    box: Toolbox, work: Path, restricted: limpet.ToolContext
) -> None:
    (work / "there").write_text("before")
    answer = box.call_sync(
        {"command": "cat there; echo x > there; rm there; mkdir d; touch /tmp/limpet-no"},
        restricted,
    )
    assert answer.data["exit_code"] != 0
    assert answer.data["output"].startswith("before")
    assert (work / "there").read_text() == "before"
    assert sorted(work.iterdir()) == [work / "there"]


def test_req_bash_008_restricted_there_is_no_network(
    box: Toolbox, restricted: limpet.ToolContext
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        command = f"exec 3<> /dev/tcp/127.0.0.1/{port}"
        assert box.call_sync({"command": command}).data["exit_code"] == 0
        answer = box.call_sync({"command": command}, restricted)
        assert answer.data["exit_code"] != 0


def test_req_bash_008_restricted_nothing_can_be_served(
    force: Callable[..., None], restricted: limpet.ToolContext
) -> None:
    """With a network of its own a command may bind, but nobody could reach it: here without."""
    force(own_network=False)
    bind = python("import socket; socket.create_server(('127.0.0.1', 0))")
    answer = profile("modes").call_sync({"command": bind}, restricted)
    assert answer.data["exit_code"] != 0


def test_req_bash_008_restricted_nothing_outside_can_be_signalled(
    box: Toolbox, restricted: limpet.ToolContext
) -> None:
    outside = background(box, "sleep 60").data
    answer = box.call_sync({"command": f"kill -9 -{outside['pgid']}"}, restricted)
    assert answer.data["exit_code"] != 0
    assert is_running(outside["pid"])


def test_req_bash_008_restricted_there_are_limits(
    box: Toolbox, restricted: limpet.ToolContext
) -> None:
    command = "ulimit -d; ulimit -t"
    free = box.call_sync({"command": command}).data["output"].split()
    bound = box.call_sync({"command": command}, restricted).data["output"].split()
    assert free == ["unlimited", "unlimited"]
    assert all(one.isdecimal() for one in bound), bound


def test_req_bash_008_restricted_holds_in_the_background_too(
    box: Toolbox, work: Path, restricted: limpet.ToolContext
) -> None:
    path = Path(background(box, "touch ran; echo $?", restricted).data["output_file"])
    assert wait_until(lambda: NOTE.search(path.read_text()) is not None)
    assert not (work / "ran").exists()
    assert "\n1\n" in path.read_text()


def test_req_bash_008_the_kernels_error_is_returned(
    box: Toolbox, restricted: limpet.ToolContext
) -> None:
    answer = box.call_sync({"command": "touch x"}, restricted)
    errors = ("Permission denied", "Operation not permitted", "Read-only file system")
    assert any(error in answer.data["output"] for error in errors)
    assert answer.data["exit_code"] == 1


def test_req_bash_008_the_description_explains_the_constraints(
    box: Toolbox, restricted: limpet.ToolContext
) -> None:
    (free,), (bound,) = box.definitions(), box.definitions(restricted)
    for word in ("read-only", "network"):
        assert word in bound.description
        assert word not in free.description


def test_req_bash_008_a_denied_command_is_not_retried(
    box: Toolbox, restricted: limpet.ToolContext
) -> None:
    answer = box.call_sync({"command": "echo once; touch x"}, restricted)
    assert answer.data["output"].count("once") == 1


def test_req_bash_008_restricted_is_a_property_of_the_conversation_not_of_the_call(
    box: Toolbox, work: Path, restricted: limpet.ToolContext
) -> None:
    for name in ("restricted", "sandbox", "cwd", "env"):
        answer = box.call_sync({"command": "touch ran", name: False}, restricted)
        assert answer.is_error
        assert f"there is no '{name}'" in answer.text
    answer = box.call_sync({"command": "touch ran"}, limpet.ToolContext(work))
    assert answer.data["exit_code"] == 0


def test_req_bash_008_restricted_overrules_a_policy_that_permits_more(work: Path) -> None:
    policy = limpet.Policy(
        sandbox=limpet.SandboxPolicy(mode="workspace", network=True, writable=(str(work),))
    )
    box = profile("modes", policy)
    answer = box.call_sync({"command": "touch ran"}, limpet.ToolContext(work, restricted=True))
    assert answer.data["exit_code"] == 1
    assert not (work / "ran").exists()


# 009: without Landlock


def test_req_bash_009_a_missing_landlock_is_noticed_at_startup_and_logged(
    force: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    force(abi=0)
    with caplog.at_level(logging.WARNING, "limpet"):
        profile("modes")
    assert "Landlock" in caplog.text
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_req_bash_009_with_landlock_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    profile("modes")
    assert not caplog.records


@pytest.mark.parametrize("mode", ["default", "slow"])
def test_req_bash_009_restricted_is_an_error_that_explains_what_it_needs(
    force: Callable[..., None], work: Path, restricted: limpet.ToolContext, mode: str
) -> None:
    force(abi=0)
    answer = profile("modes").call_sync({"command": "touch ran", "mode": mode}, restricted)
    assert (answer.is_error, answer.can_retry) == (True, False)
    assert "Landlock" in answer.text
    assert "Linux 5.13" in answer.text
    assert not (work / "ran").exists()


def test_req_bash_009_the_user_is_told_that_landlock_is_missing(
    force: Callable[..., None],
) -> None:
    force(abi=0)
    assert (
        "Restricted mode is not available here: it needs Landlock" in profile("modes").description
    )


def test_req_bash_009_another_system_has_only_unrestricted_conversations(
    work: Path, restricted: limpet.ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    box = profile("modes")
    assert "Linux" in box.description
    answer = box.call_sync({"command": "touch ran"}, restricted)
    assert answer.is_error
    assert "Linux" in answer.text
    assert not (work / "ran").exists()


def test_req_bash_009_unrestricted_conversations_go_on_with_the_safety_checks(
    force: Callable[..., None],
) -> None:
    force(abi=0)
    box = profile("modes")
    assert box.call_sync({"command": "echo hi"}).data["output"] == "hi\n"
    assert box.call_sync({"command": "git add -A"}).is_error


# 010: context


def test_req_bash_010_one_tool_serves_conversations_in_many_places(
    box: Toolbox, tmp_path: Path
) -> None:
    places = [tmp_path / name for name in "abc"]
    for place in places:
        place.mkdir()

    async def all_at_once() -> list[Answer]:
        calls = (box.call({"command": "pwd"}, limpet.ToolContext(place)) for place in places)
        return await asyncio.gather(*calls)

    outputs = [answer.data["output"] for answer in asyncio.run(all_at_once())]
    assert outputs == [f"{place}\n" for place in places]


def test_req_bash_010_nothing_of_a_conversation_is_kept(box: Toolbox, tmp_path: Path) -> None:
    before = dict(vars(box))
    box.call_sync({"command": "cd /; x=1"}, limpet.ToolContext(tmp_path, session_id="one"))
    assert dict(vars(box)) == before
    assert box.call_sync({"command": "pwd; echo $x"}).data["output"] == f"{Path.cwd()}\n\n"


def test_req_bash_010_cancel_ends_the_command(box: Toolbox, work: Path) -> None:
    async def cancelled() -> Answer:
        cancel = asyncio.Event()
        command = "echo $$ > pid; echo begun; sleep 60"
        call = asyncio.create_task(
            box.call({"command": command, "mode": "slow"}, limpet.ToolContext(work, cancel))
        )
        await asyncio.to_thread(wait_until, (work / "pid").exists)
        cancel.set()
        return await call

    answer = asyncio.run(cancelled())
    assert answer.is_error
    assert "cancelled" in answer.text
    assert not is_running(int((work / "pid").read_text()))


@pytest.mark.parametrize("mode", ["default", "background"])
def test_req_bash_010_a_cancelled_conversation_starts_nothing(
    box: Toolbox, work: Path, mode: str
) -> None:
    async def call() -> Answer:
        cancel = asyncio.Event()
        cancel.set()
        return await box.call(
            {"command": "touch ran", "mode": mode}, limpet.ToolContext(work, cancel)
        )

    answer = asyncio.run(call())
    assert answer.is_error
    assert not (work / "ran").exists()


# 011: display


def displayed(box: Toolbox, command: str, mode: str = "default") -> str:
    """Return how a command is displayed; HERE is the working directory, in both."""
    here = str(Path.cwd())
    made = command.replace("HERE", here)
    data = box.call_sync({"command": made, "mode": mode}, limpet.ToolContext(here)).data
    assert data["command"] == made
    return str(data["display"]).replace(here, "HERE")


def test_req_bash_011_a_command_is_displayed_beside_the_original(box: Toolbox) -> None:
    assert displayed(box, "make") == "make"
    assert displayed(box, "echo cd HERE && make") == "echo cd HERE && make"


@pytest.mark.parametrize("mode", ["default", "slow", "background"])
def test_req_bash_011_a_cd_to_where_it_is_is_stripped(box: Toolbox, mode: str) -> None:
    assert displayed(box, "cd HERE && true", mode) == "true"
    assert displayed(box, "cd HERE/ && true", mode) == "true"
    assert displayed(box, "cd 'HERE' && ls -l && true", mode) == "ls -l && true"


def test_req_bash_011_a_cd_to_elsewhere_is_displayed(box: Toolbox) -> None:
    for command in ("cd / && ls", "cd /; ls", "cd HERE/below && ls", "cd HERE-not && ls"):
        assert displayed(box, command) == command


def test_req_bash_011_a_cd_before_a_semicolon_is_stripped(box: Toolbox) -> None:
    assert displayed(box, "cd HERE; true") == "true"


def test_req_bash_011_nothing_before_an_or_is_stripped(box: Toolbox) -> None:
    for command in ("cd HERE || true", "true || cd HERE && ls", "false || true"):
        assert displayed(box, command) == command


def test_req_bash_011_with_a_fallback_only_the_matching_cd_is_stripped(box: Toolbox) -> None:
    assert displayed(box, "cd HERE && false || true") == "false || true"
    assert displayed(box, "cd HERE; false || true") == "false || true"
    assert displayed(box, "cd / && false || true") == "cd / && false || true"


def test_req_bash_011_a_refused_command_is_displayed_too(box: Toolbox, work: Path) -> None:
    command = f"cd {shlex.quote(str(work))} && git add -A"
    data = box.call_sync({"command": command}, limpet.ToolContext(work)).data
    assert (data["command"], data["display"]) == (command, "git add -A")
