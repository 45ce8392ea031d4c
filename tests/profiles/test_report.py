from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import PATIENCE_S, python, wait_until

import limpet
from limpet.profiles import Answer, Toolbox, profile
from limpet.profiles.report import (
    LOCAL_MAX_OUTPUT,
    MAX_OUTPUT,
    TRUNCATED,
    BashData,
    format_report,
    parse_report,
)


@pytest.fixture
def box() -> Toolbox:
    return profile("report")


def read_back(answer: Answer) -> dict[str, object]:
    """Return what a report says, by name."""
    data = parse_report(answer.text, answer.data["timeout"])
    return {name: getattr(data, name) for name in BashData.__dataclass_fields__}


# The report


def test_the_report_is_as_it_should_be(box: Toolbox, work: Path) -> None:
    (work / "there").touch()
    answer = box.call_sync({"command": "ls there"})
    assert answer.text == (
        f"Command: ls there\nExit Code: 0\nWorking Directory: {work}\n\n"
        "STDOUT:\nthere\n\nSTDERR:\n(no errors)"
    )
    assert answer.data == {
        "command": "ls there",
        "exit_code": 0,
        "working_dir": str(work),
        "stdout": "there",
        "stderr": "",
        "is_truncated": False,
        "timeout": 30,
    }
    assert not answer.is_error


def test_no_output_has_a_placeholder(box: Toolbox) -> None:
    assert box.call_sync({"command": "true"}).text.endswith(
        "STDOUT:\n(no output)\n\nSTDERR:\n(no errors)"
    )


def test_both_streams_are_stripped_and_apart(box: Toolbox, work: Path) -> None:
    (work / "both.sh").write_text("printf '\\n  out \\n\\n'\nprintf '\\n err\\n ' >&2\n")
    answer = box.call_sync({"command": "bash both.sh"})
    assert (answer.data["stdout"], answer.data["stderr"]) == ("out", "err")
    assert read_back(answer) == answer.data


def test_malformed_text_is_replaced(box: Toolbox) -> None:
    assert box.call_sync({"command": r"printf 'a\377b'"}).data["stdout"] == "a�b"


def test_a_non_zero_exit_is_an_answer(box: Toolbox, work: Path) -> None:
    (work / "three.sh").write_text("exit 3")
    answer = box.call_sync({"command": "bash three.sh"})
    assert not answer.is_error
    assert answer.data["exit_code"] == 3
    assert "\nExit Code: 3\n" in f"\n{answer.text}"
    assert read_back(answer) == answer.data


def test_a_signal_is_a_negative_code_and_reads_back(box: Toolbox, work: Path) -> None:
    (work / "die.sh").write_text("kill -9 $PPID\n")
    answer = box.call_sync({"command": "true | bash die.sh"})
    assert answer.data["exit_code"] == -9
    assert read_back(answer) == answer.data


def test_nothing_is_captured_if_it_is_not_wanted(box: Toolbox) -> None:
    answer = box.call_sync({"command": "echo hi", "capture_output": False})
    assert answer.data["stdout"] == ""
    assert "(no output)" in answer.text


def test_output_that_is_not_captured_is_not_truncated(box: Toolbox) -> None:
    answer = box.call_sync({"command": "seq 1 20000", "capture_output": False})
    assert answer.data["is_truncated"] is False
    assert read_back(answer) == answer.data


def test_several_lines_of_command_read_back(box: Toolbox) -> None:
    command = "echo one\necho two\n\necho 'Exit Code: 7\nWorking Directory: /x\n\nSTDOUT:'"
    answer = box.call_sync({"command": command})
    assert answer.data["command"] == command
    assert read_back(answer) == answer.data


def test_output_with_the_reports_own_headings_reads_back(box: Toolbox, work: Path) -> None:
    text = format_report(
        BashData("ls", 1, "/x", "a\n\nSTDERR:\nb", "STDOUT:\n\nSTDERR:", False, 30)
    )
    (work / "old").write_text(text)
    answer = box.call_sync({"command": "cat old"})
    assert answer.data["stdout"] == text
    assert read_back(answer) == answer.data


# Its input


