"""Tool definitions in the forms that models' interfaces take."""

from __future__ import annotations

import json
from typing import Any, Literal, get_args

from limpet.profiles.toolbox import Definition

Format = Literal["anthropic", "openai", "mcp"]
FORMATS: tuple[Format, ...] = get_args(Format)


def definition(tool: Definition, form: Format) -> dict[str, Any]:
    """Return the definition of a tool in one of the forms."""
    match form:
        case "anthropic":
            return {
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.input_schema,
            }
        case "openai":
            return {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": strict(tool.input_schema),
                "strict": True,
            }
        case "mcp":
            output = {"outputSchema": tool.output_schema} if tool.output_schema else {}
            return {
                "name": tool.name,
                "title": tool.title,
                "description": tool.description,
                "inputSchema": tool.input_schema,
                **output,
                "annotations": annotations_of(tool),
            }


def annotations_of(tool: Definition) -> dict[str, Any]:
    """Return what an MCP client may show of a tool's effects."""
    return {
        "title": tool.title,
        "readOnlyHint": tool.hints.is_read_only,
        "destructiveHint": tool.hints.is_destructive,
        "idempotentHint": tool.hints.is_idempotent,
        "openWorldHint": tool.hints.is_open_world,
    }


_PAIRS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "value": {"type": "string"}},
        "required": ["name", "value"],
        "additionalProperties": False,
    },
}


def strict(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema as strict function calling wants it.

    Every property is required, what may be left out may be null, and no object is open: one of
    any names becomes a list of names and values.
    """
    if isinstance(schema.get("additionalProperties"), dict):
        return _with_description(_PAIRS, schema)
    made: dict[str, Any] = {
        name: [strict(one) for one in value] if name == "anyOf" else value
        for name, value in schema.items()
        if name not in ("default", "minLength")
    }
    if "items" in made:
        made["items"] = strict(made["items"])
    if "$defs" in made:
        made["$defs"] = {name: strict(one) for name, one in made["$defs"].items()}
    if made.get("type") != "object":
        return made
    required = made.get("required", [])
    made["properties"] = {
        name: strict(one) if name in required else _or_null(one)
        for name, one in made.get("properties", {}).items()
    }
    made["required"] = list(made["properties"])
    made["additionalProperties"] = False
    return made


def _with_description(made: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    return made | ({"description": schema["description"]} if "description" in schema else {})


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    made = strict(schema)
    if "default" in schema:
        note = f"Null is {json.dumps(schema['default'])}."
        made["description"] = f"{made.get('description', '')} {note}".strip()
    if "anyOf" in made:
        return made | {"anyOf": [*made["anyOf"], {"type": "null"}]}
    if "enum" in made:
        made["enum"] = [*made["enum"], None]
    if isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
        return made
    return {"anyOf": [made, {"type": "null"}]}
