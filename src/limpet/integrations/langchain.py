"""limpet for LangChain: the tools of a profile as `BaseTool`s."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import PrivateAttr

from limpet.context import ToolContext
from limpet.profiles import Answer, Definition, Toolbox, profile

try:
    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import BaseTool, ToolException
except ImportError as error:
    raise ImportError(
        "limpet.integrations.langchain needs langchain-core: pip install 'limpet[langchain]'"
    ) from error

__all__ = ["LimpetTool", "LimpetToolError", "tools"]


def tools(toolbox: Toolbox | None = None, ctx: ToolContext | None = None) -> list[BaseTool]:
    """Return the tools of a limpet profile, for `bind_tools`, an agent, or a `ToolNode`.

    Args:
        toolbox: What `limpet.profile()` returns; None is the default profile.
        ctx: The conversation; None is the host's working directory, and for each call the
            `thread_id` of its config.
    """
    toolbox = toolbox or profile()
    return [LimpetTool(one, toolbox, ctx) for one in toolbox.definitions(ctx)]


class LimpetToolError(ToolException):
    """A call that could not be done, or whose command was killed."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.text)
        self.answer = answer


class LimpetTool(BaseTool):
    """One tool of a profile: the content is what the model reads, the artifact is the data.

    Errors are messages of status `error`, wrong input too: limpet checks it, and says which field
    is wrong and what is allowed. A command's exit code is an answer. To cancel `ainvoke` kills the
    command with all that it has started.
    """

    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: Any = True
    _toolbox: Toolbox = PrivateAttr()
    _ctx: ToolContext | None = PrivateAttr()

    def __init__(self, tool: Definition, toolbox: Toolbox, ctx: ToolContext | None = None) -> None:
        # As JSON Schema: of a pydantic model LangChain would check the input itself, and say less.
        super().__init__(
            name=tool.name, description=tool.description, args_schema=tool.input_schema
        )
        self._toolbox = toolbox
        self._ctx = ctx

    def _run(self, /, *, limpet_config: RunnableConfig, **arguments: object) -> tuple[str, object]:
        ctx = self._conversation(limpet_config)
        return _told(self._toolbox.call_sync(arguments, ctx, tool=self.name))

    async def _arun(
        self, /, *, limpet_config: RunnableConfig, **arguments: object
    ) -> tuple[str, object]:
        ctx = self._conversation(limpet_config)
        return _told(await self._toolbox.call(arguments, ctx, tool=self.name))

    def _conversation(self, config: RunnableConfig | None) -> ToolContext:
        if self._ctx is not None:
            return self._ctx
        thread = ((config or {}).get("configurable") or {}).get("thread_id")
        return ToolContext(session_id=None if thread is None else str(thread))


def _told(answer: Answer) -> tuple[str, object]:
    if answer.is_error:
        raise LimpetToolError(answer)
    return answer.text, answer.data