def test_variables_are_added_to_the_inherited_ones(
    box: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INHERITED", "one")
    monkeypatch.setenv("CHANGED", "old")
    call = {"command": "echo $INHERITED $CHANGED $ADDED", "env": {"CHANGED": "new", "ADDED": "x"}}
    assert box.call_sync(call).data["stdout"] == "one new x"


def test_the_working_directory_can_be_another(box: Toolbox, work: Path, tmp_path: Path) -> None:
    (work / "below").mkdir()
    for where in ("below", str(work / "below")):
        answer = box.call_sync({"command": "pwd", "cwd": where})
        assert answer.data["stdout"] == answer.data["working_dir"] == str(work / "below")


@pytest.mark.parametrize("missing", ["nowhere", "/nowhere/at/all"])
def test_a_missing_directory_asks_for_another(box: Toolbox, missing: str) -> None:
    answer = box.call_sync({"command": "touch ran", "cwd": missing})
    assert answer.is_error
    assert answer.can_retry
    assert "does not exist" in answer.text


def test_a_file_is_no_directory(box: Toolbox, work: Path) -> None:
    (work / "file").touch()
    answer = box.call_sync({"command": "ls", "cwd": "file"})
    assert (answer.is_error, answer.can_retry) == (True, True)
    assert "not a directory" in answer.text


def test_an_empty_command_is_an_error(box: Toolbox) -> None:
    cases: list[str] = ["", " ", "\n\t"]
    for command in cases:
        answer = box.call_sync({"command": command})
        assert (answer.is_error, answer.can_retry) == (True, True)
        assert "empty" in answer.text


def test_a_timeout_out_of_range_names_the_range(box: Toolbox) -> None:
    cases: list[int] = [0, -1, 301, 100_000]
    for timeout in cases:
        answer = box.call_sync({"command": "touch ran", "timeout": timeout})
        assert (answer.is_error, answer.can_retry) == (True, True)
        assert answer.text == f"timeout must be a whole number from 1 to 300, not {timeout}"
        assert not Path("ran").exists()


def test_a_timeout_in_range_is_reported(box: Toolbox) -> None:
    cases: list[float] = [1, 300, 30.0]
    for timeout in cases:
        assert box.call_sync({"command": "true", "timeout": timeout}).data["timeout"] == timeout


def test_a_time_out_is_an_error_that_asks_to_retry(box: Toolbox) -> None:
    slow = python("print(7, flush=True) or __import__('time').sleep(60)")
    answer = box.call_sync({"command": slow, "timeout": 1})
    assert (answer.is_error, answer.can_retry) == (True, True)
    assert "timed out after 1 second" in answer.text
    assert "etry" in answer.text
    assert answer.data["stdout"] == "7"
    assert answer.data["timeout"] == 1
    assert read_back(answer) == answer.data


def test_a_cancelled_call_is_an_error(box: Toolbox) -> None:
    async def cancelled() -> Answer:
        cancel = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, cancel.set)
        return await box.call({"command": "sleep 60"}, limpet.ToolContext(cancel=cancel))

    answer = asyncio.run(cancelled())
    assert answer.is_error
    assert "cancelled" in answer.text


def test_a_shell_that_is_not_there_is_an_error() -> None:
    box = profile("report", limpet.Policy(shell="/nowhere/bash"))
    answer = box.call_sync({"command": "true"})
    assert answer.is_error
    assert "/nowhere/bash" in answer.text


# Its rules


REFUSED = [
    "rm -rf build",
    "rm -r build",
    "rm /tmp/x",
    "dd if=a of=b",
    "mkfs.ext4 disk",
    "echo fdisk",
    "rm  -rf  /",
    "sudo  rm x",
    "echo x >/dev/sda",
    "echo x > /dev/sdb",
    "dd bs=1 of=/dev/null",
    ":(){ :|:& };:",
    "ls; rm x",
    "ls && rm x",
    "echo $(rm x)",
    "echo `rm x`",
    "ls; ls",
    "ls && ls",
    "sleep 1 &",
    "ls 2>&1",
    "echo `pwd`",
    "echo $(pwd)",
    "echo $1",
    "echo $",
    "echo ${HOME:-x}",
    "echo {a,b}",
    "awk '{print}' x",
]


def test_it_is_refused_and_asks_for_another(box: Toolbox, work: Path) -> None:
    ctx = limpet.ToolContext(restricted=True)  # where it could do no harm
    for command in REFUSED:
        answer = box.call_sync({"command": command}, ctx)
        assert (answer.is_error, answer.can_retry) == (True, True), command
        assert "refused" in answer.text
        assert "etry" in answer.text
    assert not list(work.iterdir())


def test_a_refusal_names_the_pattern(box: Toolbox) -> None:
    assert "`rm -r`" in box.call_sync({"command": "echo rm -r"}).text
    assert "`;`" in box.call_sync({"command": "echo a; echo b"}).text


def test_plain_commands_run(box: Toolbox) -> None:
    cases: list[str] = [
        "echo $HOME ${HOME}",
        "ls | wc -l",
        "echo hi > file",
        "echo 'a|b' < /dev/null",
    ]
    for command in cases:
        assert box.call_sync({"command": command}).data["exit_code"] == 0


