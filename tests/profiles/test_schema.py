from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

import limpet
from limpet.cli import main
from limpet.profiles import NAMES, profile
from limpet.profiles.schema import FORMATS, Format, definition, strict

BOXES = {name: profile(name) for name in NAMES}
TOOLS = [tool for name in NAMES for tool in BOXES[name].definitions()]
TYPES = {"string", "number", "integer", "boolean", "array", "object", "null"}
KEYWORDS = set(
    "type properties required additionalProperties items enum const anyOf description default"
    " minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength pattern minItems"
    " maxItems $defs $ref title".split()
)


def parts(schema: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 -- JSON
    """Yield a schema and all within it."""
    if not isinstance(schema, dict):
        return
    yield schema
    for name in ("properties", "$defs"):
        for inner in schema.get(name, {}).values():
            yield from parts(inner)
    for name in ("items", "additionalProperties"):
        yield from parts(schema.get(name))
    for inner in schema.get("anyOf", []):
        yield from parts(inner)


def check(schema: dict[str, Any]) -> None:
    """Check a schema against the rules of JSON Schema, draft 2020-12, for what is used here."""
    for part in parts(schema):
        assert part.keys() <= KEYWORDS, part.keys() - KEYWORDS
        kinds = part.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        assert set(kinds) <= TYPES
        assert len(kinds) == len(set(kinds))
        if "required" in part:
            assert len(part["required"]) == len(set(part["required"]))
            assert set(part["required"]) <= part["properties"].keys()
        for name in ("anyOf", "enum"):
            assert part.get(name, [0])
        for name in ("minimum", "maximum", "exclusiveMinimum"):
            assert isinstance(part.get(name, 0), int | float)
        for name in ("minLength", "minItems"):
            assert isinstance(part.get(name, 0), int)
            assert part.get(name, 0) >= 0
        assert isinstance(part.get("description", ""), str)
        if "$ref" in part:
            assert part["$ref"].removeprefix("#/$defs/") in schema["$defs"]
        re.compile(part.get("pattern", ""))


def fits(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:  # noqa: ANN401 -- JSON
    """Say whether a value is one that a schema allows."""
    if "$ref" in schema:
        return fits(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root)
    if "anyOf" in schema:
        return any(fits(value, one, root) for one in schema["anyOf"])
    kinds = schema.get("type", sorted(TYPES))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(is_of(value, kind) for kind in kinds):
        return False
    if isinstance(value, list):
        return all(fits(one, schema.get("items", {}), root) for one in value)
    if isinstance(value, dict) and "properties" in schema:
        known = schema["properties"]
        return set(schema.get("required", [])) <= value.keys() and all(
            name in known and fits(one, known[name], root) for name, one in value.items()
        )
    return "enum" not in schema or value in schema["enum"]


def is_of(value: object, kind: str) -> bool:
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "array": list, "object": dict}[kind])


def test_the_input_is_a_valid_schema_of_a_closed_object() -> None:
    for tool in TOOLS:
        schema = tool.input_schema
        check(schema)
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        json.dumps(schema)
        for part in schema["properties"].values():
            assert part["description"]
            assert "title" not in part
            assert "default" not in part or fits(part["default"], part, schema)


def test_the_strict_form_keeps_its_rules() -> None:
    for tool in TOOLS:
        made = definition(tool, "openai")
        assert made["type"] == "function"
        assert made["strict"] is True
        schema = made["parameters"]
        check(schema)
        assert schema["type"] == "object"
        for part in parts(schema):
            assert not part.keys() & {"default", "minLength", "maxLength", "title", "const"}
            kinds = part.get("type", [])
            if kinds == "object" or "object" in kinds:
                assert part["additionalProperties"] is False
                assert part["required"] == list(part["properties"])
            assert "type" in part or "anyOf" in part or "$ref" in part
            if "enum" in part:
                assert (None in part["enum"]) is ("null" in kinds)
        optional = schema["properties"].keys() - set(tool.input_schema.get("required", []))
        for field in optional:
            assert fits(None, schema["properties"][field], schema), field
        for field in tool.input_schema.get("required", []):
            assert not fits(None, schema["properties"][field], schema), field


def test_the_strict_form_still_tells_the_defaults() -> None:
    for tool in TOOLS:
        made = strict(tool.input_schema)["properties"]
        for field, part in tool.input_schema["properties"].items():
            if "default" in part:
                assert json.dumps(part["default"]) in made[field]["description"]


def test_the_strict_form_leaves_the_schema_as_it_is() -> None:
    for tool in TOOLS:
        before = json.dumps(tool.input_schema)
        strict(tool.input_schema)
        assert json.dumps(tool.input_schema) == before


@pytest.mark.parametrize("name", NAMES)
def test_a_call_in_the_strict_form_works(name: str) -> None:
    """Every field is given: null, but for the command and the variables, which are pairs."""
    box = BOXES[name]
    schema = strict(box.definitions()[0].input_schema)
    given: dict[str, Any] = dict.fromkeys(schema["properties"])
    given["command"] = "echo hi $A"
    variables = [one for one in ("env", "env_vars") if one in given]
    for one in variables:
        given[one] = [{"name": "A", "value": "there"}]
    assert fits(given, schema, schema)
    answer = box.call_sync(json.dumps(given))
    assert not answer.is_error
    assert ("hi there" if variables else "hi") in answer.text


