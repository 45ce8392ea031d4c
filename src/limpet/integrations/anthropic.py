"""Anthropic's SDK: the `bash_20250124` tool, and any profile as custom tools.

All of them go into `client.beta.messages.tool_runner(tools=[…])`, the `…Sync` ones into that of a
client without asyncio. What could not be done is raised as the SDK's `ToolError`, so that the
model reads it with `is_error`; a command's exit code is an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

try:
    from anthropic.lib.tools import (
        BetaAsyncBuiltinFunctionTool,
        BetaBuiltinFunctionTool,
        ToolError,
    )
    from anthropic.types.beta import BetaToolBash20250124Param, BetaToolParam
except ImportError as error:
    raise ImportError(
        f"{error}: limpet.integrations.anthropic needs it: pip install 'limpet[anthropic]'"
    ) from error

from pydantic import Field

from limpet.context import ToolContext
from limpet.policy import Policy
from limpet.profiles import Answer, Toolbox, profile
from limpet.profiles.input import Input, InvalidInput, validated
from limpet.profiles.schema import definition
from limpet.profiles.toolbox import Definition

__all__ = ["BashTool", "BashToolSync", "tools", "tools_sync"]

_RESTARTED = "bash was restarted; it is in {where}"
_NOTHING_ASKED = "command is required: text that is not empty; or restart: true"


class BashTool(BetaAsyncBuiltinFunctionTool):
    """The tool `bash` of the type `bash_20250124`, which models know by heart; one conversation's.

    A model takes it for one shell that stays open. Of such a shell the working directory is kept
    from call to call. **Variables, functions and `shopt` are not**: each call is a bash of its
    own, so that none can hang or poison the next. Say so in the system prompt if it matters, or
    offer `tools(…)`, whose description does.

    `restart` leads back to the directory where the conversation began. Background jobs that
    earlier calls have left go on.
    """

    def __init__(self, policy: Policy | None = None, ctx: ToolContext | None = None) -> None:
        """Take what the host decides, and where the conversation works."""
        self._session = _Session(policy, ctx)

    def to_dict(self) -> BetaToolBash20250124Param:
        """Return the definition that the request has."""
        return {"type": "bash_20250124", "name": "bash"}

    async def call(self, input: object) -> str:
        """Run what the model has asked for.

        Raises:
            ToolError: It was refused, ran out of time, or could not be done.
            asyncio.CancelledError: The awaiting task was cancelled; all that ran is dead.
        """
        command = self._session.begin(input)
        if command is None:
            return self._session.restarted
        return _told(await self._session.toolbox.call(command, self._session.ctx))


class BashToolSync(BetaBuiltinFunctionTool):
    """`BashTool` for a client without asyncio."""

    def __init__(self, policy: Policy | None = None, ctx: ToolContext | None = None) -> None:
        """Take what the host decides, and where the conversation works."""
        self._session = _Session(policy, ctx)

    def to_dict(self) -> BetaToolBash20250124Param:
        """Return the definition that the request has."""
        return {"type": "bash_20250124", "name": "bash"}

    def call(self, input: object) -> str:
        """Run what the model has asked for.

        Raises:
            ToolError: It was refused, ran out of time, or could not be done.
        """
        command = self._session.begin(input)
        if command is None:
            return self._session.restarted
        return _told(self._session.toolbox.call_sync(command, self._session.ctx))


def tools(toolbox: Toolbox, ctx: ToolContext | None = None) -> list[BetaAsyncBuiltinFunctionTool]:
    """Return all tools of a profile as custom tools of one conversation."""
    ctx = ctx or ToolContext()
    return [_Tool(toolbox, ctx, tool) for tool in toolbox.definitions(ctx)]


def tools_sync(toolbox: Toolbox, ctx: ToolContext | None = None) -> list[BetaBuiltinFunctionTool]:
    """Do the same for a client without asyncio."""
    ctx = ctx or ToolContext()
    return [_SyncTool(toolbox, ctx, tool) for tool in toolbox.definitions(ctx)]


class _Tool(BetaAsyncBuiltinFunctionTool):
    def __init__(self, toolbox: Toolbox, ctx: ToolContext, tool: Definition) -> None:
        self._toolbox, self._ctx, self._tool = toolbox, ctx, tool

    def to_dict(self) -> BetaToolParam:
        return cast(BetaToolParam, definition(self._tool, "anthropic"))

    async def call(self, input: object) -> str:
        given = _arguments(input)
        return _told(await self._toolbox.call(given, self._ctx, tool=self._tool.name))


class _SyncTool(BetaBuiltinFunctionTool):
    def __init__(self, toolbox: Toolbox, ctx: ToolContext, tool: Definition) -> None:
        self._toolbox, self._ctx, self._tool = toolbox, ctx, tool

    def to_dict(self) -> BetaToolParam:
        return cast(BetaToolParam, definition(self._tool, "anthropic"))

    def call(self, input: object) -> str:
        given = _arguments(input)
        return _told(self._toolbox.call_sync(given, self._ctx, tool=self._tool.name))


class _BashInput(Input):
    command: str | None = Field(None, min_length=1)
    restart: bool = False


class _Session:
    """What a `bash_20250124` tool keeps between calls."""

    def __init__(self, policy: Policy | None, ctx: ToolContext | None) -> None:
        self.toolbox = profile("default", replace(policy or Policy(), persist_cwd=True))
        self.ctx = ctx or ToolContext()

    def begin(self, given: object) -> dict[str, str] | None:
        """Restart if that is asked for, and return what is to be run after that, if anything."""
        try:
            asked = cast(_BashInput, validated(_BashInput, _arguments(given)))
        except InvalidInput as error:
            raise ToolError(str(error)) from None
        if asked.restart:
            self.ctx.move(self.ctx.cwd, None)
        elif asked.command is None:
            raise ToolError(_NOTHING_ASKED)
        return None if asked.command is None else {"command": asked.command}

    @property
    def restarted(self) -> str:
        """What a model is told of a restart."""
        return _RESTARTED.format(where=self.ctx.cwd or "the directory where it began")


def _arguments(given: object) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], given)  # anything else is told apart by the validation


def _told(answer: Answer) -> str:
    text = answer.text or "(no output)"  # some profiles say nothing, and the API wants something
    if answer.is_error:
        raise ToolError(text)
    return text
