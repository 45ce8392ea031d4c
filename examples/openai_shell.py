"""limpet as the executor of the Agents SDK's ShellTool, which OpenAI's models know by heart.

    pip install 'limpet[openai]'
    python examples/openai_shell.py

It needs no key and no network: the model is scripted. To talk to a real one, set OPENAI_API_KEY
and write `model = "gpt-5.5"` below.
"""

from __future__ import annotations

import asyncio
import tempfile

from agents import Agent, Model, RunConfig, Runner, ShellTool, ToolCallOutputItem
from agents.testing import ScriptedModel, assistant_message
from openai.types.responses import ResponseFunctionShellToolCall
from openai.types.responses.response_function_shell_tool_call import Action

import limpet
from limpet.integrations.openai import shell_executor


def scripted_model() -> Model:
    """Return a model that calls the shell once, with several commands."""
    commands = [
        "echo to stdout; echo to stderr >&2; exit 4",
        "rm -rf ~",  # refused: exit code 126, and stderr says why
        "sleep 60",  # longer than timeout_ms: killed, with all that it has started
        "echo this is not run",
    ]
    call = ResponseFunctionShellToolCall(
        type="shell_call",
        id="shell_1",
        call_id="call_1",
        status="completed",
        action=Action(commands=commands, timeout_ms=1000, max_output_length=4000),
    )
    return ScriptedModel([[call], [assistant_message("That is all.")]])


async def main() -> None:
    """Run the agent, and print what it did and read."""
    model = scripted_model()  # or: "gpt-5.5"
    with tempfile.TemporaryDirectory() as directory:
        executor = shell_executor(
            limpet.Policy(
                timeout_s=60
            ),  # sandbox=limpet.SandboxPolicy(mode="workspace") confines it
            limpet.ToolContext(working_dir=directory),
        )
        agent = Agent(name="worker", model=model, tools=[ShellTool(executor=executor)])
        result = await Runner.run(
            agent, "Look around.", run_config=RunConfig(tracing_disabled=True)
        )
    for item in result.new_items:
        if isinstance(item, ToolCallOutputItem):
            print(item.output)
    print(f"\nagent: {result.final_output}")


if __name__ == "__main__":
    asyncio.run(main())