# Advice


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("no-such-program-here", "not found|not installed"),
        ("cat no-such-file", "does not exist"),
        ("cat /etc/", "not of the kind"),
    ],
)
def test_a_common_error_has_advice_before_the_report(box: Toolbox, command: str, said: str) -> None:
    answer = box.call_sync({"command": command})
    advice, _, rest = answer.text.partition("\n\n")
    assert advice.startswith(f"Exit code {answer.data['exit_code']}: ")
    assert any(word in advice for word in said.split("|"))
    assert rest.startswith(f"Command: {command}\n")
    assert read_back(answer) == answer.data


def test_success_has_no_advice_whatever_it_prints(box: Toolbox, work: Path) -> None:
    (work / "loud.sh").write_text("echo 'x: command not found' >&2")
    assert box.call_sync({"command": "bash loud.sh"}).text.startswith("Command: ")


# Cutting


def printing(count: int) -> str:
    return python(f"print('x' * {count})")


def test_a_report_of_the_longest_size_is_whole(box: Toolbox) -> None:
    around = len(box.call_sync({"command": printing(1000)}).text) - 1000
    whole = box.call_sync({"command": printing(MAX_OUTPUT - around)})
    assert len(whole.text) == MAX_OUTPUT == 5000
    assert whole.data["is_truncated"] is False
    assert read_back(whole) == whole.data
    longer = box.call_sync({"command": printing(MAX_OUTPUT - around + 1)})
    assert longer.data["is_truncated"] is True
    full = format_report(BashData(**{**longer.data, "is_truncated": False}))
    assert longer.text == full[:2500] + TRUNCATED + full[-1000:]
    assert TRUNCATED == "\n...\n[truncated]\n...\n"


def test_local_mode_is_shorter() -> None:
    box = profile("report", local_mode=True)
    around = len(box.call_sync({"command": printing(1000)}).text) - 1000
    whole = box.call_sync({"command": printing(LOCAL_MAX_OUTPUT - around)})
    assert (len(whole.text), whole.data["is_truncated"]) == (1500, False)
    longer = box.call_sync({"command": printing(LOCAL_MAX_OUTPUT - around + 1)})
    assert (len(longer.text), longer.data["is_truncated"]) == (1500, True)
    assert TRUNCATED in longer.text
    assert parse_report(longer.text).is_truncated


@pytest.mark.parametrize("local_mode", [False, True])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_cut_report_reads_back_with_its_facts(local_mode: bool, stream: str, work: Path) -> None:
    box = profile("report", local_mode=local_mode)
    (work / "long.py").write_text(
        f"import sys\nsys.{stream}.write('é<' + 'x' * 50_000 + '>')\nsys.exit(4)\n"
    )
    answer = box.call_sync({"command": f"{sys.executable} long.py"})
    data = parse_report(answer.text)
    assert (data.exit_code, data.is_truncated) == (4, True)
    assert (data.command, data.working_dir) == (answer.data["command"], str(work))
    shown = getattr(data, stream)
    assert shown.startswith("é<xx")
    assert shown.endswith("xx>") or stream == "stdout"
    assert len(answer.text) <= (LOCAL_MAX_OUTPUT if local_mode else MAX_OUTPUT)


@pytest.mark.parametrize("local_mode", [False, True])
def test_a_long_command_keeps_the_facts_in_sight(local_mode: bool) -> None:
    box = profile("report", local_mode=local_mode)
    answer = box.call_sync({"command": f"echo {'y' * 9000}"})
    data = parse_report(answer.text)
    assert (data.exit_code, data.is_truncated) == (0, True)
    assert data.command.startswith("echo yyy")
    assert answer.data["command"] == f"echo {'y' * 9000}"
    assert len(answer.text) <= (LOCAL_MAX_OUTPUT if local_mode else MAX_OUTPUT)


@pytest.mark.parametrize(("local_mode", "levels"), [(True, 6), (False, 14)])
def test_a_cut_report_with_a_deep_working_directory_can_be_read_back(
    local_mode: bool, levels: int, work: Path
) -> None:
    deep = work.joinpath(*["d" * 200] * levels)
    deep.mkdir(parents=True)
    answer = profile("report", local_mode=local_mode).call_sync(
        {"command": "seq 1 2000", "cwd": str(deep)}
    )
    data = parse_report(answer.text)
    assert (data.exit_code, data.is_truncated) == (0, True)
    assert len(answer.text) <= (LOCAL_MAX_OUTPUT if local_mode else MAX_OUTPUT)


@pytest.mark.parametrize("local_mode", [False, True])
def test_a_cut_report_with_long_advice_can_be_read_back(local_mode: bool) -> None:
    answer = profile("report", local_mode=local_mode).call_sync({"command": "x" * 3000})
    data = parse_report(answer.text)
    assert (data.exit_code, data.is_truncated) == (127, True)
    assert len(answer.text) <= (LOCAL_MAX_OUTPUT if local_mode else MAX_OUTPUT)


