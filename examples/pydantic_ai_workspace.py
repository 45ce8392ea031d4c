"""limpet as the workspace of a pydantic-ai agent: its tools work in a jailed directory.

pip install 'limpet[pydantic-ai]'
python examples/pydantic_ai_workspace.py
"""

from __future__ import annotations

import asyncio
import tempfile

from pydantic_ai import Agent, ModelMessage, ModelResponse, RunContext, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import limpet
from limpet.integrations.pydantic_ai import LimpetWorkspaceBackend

PROGRAM = "print(sum(range(10)))"


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a model: try a program, then tell what came of it."""
    for part in messages[-1].parts:
        if part.part_kind == "tool-return":
            return ModelResponse(parts=[TextPart(f"It prints {part.content}")])
    return ModelResponse(parts=[ToolCallPart("try_program", {"source": PROGRAM})])


agent = Agent(FunctionModel(scripted))  # a real one: Agent("anthropic:claude-sonnet-4-5")


@agent.tool
async def try_program(ctx: RunContext[object], source: str) -> str:
    """Run a Python program and return what it prints."""
    # Any tool that works with `ctx.workspace` works with limpet.
    await ctx.workspace.write_text("program.py", source)
    done = await ctx.workspace.run(["python3", "program.py"], timeout=10)
    return (done.stdout + done.stderr).strip()


async def main() -> None:
    """Give the agent a directory, and see that it cannot leave it."""
    # The kernel keeps commands and files inside; where it cannot, nothing runs.
    # degrade=True is for machines without a sandbox: leave it out to be sure of one.
    jail = limpet.SandboxPolicy(mode="workspace", degrade=True)
    with tempfile.TemporaryDirectory() as directory:
        workspace = LimpetWorkspaceBackend(directory, limpet.Policy(sandbox=jail))
        run = await agent.run("What is the sum of 0 to 9?", workspace=workspace)
        print("answer:", run.output)

        # An exit code is a result; a time limit or a refusal is an exception.
        tried = await workspace.run(["touch", "/usr/here"])
        print("outside:", tried.stderr.strip() or "not jailed on this machine")


if __name__ == "__main__":
    asyncio.run(main())
