from __future__ import annotations

import json
import math
import threading
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any

import pytest

import limpet
from limpet import (
    CommandFailed,
    CommandRefused,
    EnvironmentPolicy,
    LimpetError,
    Outcome,
    OutputPolicy,
    Policy,
    Result,
    SpawnFailed,
    ToolContext,
)
from limpet.policy import check_timeout
from limpet.result import Survivor, Usage

# Policies


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (Policy, "timeout_s", 0),
        (Policy, "timeout_s", -1),
        (Policy, "timeout_s", math.inf),
        (Policy, "timeout_s", math.nan),
        (Policy, "timeout_s", True),
        (Policy, "timeout_s", None),
        (Policy, "timeout_s", "5"),
        (Policy, "kill_grace_s", -0.1),
        (Policy, "kill_grace_s", math.inf),
        (Policy, "kill_grace_s", math.nan),
        (Policy, "kill_grace_s", "1"),
        (Policy, "survivors", "leave"),
        (Policy, "survivors", None),
        (Policy, "max_concurrent", 0),
        (Policy, "max_concurrent", -1),
        (Policy, "max_concurrent", "4"),
        (EnvironmentPolicy, "inherit", "some"),
        (EnvironmentPolicy, "inherit", None),
        (EnvironmentPolicy, "exclude", "AWS_*"),
        (OutputPolicy, "streams", "both"),
        (OutputPolicy, "streams", None),
        (OutputPolicy, "head_bytes", -1),
        (OutputPolicy, "head_bytes", 1.5),
        (OutputPolicy, "head_bytes", "10"),
        (OutputPolicy, "tail_bytes", -1),
        (OutputPolicy, "tail_bytes", 1.5),
        (OutputPolicy, "spill_bytes", 0),
        (OutputPolicy, "spill_bytes", -1),
        (OutputPolicy, "spill_bytes", "1G"),
        (OutputPolicy, "spill_directory_bytes", 0),
        (OutputPolicy, "spill_directory_bytes", -1),
        (OutputPolicy, "spill_days", 0),
        (OutputPolicy, "spill_days", -0.5),
        (OutputPolicy, "spill_days", math.nan),
    ],
)
def test_an_invalid_value_is_refused_by_the_name_of_its_field(
    kind: type[Any], field: str, value: object
) -> None:
    with pytest.raises((TypeError, ValueError), match=field):
        kind(**{field: value})


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Policy, {"timeout_s": 1}),
        (Policy, {"timeout_s": 0.001}),
        (Policy, {"kill_grace_s": 0}),
        (Policy, {"survivors": "wait"}),
        (Policy, {"survivors": "kill"}),
        (Policy, {"max_concurrent": 1}),
        (EnvironmentPolicy, {"inherit": "none"}),
        (EnvironmentPolicy, {"exclude": ("AWS_*",)}),
        (OutputPolicy, {"head_bytes": 0, "tail_bytes": 0}),
        (OutputPolicy, {"spill_bytes": 1, "spill_directory_bytes": 1, "spill_days": 0.001}),
        (OutputPolicy, {"streams": "separate"}),
    ],
)
def test_the_values_at_the_edge_are_taken(kind: type[Any], values: dict[str, object]) -> None:
    policy = kind(**values)
    assert {name: getattr(policy, name) for name in values} == values


@pytest.mark.parametrize("kind", [Policy, EnvironmentPolicy, OutputPolicy])
def test_a_policy_cannot_be_changed(kind: type[Any]) -> None:
    policy = kind()
    for field in fields(policy):
        with pytest.raises(FrozenInstanceError):
            setattr(policy, field.name, None)


def test_the_variables_of_the_default_policy_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        EnvironmentPolicy().set["A"] = "b"  # type: ignore[index]


def test_a_tool_takes_a_policy_or_its_fields() -> None:
    policy = Policy(timeout_s=5)
    assert limpet.Bash(policy).policy is policy
    assert limpet.Bash(timeout_s=5).policy == policy
    assert limpet.Bash().policy == Policy()
    with pytest.raises(TypeError, match="not both"):
        limpet.Bash(policy, timeout_s=5)
    with pytest.raises(TypeError, match="no_such_field"):
        limpet.Bash(no_such_field=5)
    with pytest.raises(ValueError, match="timeout_s"):
        limpet.Bash(timeout_s=0)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": "5"}, "timeout_s"),
        ({"stdin": ["x"]}, "stdin"),
        ({"env": {"A": 5}}, "'A'=5"),
        ({"no_such_argument": 5}, "no_such_argument"),
    ],
)
def test_an_invalid_argument_is_refused_by_its_name(
    bash: limpet.Bash, call: dict[str, Any], named: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=named):
        bash.run_sync("true", **call)


def test_a_time_limit_is_given_back_as_a_float() -> None:
    limit = check_timeout(5)
    assert (limit, type(limit)) == (5.0, float)


# Results

ALL_OUTCOMES = [
    # outcome, exit code, ok, is_error, what check raises
    (Outcome.EXITED, 0, True, False, None),
    (Outcome.EXITED, 1, False, False, CommandFailed),
    (Outcome.EXITED, None, False, False, CommandFailed),
    (Outcome.SIGNALED, 139, False, True, CommandFailed),
    (Outcome.TIMED_OUT, 143, False, True, CommandFailed),
    (Outcome.TIMED_OUT, 0, False, True, CommandFailed),
    (Outcome.CANCELLED, None, False, True, CommandFailed),
    (Outcome.BACKGROUNDED, None, False, False, None),
    (Outcome.REFUSED, None, False, True, CommandRefused),
    (Outcome.FAILED_TO_START, None, False, True, SpawnFailed),
    (Outcome.OUTPUT_CAPPED, None, False, True, CommandFailed),
]