@pytest.mark.parametrize("window", [100, 10_000])
def test_whatever_cut_the_output_the_report_says_so(window: int, work: Path) -> None:
    """Also if the host keeps less than the report could show, or the rest was blank."""
    output = limpet.OutputPolicy(head_bytes=window, tail_bytes=window)
    (work / "blank").write_text("\n" * 40_000)
    for command in ("cat blank", "seq 1 10000"):
        answer = profile("report", limpet.Policy(output=output)).call_sync({"command": command})
        assert read_back(answer)["is_truncated"] is answer.data["is_truncated"], answer.text


def test_a_cut_report_of_old_reports_can_be_read_back(box: Toolbox, work: Path) -> None:
    one = format_report(BashData("ls", 1, "/x", "a\n\nSTDERR:\nb", "STDOUT:\n\nSTDERR:", False, 30))
    (work / "old").write_text(f"{one}\n\n" * 100)
    answer = box.call_sync({"command": "cat old"})
    data = parse_report(answer.text)
    assert (data.command, data.exit_code, data.is_truncated) == ("cat old", 0, True)


# Reading back

PIECES = st.sampled_from(
    [
        "\n",
        "\n\n",
        "\\",
        "Command: ",
        "Exit Code: 0",
        "Exit Code: -9",
        "\nExit Code: 1\n",
        "Working Directory: /x",
        "STDOUT:",
        "STDERR:",
        "\n\nSTDERR:\n",
        "\n\nSTDOUT:\n",
        "\\STDERR:",
        "\\\\STDERR:",
        "\\Exit Code: 1",
        "(no output)",
        "(no errors)",
        "\\(no output)",
        TRUNCATED,
        "\r",
        "\x0c",
        "\u2028",
        "\x85",
        "٣",
        "Exit Code: ٣",
        " ",
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=5), max_size=6).map("".join)
REPORTS = st.builds(
    BashData,
    command=TEXTS,
    exit_code=st.integers(-64, 255),
    working_dir=TEXTS,
    stdout=TEXTS,
    stderr=TEXTS,
    is_truncated=st.just(False),
    timeout=st.integers(1, 300),
)


@given(REPORTS)
@example(BashData(f"echo {TRUNCATED}", 0, "/", TRUNCATED, TRUNCATED, False, 30))
@example(BashData("Exit Code: 0", -1, "\n\nSTDOUT:\n", "STDERR:", "(no errors)", False, 30))
def test_a_report_reads_back_as_it_was(data: BashData) -> None:
    assert parse_report(format_report(data), data.timeout) == data


@pytest.mark.parametrize("size", [2519, 3519, 5000])
def test_the_marker_in_the_output_is_no_cut(size: int) -> None:
    """Even where a cut report would have it."""
    data = BashData("cat it", 0, "/", "", "", False, 30)
    start = format_report(data).index("(no output)")
    stdout = "x" * (2500 - start) + TRUNCATED
    rest = len(format_report(BashData("cat it", 0, "/", stdout, "", False, 30)))
    data = BashData("cat it", 0, "/", stdout + "y" * max(0, size - rest), "", False, 30)
    assert parse_report(format_report(data)) == data


def test_what_is_no_report_is_an_error() -> None:
    cases: list[str] = ["", "hello", "Command: x", "Command: x\nExit Code: y", "\n\n"]
    for text in cases:
        with pytest.raises(ValueError, match="not a report"):
            parse_report(text)


@given(data=REPORTS, local=st.booleans(), which=st.sampled_from(["command", "stdout", "stderr"]))
def test_a_cut_report_never_fails_to_be_read(data: BashData, local: bool, which: str) -> None:
    from limpet.profiles.report import _cut

    long = BashData(**{**data.__dict__, which: (getattr(data, which) + "long\n") * 2000})
    text, is_cut = _cut(long, None, LOCAL_MAX_OUTPUT if local else MAX_OUTPUT)
    assert is_cut
    assert len(text) <= (LOCAL_MAX_OUTPUT if local else MAX_OUTPUT)
    found = parse_report(text)
    assert found.is_truncated
    assert found.exit_code == data.exit_code


def test_cancelling_leaves_nothing_running(box: Toolbox, work: Path) -> None:
    (work / "wait.sh").write_text("echo $$ > pid\nsleep 60\n")

    async def cancelled() -> None:
        task = asyncio.create_task(box.call({"command": "bash wait.sh"}))
        await asyncio.to_thread(wait_until, (work / "pid").exists, PATIENCE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
