"""limpet for pydantic-ai: the tools of a profile as a toolset, and `Bash` as a workspace."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from pydantic_core import SchemaValidator, core_schema

from limpet.context import ToolContext
from limpet.integrations.pydantic_ai_workspace import LimpetWorkspaceBackend
from limpet.policy import Approval
from limpet.profiles import Answer, Definition, Toolbox, profile
from limpet.profiles.schema import annotations_of
from limpet.tool import Bash

try:
    from pydantic_ai import RunContext
    from pydantic_ai.exceptions import ApprovalRequired, ModelRetry, ToolFailed
    from pydantic_ai.messages import ToolReturn
    from pydantic_ai.tools import AgentDepsT, ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
except ImportError as error:
    raise ImportError(
        "limpet.integrations.pydantic_ai needs pydantic-ai: pip install 'limpet[pydantic-ai]'"
    ) from error

__all__ = ["LimpetToolset", "LimpetWorkspaceBackend"]

# Any object is taken here: limpet's own validation says which field is wrong, and what is allowed.
_ANY_OBJECT = SchemaValidator(core_schema.dict_schema(keys_schema=core_schema.str_schema()))

_is_approved: ContextVar[bool] = ContextVar("limpet_is_approved", default=False)
"""Whether a person has approved the tool call that is being made."""


class LimpetToolset(AbstractToolset[AgentDepsT]):
    """The tools of a limpet profile, for `Agent(toolsets=[…])`.

    What the model can mend (wrong input, a refused command, a time limit) is a `ModelRetry` as
    long as the tool may be retried, and then, like all other errors, a `ToolFailed`: a run does
    not end because of them. A command's exit code is an answer. `Answer.data` is the metadata of
    the tool's return.

    A command that the policy's permissions `ask` about is deferred with `ApprovalRequired`, unless
    the policy has an `approve` of its own. The request's metadata has the command, its
    description, the reason as text, and the verdict. Approved, that call runs its command.
    """

    def __init__(
        self,
        toolbox: Toolbox | None = None,
        ctx: ToolContext | Callable[[RunContext[AgentDepsT]], ToolContext] | None = None,
        *,
        id: str | None = None,
        max_retries: int | None = None,
    ) -> None:
        """Offer the tools of a toolbox.

        Args:
            toolbox: What `limpet.profile()` returns; None is the default profile.
            ctx: The conversation, or what makes one for each run; None is the host's working
                directory, under pydantic-ai's own conversation id.
            id: Of the toolset, unique among those of one agent.
            max_retries: How often a tool may be retried; None is the agent's own number.
        """
        self.toolbox = toolbox or profile()
        self._ctx = ctx
        self._id = id
        self._max_retries = max_retries
        self._asking = self.toolbox
        policy = self.toolbox.bash.policy
        if policy.approve is None:
            self._asking = copy.copy(self.toolbox)
            self._asking.bash = Bash(replace(policy, approve=_approve))

    @property
    def id(self) -> str | None:
        """What tells it from other toolsets of an agent."""
        return self._id

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> LimpetToolset[AgentDepsT]:
        """Return the toolset with the conversation of one run."""
        run = copy.copy(self)
        run._ctx = self._conversation(ctx)
        return run

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        """Return the tools as they are in this conversation."""
        found = self.toolbox.definitions(self._conversation(ctx))
        retries = ctx.max_retries if self._max_retries is None else self._max_retries
        return {
            tool.name: ToolsetTool(
                toolset=self,
                tool_def=_definition(tool),
                max_retries=retries,
                args_validator=_ANY_OBJECT,
            )
            for tool in found
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[AgentDepsT],
        tool: ToolsetTool[AgentDepsT],
    ) -> ToolReturn[str]:
        """Do what the model calls for.

        Raises:
            ModelRetry: The model can mend it.
            ToolFailed: It cannot.
            ApprovalRequired: A person must approve the command before it runs.
        """
        token = _is_approved.set(ctx.tool_call_approved)
        try:
            answer = await self._asking.call(tool_args, self._conversation(ctx), tool=name)
        finally:
            _is_approved.reset(token)
        if answer.is_error:
            raise _error(answer, may_retry=ctx.retry < ctx.max_retries)
        return ToolReturn(answer.text, metadata=answer.data)

    def _conversation(self, ctx: RunContext[AgentDepsT]) -> ToolContext:
        if isinstance(self._ctx, ToolContext):
            return self._ctx
        return ToolContext(session_id=ctx.conversation_id) if self._ctx is None else self._ctx(ctx)


def _definition(tool: Definition) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name,
        description=tool.description,
        parameters_json_schema=tool.input_schema,
        metadata={"annotations": annotations_of(tool)},
    )


def _error(answer: Answer, *, may_retry: bool) -> ModelRetry | ToolFailed:
    # A retry too many would end the whole run, with the model's last words lost.
    return (ModelRetry if answer.can_retry and may_retry else ToolFailed)(answer.text)


def _approve(question: Approval) -> bool:
    """Let a call that was approved run its command, and defer any other."""
    if _is_approved.get():
        return True
    raise ApprovalRequired(
        metadata={
            "command": question.command,
            "description": question.description,
            "reason": question.verdict.describe(),
            "verdict": question.verdict.to_dict(),
        }
    )
