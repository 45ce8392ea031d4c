from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limpet.profiles import NAMES, Answer, Toolbox, profile

BOXES = {name: profile(name) for name in NAMES}
TOOLS = [(name, tool.name) for name in NAMES for tool in BOXES[name].profile.tools]


def refused(box: Toolbox, given: Any, tool: str | None = None) -> str:  # noqa: ANN401 -- any input
    answer = box.call_sync(given, tool=tool)
    assert answer.is_error, answer
    assert answer.can_retry
    assert answer.data == {"error": "invalid_input", "message": answer.text, "retry": True}
    assert not Path("ran").exists()
    return answer.text


def test_an_unknown_field_is_named_and_the_fields_are_listed() -> None:
    for name, tool in TOOLS:
        said = refused(BOXES[name], {"command": "touch ran", "nonsense": 1}, tool)
        assert "there is no 'nonsense'" in said
        (definition,) = (one for one in BOXES[name].definitions() if one.name == tool)
        assert f"the fields are {', '.join(definition.input_schema['properties'])}" in said


def test_an_unknown_field_that_is_null_is_an_error_too() -> None:
    for name in NAMES:
        said = refused(BOXES[name], {"command": "touch ran", "nonsense": None})
        assert "there is no 'nonsense'" in said


@pytest.mark.parametrize("given", [{}, {"command": None}])
def test_the_command_is_required(given: dict[str, object]) -> None:
    for name in NAMES:
        assert refused(BOXES[name], given).startswith("command is required: text")


def test_the_command_is_text() -> None:
    cases: list[object] = [5, 1.5, True, ["touch ran"], {"a": 1}]
    for wrong in cases:
        for name in NAMES:
            said = refused(BOXES[name], {"command": wrong})
            assert said.startswith("command must be text")
            assert said.endswith(f"not {json.dumps(wrong)}")


def test_a_wrong_timeout_says_what_a_right_one_is() -> None:
    cases: list[object] = ["soon", [], {}, True, float("nan"), float("inf")]
    for wrong in cases:
        for name in NAMES:
            fields = BOXES[name].input_schema["properties"]
            (field,) = [one for one in fields if one.startswith("timeout")] or [None]
            if field is None:
                continue  # modes has none
            said = refused(BOXES[name], {"command": "touch ran", field: wrong})
            assert said.startswith(f"{field} must be a ")
            assert "number" in said


def test_a_wrong_value_names_the_field_and_what_is_allowed() -> None:
    cases: list[tuple[str, str, object, str]] = [
        ("report", "capture_output", "yes", "true or false"),
        ("report", "timeout", 1.5, "a whole number from 1 to 300"),
        ("report", "cwd", 5, "text"),
        ("report", "env", {"A": 1}, "an object, each value text"),
        ("report", "env", "A=b", "an object, each value text"),
        ("report", "env", ["A=b"], "an object, each value text"),
        ("tasks", "timeout", 600_001, "a number from 0 to 600,000"),
        ("tasks", "run_in_background", 1, "true or false"),
        ("tasks", "description", [], "text"),
        ("modes", "mode", "fast", 'one of "default", "slow", "background"'),
        ("modes", "mode", 5, 'one of "default", "slow", "background"'),
        ("tail", "timeout", 1.5, "a whole number"),
        ("streams", "clear_env", "no", "true or false"),
        ("streams", "max_output_size", 0, "a whole number from 1 to 104,857,600"),
        ("streams", "timeout", 0, "a number above 0, up to 86400"),
        ("default", "timeout_s", 0, "a number above 0, up to 3600"),
        ("default", "timeout_s", 3601, "a number above 0, up to 3600"),
        ("default", "background", "true", "true or false"),
    ]
    for name, field, wrong, right in cases:
        said = refused(BOXES[name], {"command": "touch ran", field: wrong})
        assert said.startswith(f"{field} must be {right}, not ")


def test_the_task_tools_say_what_is_wrong() -> None:
    cases: list[tuple[str, dict[str, object], str]] = [
        ("bash_output", {}, "task is required: text"),
        ("bash_output", {"task": "x", "cursor": -1}, "cursor must be a whole number, 0 or more"),
        ("bash_output", {"task": "x", "lines": "a:b"}, "lines must be a whole number or a range"),
        ("bash_output", {"task": "x", "lines": True}, "lines must be a whole number"),
        ("bash_wait", {"task": 5}, "task must be text or a list"),
        ("bash_wait", {"task": "x", "timeout_s": 601}, "timeout_s must be a number above 0"),
        ("bash_send", {"task": "x", "wait_s": 61}, "wait_s must be a number from 0 to 60"),
        ("bash_stop", {"task": ["x"]}, "task must be text"),
        ("bash_list", {"status": "dead"}, 'status must be one of "running", "exited"'),
    ]
    for tool, call, said in cases:
        assert refused(BOXES["default"], call, tool).startswith(said)


