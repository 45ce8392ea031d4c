"""limpet's tools in OpenAI's Agents SDK, as function tools with strict schemas.

    pip install 'limpet[openai]'
    python examples/openai_agents.py

It needs no key and no network: the model is scripted. To talk to a real one, set OPENAI_API_KEY
and write `model = "gpt-5.5"` below.
"""

from __future__ import annotations

import asyncio
import tempfile

from agents import Agent, Model, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message, function_call

import limpet
from limpet.integrations.openai import tools


def scripted_model() -> Model:
    """Return a model that makes these calls, one in each turn."""
    commands = [
        "echo hello > note.txt && wc -c note.txt",
        "ls /nowhere",  # an exit code is an answer
        "git push --force",  # refused, and told what to do instead
    ]
    calls = [
        [function_call("bash", {"command": command}, call_id=f"call_{number}")]
        for number, command in enumerate(commands)
    ]
    return ScriptedModel([*calls, [assistant_message("That is all.")]])


async def main() -> None:
    """Run the agent, and print what it did and read."""
    model = scripted_model()  # or: "gpt-5.5"
    with tempfile.TemporaryDirectory() as directory:
        agent = Agent(
            name="worker",
            model=model,
            tools=[*tools(limpet.profile("default"), limpet.ToolContext(working_dir=directory))],
        )
        result = await Runner.run(
            agent, "Look around.", run_config=RunConfig(tracing_disabled=True)
        )
    for item in result.to_input_list():
        if item.get("type") == "function_call":
            print(f"call:   {item.get('name')} {item.get('arguments')}")
        elif item.get("type") == "function_call_output":
            print(f"result: {str(item.get('output')).rstrip()}\n")
    print(f"agent:  {result.final_output}")


if __name__ == "__main__":
    asyncio.run(main())
