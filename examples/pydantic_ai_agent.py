"""An agent of pydantic-ai that runs commands with limpet, and asks before it deletes.

pip install 'limpet[pydantic-ai]'
python examples/pydantic_ai_agent.py
"""

from __future__ import annotations

import asyncio
import tempfile

from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

import limpet
from limpet.integrations.pydantic_ai import LimpetToolset

COMMANDS = ["printf 'one\\ntwo\\n' > list.txt && wc -l list.txt", "rm list.txt"]


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a model: make one call after the other, then answer."""
    made = sum(isinstance(message, ModelResponse) for message in messages)
    if made < len(COMMANDS):
        return ModelResponse(parts=[ToolCallPart("bash", {"command": COMMANDS[made]})])
    return ModelResponse(parts=[TextPart("I counted the lines and cleaned up.")])


async def main() -> None:
    """Run the agent, approve what it asks for, and let it finish."""
    # Commands that match are put to a person. Add sandbox="workspace" to jail all of them.
    policy = limpet.Policy(permissions=limpet.PermissionPolicy(ask=("rm *",)))
    with tempfile.TemporaryDirectory() as directory:
        toolset = LimpetToolset(limpet.profile("default", policy), limpet.ToolContext(directory))
        agent = Agent(
            FunctionModel(scripted),  # a real one: "anthropic:claude-sonnet-4-5"
            toolsets=[toolset],
            output_type=[str, DeferredToolRequests],
        )
        run = await agent.run("Make a list of two lines, count them, and clean up.")

        # The run stops where a person is needed, with the command and the reason.
        while isinstance(run.output, DeferredToolRequests):
            for about in run.output.metadata.values():
                print("to approve:", about["reason"])
            run = await agent.run(
                message_history=run.all_messages(),
                deferred_tool_results=run.output.build_results(approve_all=True),
            )

        print("answer:", run.output)
        left = await toolset.toolbox.bash.run("ls -A", ctx=limpet.ToolContext(directory))
        print("left over:", left.output or "nothing")


if __name__ == "__main__":
    asyncio.run(main())
