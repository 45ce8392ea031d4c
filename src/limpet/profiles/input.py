"""What a model fills in: validated, with errors that say what is allowed instead."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)


class Input(BaseModel):
    """The parameters of a tool: types are exact, unknown names are errors, null is not given."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_nulls(cls, given: object) -> object:
        # Strict function schemas have no optional parameters: null stands for what is not given.
        if isinstance(given, Mapping):
            known = cls.model_fields
            return {
                name: value
                for name, value in given.items()
                if value is not None or name not in known
            }
        return given


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _pairs(value: object) -> object:
    """Take variables as strict function schemas have them: a list of names and values."""
    if not isinstance(value, list):
        return value
    found = {}
    for pair in value:
        is_pair = isinstance(pair, Mapping) and pair.keys() == {"name", "value"}
        if not is_pair or not isinstance(pair["name"], str):
            return value
        found[pair["name"]] = pair["value"]
    return found


Whole = Annotated[int, BeforeValidator(_whole)]
"""A whole number, also when it is written as 30.0."""
Count = Annotated[int, Field(ge=0), BeforeValidator(_whole)]
"""The same, 0 or more."""
Several = Annotated[list[str], Field(min_length=1)]
"""A list of texts, at least one."""
Variables = Annotated[dict[str, str], BeforeValidator(_pairs)]
"""Environment variables: an object of texts, or a list of `{"name": …, "value": …}`."""


class InvalidInput(ValueError):
    """A call does not fit its tool; the message says which field, and what is allowed."""


def validated(kind: type[Input], given: Mapping[str, Any] | str | bytes) -> Input:
    """Return the parameters of a call.

    Raises:
        InvalidInput: They do not fit.
    """
    if isinstance(given, str | bytes):
        given = _parsed(given)
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        properties = schema_of(kind)["properties"]
        problems = [_problem(dict(one), properties) for one in error.errors(include_url=False)]
        raise InvalidInput("; ".join(dict.fromkeys(problems))) from None


def _parsed(text: str | bytes) -> Any:  # noqa: ANN401 -- whatever the JSON is; validated next
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the input is not JSON that can be read: {error}") from None


def schema_of(kind: type[Input]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's parameters, without what a model has no use for."""
    schema = _tidy(kind.model_json_schema())
    schema.pop("description", None)
    return {"type": "object", "properties": {}, **schema}


def data_schema_of(kind: type[Any]) -> dict[str, Any]:
    """Return the JSON Schema of what a tool returns for programs."""
    schema = TypeAdapter(kind).json_schema(mode="serialization")
    return {name: value for name, value in schema.items() if name not in ("title", "description")}


def _tidy(schema: Any) -> Any:  # noqa: ANN401 -- JSON
    if isinstance(schema, list):
        return [_tidy(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    tidy: dict[str, Any] = {}
    for name, value in schema.items():
        if name in ("properties", "$defs"):
            tidy[name] = {inner: _tidy(one) for inner, one in value.items()}
        elif name != "title" and not (name == "default" and value is None):
            tidy[name] = _tidy(value)
    choices = [one for one in tidy.get("anyOf", []) if one != {"type": "null"}]
    if len(choices) == 1:
        del tidy["anyOf"]
        tidy = choices[0] | tidy
    elif choices:
        tidy["anyOf"] = choices
    return tidy


def _problem(error: dict[str, Any], properties: dict[str, Any]) -> str:
    place = [part for part in error["loc"] if isinstance(part, str)]
    name = place[0] if place else ""
    match error["type"]:
        case "missing":
            return f"{name} is required: {_allowed(properties.get(name, {}))}"
        case "extra_forbidden":
            return f"there is no {name!r}: the fields are {', '.join(properties)}"
        case "model_type" | "model_attributes_type":
            return f"the input must be an object with the fields {', '.join(properties)}"
        case "value_error":
            return f"{name}: {error['ctx']['error']}" if name else str(error["ctx"]["error"])
    allowed = _allowed(properties.get(name, {}))
    return f"{name} must be {allowed}, not {_shown(error['input'])}"


_TYPES = {"string": "text", "boolean": "true or false", "null": "null", "object": "an object"}


def _allowed(schema: dict[str, Any]) -> str:
    """Say in words what a schema allows."""
    if "anyOf" in schema:
        return " or ".join(_allowed(one) for one in schema["anyOf"])
    if "enum" in schema:
        return "one of " + ", ".join(json.dumps(one) for one in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    kind = schema.get("type", "")
    if kind in ("integer", "number"):
        return _range("a whole number" if kind == "integer" else "a number", schema)
    if kind == "array":
        return f"a list, each {_allowed(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"an object, each value {_allowed(schema['additionalProperties'])}"
    if kind == "string" and schema.get("minLength"):
        return "text that is not empty"
    if kind == "string" and "pattern" in schema:
        return f"text of the form {schema['pattern']}"
    return _TYPES.get(kind, "a value")


def _range(what: str, schema: dict[str, Any]) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    above = schema.get("exclusiveMinimum")
    if above is not None:
        return f"{what} above {above:g}" + (f", up to {most:g}" if most is not None else "")
    if least is not None and most is not None:
        return f"{what} from {least:,} to {most:,}"
    if least is not None:
        return f"{what}, {least:,} or more"
    return what if most is None else f"{what}, {most:,} or less"


_LONGEST_SHOWN = 100


def _shown(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"