def test_a_call_of_a_task_tool_in_the_strict_form_works() -> None:
    box = BOXES["default"]
    task = box.call_sync({"command": "cat", "background": True}).data["task_id"]
    for tool in box.definitions()[1:]:
        schema = strict(tool.input_schema)
        given: dict[str, Any] = dict.fromkeys(schema["properties"])
        wanted = {"task": task, "timeout_s": 0.05, "wait_s": 0.05}
        given |= {field: value for field, value in wanted.items() if field in given}
        assert fits(given, schema, schema)
        answer = box.call_sync(given, tool=tool.name)
        assert not answer.is_error, answer


def test_the_other_forms() -> None:
    for tool in TOOLS:
        anthropic = definition(tool, "anthropic")
        assert list(anthropic) == ["name", "description", "input_schema"]
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", anthropic["name"])
        mcp = definition(tool, "mcp")
        assert mcp["inputSchema"] == anthropic["input_schema"] == tool.input_schema
        assert mcp["name"] == tool.name
        assert mcp["annotations"]["readOnlyHint"] is tool.hints.is_read_only
        assert isinstance(mcp["title"], str)
        if "outputSchema" in mcp:
            assert mcp["outputSchema"]["type"] == "object"


def test_what_runs_commands_is_not_said_to_be_harmless() -> None:
    for name in NAMES:
        for tool in BOXES[name].definitions():
            hints = definition(tool, "mcp")["annotations"]
            assert hints["readOnlyHint"] is (
                tool.name in ("bash_output", "bash_wait", "bash_list", "TaskOutput")
            )


# What is returned

CALLS: list[tuple[str, dict[str, object]]] = [
    ("tasks", {"command": "sleep 60", "timeout": 100}),
    ("tasks", {"command": "true", "run_in_background": True}),
    ("tasks", {"command": "sleep 60 &"}),
    ("modes", {"command": "true", "mode": "background"}),
    ("default", {"command": "sleep 60", "timeout_s": 0.1}),
    ("default", {"command": "true", "background": True}),
    ("default", {"command": "sleep 60 &"}),
    ("streams", {"command": "sleep 60", "timeout": 0.1}),
]
for each in NAMES:
    CALLS += [
        (each, {"command": "ls /nowhere"}),
        (each, {"command": "true | sh -c 'kill -9 $PPID'"}),
        (each, {"command": "seq 1 100000"}),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_data_is_as_the_schema_says(name: str) -> None:
    box = BOXES[name]
    schema = box.definitions()[0].output_schema
    assert schema is not None
    for one, call in CALLS:
        answer = box.call_sync(call) if one == name else None
        if answer is not None and "error" not in answer.data:
            data = json.loads(json.dumps(answer.data))
            assert fits(data, schema, schema), data
    answer = box.call_sync({"command": "touch here"}, limpet.ToolContext(restricted=True))
    assert fits(json.loads(json.dumps(answer.data)), schema, schema), answer.data


def test_the_data_of_the_task_tools_is_as_their_schemas_say() -> None:
    box = BOXES["default"]
    schemas = {tool.name: tool.output_schema for tool in box.definitions()}
    task = box.call_sync({"command": "cat", "background": True}).data["task_id"]
    calls: list[tuple[str, dict[str, object]]] = [
        ("bash_send", {"task": task, "text": "hi\n"}),
        ("bash_output", {"task": task}),
        ("bash_output", {"task": task, "search": "h"}),
        ("bash_wait", {"task": task, "until": "/hi/"}),
        ("bash_wait", {"task": task, "timeout_s": 0.05}),
        ("bash_list", {}),
        ("bash_stop", {"task": task}),
        ("bash_wait", {"task": [task]}),
    ]
    for tool, call in calls:
        answer = box.call_sync(call, tool=tool)
        schema = schemas[tool]
        assert not answer.is_error, answer
        if schema is not None:
            data = json.loads(json.dumps(answer.data))
            assert fits(data, schema, schema), (tool, data)


# The command line


@pytest.mark.parametrize("form", FORMATS)
def test_the_command_line_prints_them(capfd: pytest.CaptureFixture[str], form: Format) -> None:
    for name in NAMES:
        assert main(["schema", "--profile", name, "--format", form]) == 0
        shown = json.loads(capfd.readouterr().out)
        made = [definition(tool, form) for tool in BOXES[name].definitions()]
        assert (shown if isinstance(shown, list) else [shown]) == made
        assert isinstance(shown, list) is (len(made) > 1)


def test_the_command_line_prints_one_tool(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "--tool", "bash_wait"]) == 0
    assert json.loads(capfd.readouterr().out)["name"] == "bash_wait"
    assert main(["schema", "--tool", "nothing"]) == 2
    assert "bash_wait" in capfd.readouterr().err
