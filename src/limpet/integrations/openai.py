"""OpenAI: function tools with strict schemas, and the executor of the Agents SDK's `ShellTool`.

`tools` and `shell_executor` are for the Agents SDK; `definitions` and `call` are for the plain
Responses API. What went wrong is text that the model reads; it never ends a run.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

try:
    from agents import (
        FunctionTool,
        ShellCallOutcome,
        ShellCommandOutput,
        ShellCommandRequest,
        ShellResult,
    )
    from agents.tool_context import ToolContext as RunContext
    from openai.types.responses import FunctionToolParam, ResponseFunctionToolCall
    from openai.types.responses.response_input_param import FunctionCallOutput
except ImportError as error:
    raise ImportError(
        f"{error}: limpet.integrations.openai needs it: pip install 'limpet[openai]'"
    ) from error

from limpet.context import ToolContext
from limpet.policy import Policy
from limpet.profiles import Toolbox, cut
from limpet.profiles.answer import hint_of
from limpet.profiles.default import LONGEST_S
from limpet.profiles.schema import definition, strict
from limpet.profiles.toolbox import Definition
from limpet.result import Outcome, Result
from limpet.tool import Bash

__all__ = ["call", "definitions", "shell_executor", "tools"]

_log = logging.getLogger("limpet")


def tools(toolbox: Toolbox, ctx: ToolContext | None = None) -> list[FunctionTool]:
    """Return all tools of a profile for an `Agent` of the Agents SDK; one conversation's."""
    ctx = ctx or ToolContext()
    return [_function_tool(toolbox, ctx, tool) for tool in toolbox.definitions(ctx)]


def _function_tool(toolbox: Toolbox, ctx: ToolContext, tool: Definition) -> FunctionTool:
    async def invoke(_: RunContext[Any], arguments: str) -> str:
        return await _answered(toolbox, ctx, tool.name, arguments)

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=strict(tool.input_schema),
        on_invoke_tool=invoke,
    )


def definitions(toolbox: Toolbox, ctx: ToolContext | None = None) -> list[FunctionToolParam]:
    """Return all tools of a profile as `client.responses.create(tools=…)` takes them."""
    return [
        FunctionToolParam(**definition(tool, "openai"))  # type: ignore[typeddict-item]  # the same
        for tool in toolbox.definitions(ctx)
    ]


async def call(
    toolbox: Toolbox,
    item: ResponseFunctionToolCall | Mapping[str, Any],
    ctx: ToolContext | None = None,
) -> FunctionCallOutput:
    """Do what a `function_call` item of a response calls for.

    Returns:
        The `function_call_output` item for the next request; what went wrong is its text.

    Raises:
        asyncio.CancelledError: The awaiting task was cancelled; all that ran is dead.
    """
    if isinstance(item, ResponseFunctionToolCall):
        item = item.model_dump()
    text = await _answered(toolbox, ctx or ToolContext(), item["name"], item["arguments"])
    return {"type": "function_call_output", "call_id": item["call_id"], "output": text}


async def _answered(toolbox: Toolbox, ctx: ToolContext, tool: str, arguments: str) -> str:
    try:
        return (await toolbox.call(arguments, ctx, tool=tool)).text
    except LookupError as error:
        return str(error.args[0])
    except Exception as error:  # a defect, or the host's `approve`: what else runs must go on
        _log.exception("a call of the tool %s has failed", tool)
        return f"the tool {tool} has failed: {error!r}"


# The `shell` tool

_EXIT_CODES = {
    Outcome.FAILED_TO_START: 125,
    Outcome.REFUSED: 126,
    Outcome.CANCELLED: 130,
    Outcome.OUTPUT_CAPPED: 137,
}
"""What a program would exit with; the hint says what it means."""
_LEAST_S = 0.001
_ENDS_ALL = (Outcome.TIMED_OUT, Outcome.CANCELLED)


def shell_executor(
    policy: Policy | None = None, ctx: ToolContext | None = None
) -> Callable[[ShellCommandRequest], Awaitable[ShellResult]]:
    """Return an executor for `ShellTool(executor=…)` of the Agents SDK; one conversation's.

    The commands of a call run one after the other, each in a bash of its own, and each has its
    own outcome. One that is refused (126) or cannot be started (125) says why in `stderr`, and
    the next one runs. `timeout_ms` is for all of them together: at the limit the running one is
    killed, and the rest is not run. Of more output than `max_output_length`, the head and the
    tail of each stream are kept. To cancel the run kills the command.
    """
    policy = policy or Policy()
    bash = Bash(replace(policy, output=replace(policy.output, streams="separate")))
    ctx = ctx or ToolContext()

    async def execute(request: ShellCommandRequest) -> ShellResult:
        action = request.data.action
        limit_s = None if not action.timeout_ms else min(action.timeout_ms / 1000, LONGEST_S)
        outputs = await _run_all(bash, ctx, action.commands, limit_s)
        if action.max_output_length is not None:
            _fit(outputs, max(0, action.max_output_length))
        return ShellResult(output=outputs, max_output_length=action.max_output_length)

    return execute


async def _run_all(
    bash: Bash, ctx: ToolContext, commands: list[str], limit_s: float | None
) -> list[ShellCommandOutput]:
    outputs: list[ShellCommandOutput] = []
    end = None if limit_s is None else time.monotonic() + limit_s
    for command in commands:
        left_s = None if end is None else max(_LEAST_S, round(end - time.monotonic(), 3))
        result = await bash.run(command, timeout_s=left_s, ctx=ctx)
        outputs.append(_output(result))
        if result.outcome in _ENDS_ALL:
            break
    if not_run := len(commands) - len(outputs):
        last = outputs[-1]
        why = "cancelled" if last.exit_code == _EXIT_CODES[Outcome.CANCELLED] else "out of time"
        last.stderr = _with_line(last.stderr, f"{why}: {_commands(not_run)} after this did not run")
    return outputs


def _commands(count: int) -> str:
    return f"{count} command{'' if count == 1 else 's'}"


def _output(result: Result) -> ShellCommandOutput:
    if result.outcome is Outcome.TIMED_OUT:
        outcome = ShellCallOutcome(type="timeout")
    else:
        code = _EXIT_CODES.get(result.outcome, result.exit_code)
        outcome = ShellCallOutcome(type="exit", exit_code=1 if code is None else code)
    hint = hint_of(result, "raise timeout_ms if it needs longer")
    return ShellCommandOutput(
        stdout=result.stdout,
        stderr=_with_line(result.stderr, hint) if hint else result.stderr,
        outcome=outcome,
        command=result.command,
    )


def _with_line(text: str, line: str) -> str:
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}[{line}]\n"


def _fit(outputs: list[ShellCommandOutput], most: int) -> None:
    """Cut streams until all of them together have so many characters at most, longest first."""
    lengths = [len(text) for output in outputs for text in (output.stdout, output.stderr)]
    share = _share(lengths, most)
    for output in outputs:
        output.stdout = _cut(output.stdout, share)
        output.stderr = _cut(output.stderr, share)


def _share(lengths: list[int], most: int) -> int:
    """Return how long each text may be, if what the short ones leave goes to the long ones."""
    room = most
    for place, length in enumerate(sorted(lengths)):
        share = room // (len(lengths) - place)
        if length > share:
            return share
        room -= length
    return most


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    marker = f"\n[… {len(text) - most:,} characters and more left out …]\n"
    room = most - len(marker)
    if room <= 0:
        return text[:most]
    return cut.middle(text, room // 4, room - room // 4, marker)