def test_every_outcome_is_in_the_table() -> None:
    assert {row[0] for row in ALL_OUTCOMES} == set(Outcome)


@pytest.mark.parametrize(("outcome", "exit_code", "ok", "is_error", "error"), ALL_OUTCOMES)
def test_each_outcome_is_ok_an_error_or_an_answer(
    outcome: Outcome, exit_code: int | None, ok: bool, is_error: bool, error: type[LimpetError]
) -> None:
    result = Result(command="a", outcome=outcome, exit_code=exit_code, hint="do this")
    assert (result.ok, result.is_error) == (ok, is_error)
    if error is None:
        assert result.check() is result
    else:
        with pytest.raises(LimpetError) as caught:
            result.check()
        assert type(caught.value) is error
        assert getattr(caught.value, "result", None) is result
        assert str(caught.value) == result.describe()
        assert "do this" in str(caught.value)


@pytest.mark.parametrize(
    ("error", "builtin"), [(CommandRefused, PermissionError), (SpawnFailed, OSError)]
)
def test_errors_are_of_the_builtin_kind_that_callers_catch(
    error: type[Exception], builtin: type[Exception]
) -> None:
    assert issubclass(error, builtin)
    assert issubclass(error, LimpetError)
    assert not issubclass(CommandFailed, OSError)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (Result(command="a", outcome=Outcome.EXITED, exit_code=3), "exit code 3"),
        (
            Result(command="a", outcome=Outcome.EXITED, exit_code=1, hint="no match"),
            "exit code 1: no match",
        ),
        (Result(command="a", outcome=Outcome.SIGNALED, signal="SIGSEGV"), "killed by SIGSEGV"),
        (Result(command="a", outcome=Outcome.TIMED_OUT, hint="at 5 s"), "timed out: at 5 s"),
        (Result(command="a", outcome=Outcome.FAILED_TO_START), "failed to start"),
    ],
)
def test_a_result_says_in_one_line_how_it_ended(result: Result, expected: str) -> None:
    assert result.describe() == expected


def test_a_result_becomes_json_with_its_fields_in_the_order_of_their_declaration() -> None:
    result = Result(
        command="a",
        outcome=Outcome.TIMED_OUT,
        survivors=(Survivor(7, "server", "left"), Survivor(8, "other", "killed")),
        usage=Usage(1.5, 0.25, None),
    )
    plain = result.to_dict()
    assert list(plain) == [field.name for field in fields(Result)]
    assert list(plain)[:4] == ["command", "outcome", "display", "description"]
    read = json.loads(json.dumps(plain))
    assert read == plain
    assert type(plain["outcome"]) is str
    assert read["outcome"] == "timed_out"
    assert read["survivors"] == [
        {"pid": 7, "command": "server", "fate": "left"},
        {"pid": 8, "command": "other", "fate": "killed"},
    ]
    assert read["usage"] == {"wall_s": 1.5, "cpu_s": 0.25, "peak_memory_bytes": None}


@pytest.mark.parametrize("command", ["echo a; exit 3", "kill -SEGV $$", "", "printf '\\377\\0'"])
def test_a_real_result_becomes_json(bash: limpet.Bash, command: str) -> None:
    result = bash.run_sync(command)
    read = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert (read["command"], read["outcome"]) == (command, result.outcome.value)
    assert read["output"] == result.output


def test_a_result_cannot_be_changed() -> None:
    result = Result(command="a", outcome=Outcome.EXITED)
    with pytest.raises(FrozenInstanceError):
        result.exit_code = 0  # type: ignore[misc]


# Conversations


def test_a_conversation_begins_in_its_working_directory() -> None:
    assert ToolContext().cwd is None
    assert ToolContext("/a").cwd == "/a"
    assert ToolContext(Path("/a")).cwd == "/a"


def test_a_conversation_goes_where_a_call_ended() -> None:
    ctx = ToolContext(Path("/a"))
    ctx.move("/a", "/a/b")
    ctx.move("/a/b", "/c")
    assert ctx.cwd == "/c"
    assert ctx.working_dir == Path("/a")


def test_of_two_calls_at_once_the_first_to_end_moves_the_conversation() -> None:
    ctx = ToolContext("/a")
    start = ctx.cwd
    ctx.move(start, "/first")
    ctx.move(start, "/second")
    assert ctx.cwd == "/first"


@pytest.mark.parametrize("working_dir", [None, "/a"])
def test_to_move_nowhere_leads_back_to_the_working_directory(working_dir: str | None) -> None:
    ctx = ToolContext(working_dir)
    ctx.move(working_dir, "/gone")
    ctx.move("/gone", None)
    assert ctx.cwd == working_dir


def test_conversations_do_not_move_each_other() -> None:
    one, other = ToolContext("/a"), ToolContext("/a")
    one.move("/a", "/b")
    assert other.cwd == "/a"


def test_a_conversation_made_from_another_goes_its_own_way() -> None:
    one = ToolContext("/a", session_id="one")
    other = replace(one, session_id="other")
    other.move("/a", "/b")
    assert one.cwd == "/a"


def test_where_a_conversation_is_does_not_change_what_it_is() -> None:
    cancel = threading.Event()
    one = ToolContext("/a", cancel, "id")
    other = ToolContext("/a", cancel, "id")
    one.move("/a", "/b")
    assert one == other
    assert "/b" not in repr(one)
    with pytest.raises(FrozenInstanceError):
        one.working_dir = "/c"  # type: ignore[misc]