def test_several_errors_are_told_at_once() -> None:
    said = refused(BOXES["modes"], {"command": 5, "mode": "fast", "x": 1})
    for field in ("command", "mode", "'x'"):
        assert field in said


def test_what_is_no_json_is_an_answer() -> None:
    cases: list[str | bytes] = ["", "not json", "{", '{"command": "touch ran"', b"\xff\xfe\xff"]
    for text in cases:
        for name in NAMES:
            assert "not JSON" in refused(BOXES[name], text)


def test_what_is_no_object_is_an_answer() -> None:
    cases: list[str] = ["[]", "5", '"touch ran"', "null", "true"]
    for text in cases:
        for name in NAMES:
            said = refused(BOXES[name], text)
            assert said.startswith("the input must be an object with the fields command, ")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"command": ' * 100_000, '{"command": ' + "[" * 900 + "]" * 900 + "}"]
)
def test_input_nested_without_end_is_an_answer(text: str) -> None:
    for name in NAMES:
        refused(BOXES[name], text)


def test_a_number_without_end_is_an_answer() -> None:
    refused(BOXES["report"], '{"command": "touch ran", "timeout": ' + "9" * 10_000 + "}")
    refused(BOXES["report"], '{"command": "touch ran", "timeout": 1e999}')


def test_a_huge_value_is_not_repeated() -> None:
    said = refused(BOXES["modes"], {"command": "touch ran", "mode": "x" * 100_000})
    assert len(said) < 300


def test_text_that_is_no_unicode_is_an_answer_that_can_be_written() -> None:
    for name in NAMES:
        answer = BOXES[name].call_sync('{"command": "touch ran \\ud800"}')
        assert answer.is_error
        answer.text.encode()


def test_pairs_of_the_wrong_types_name_the_field() -> None:
    cases: list[list[object]] = [
        [{"name": ["x"], "value": "y"}],
        [{"name": {}, "value": "y"}],
        [{"name": None, "value": "y"}],
        [{"name": "A", "value": 5}],
        [{"name": "A"}],
        [{"name": "A", "value": "b", "more": 1}],
        ["A", "b"],
        [[]],
    ]
    others: list[tuple[str, str]] = [("report", "env"), ("streams", "env_vars")]
    for pairs in cases:
        for name, field in others:
            assert refused(BOXES[name], {"command": "touch ran", field: pairs}).startswith(
                f"{field} must"
            )


def test_variables_that_no_environment_can_hold_are_an_answer() -> None:
    cases: list[dict[str, str]] = [{"A=B": "x"}, {"": "x"}, {"A": "x\0"}, {"A\0": "x"}]
    others: list[bool] = [False, True]
    for env in cases:
        for background in others:
            refused(
                BOXES["tasks"],
                {"command": "touch ran", "env": env, "run_in_background": background},
            )


def test_variables_may_be_pairs() -> None:
    pairs = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    answer = BOXES["tasks"].call_sync({"command": "echo $A$B", "env": pairs})
    assert answer.data["stdout"] == "12\n"
    assert BOXES["tasks"].call_sync({"command": "echo hi", "env": []}).data["stdout"] == "hi\n"


def test_null_is_not_given() -> None:
    for name in NAMES:
        fields = BOXES[name].input_schema["properties"]
        answer = BOXES[name].call_sync({**dict.fromkeys(fields), "command": "echo hi"})
        assert not answer.is_error, answer
        assert "hi" in answer.text


def test_input_may_be_an_object_text_or_bytes() -> None:
    for name in NAMES:
        for form in ({"command": "echo hi"}, '{"command": "echo hi"}', b'{"command": "echo hi"}'):
            assert "hi" in BOXES[name].call_sync(form).text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(TOOLS), st.data())
def test_whatever_is_given_there_is_an_answer(where: tuple[str, str], data: st.DataObject) -> None:
    """Nothing runs: an unknown field is always there."""
    name, tool = where
    (definition,) = (one for one in BOXES[name].definitions() if one.name == tool)
    fields = st.sampled_from(list(definition.input_schema["properties"]))
    given = data.draw(st.dictionaries(fields, JSON)) | {"nonsense": 1}
    answer = BOXES[name].call_sync(given, tool=tool)
    assert isinstance(answer, Answer)
    assert answer.is_error
    json.dumps(answer.to_dict())
