"""Claude's own bash tool, run by limpet, in the Anthropic SDK's tool runner.

    pip install 'limpet[anthropic]'
    python examples/anthropic_runner.py

It needs no key and no network: the client is a real one, but its answers come from a script. To
talk to Claude, set ANTHROPIC_API_KEY and write `client = AsyncAnthropic()` below.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Mapping

import httpx2
from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

import limpet
from limpet.integrations.anthropic import BashTool

# What the scripted model does: a tool call in each turn, then its last words.
SCRIPT: list[dict[str, object]] = [
    {"command": "mkdir build && cd build && echo 'hello' > note.txt && pwd"},
    {"command": "cat note.txt; ls /nowhere"},  # it is still in build/
    {"command": "rm -rf /"},  # refused, and told why
    {"restart": True},
    {"command": "ls"},  # back where it began
]


def scripted_client() -> AsyncAnthropic:
    """Return a client whose answers come from the script."""
    turns = iter(enumerate(SCRIPT))

    def answer(request: httpx2.Request) -> httpx2.Response:
        for number, given in turns:
            use = {"type": "tool_use", "id": f"toolu_{number}", "name": "bash", "input": given}
            return message(use, "tool_use")
        return message({"type": "text", "text": "That is all."}, "end_turn")

    def message(block: Mapping[str, object], stop_reason: str) -> httpx2.Response:
        usage = {"input_tokens": 1, "output_tokens": 1}
        return httpx2.Response(200, json={
            "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted",
            "content": [block], "stop_reason": stop_reason, "stop_sequence": None, "usage": usage,
        })  # fmt: skip

    transport = httpx2.MockTransport(answer)
    return AsyncAnthropic(api_key="none", http_client=DefaultAsyncHttpxClient(transport=transport))


async def main() -> None:
    """Run the conversation, and print what the model did and read."""
    client = scripted_client()  # or: AsyncAnthropic()
    with tempfile.TemporaryDirectory() as directory:
        bash = BashTool(
            limpet.Policy(
                timeout_s=60
            ),  # sandbox=limpet.SandboxPolicy(mode="workspace") confines it
            limpet.ToolContext(working_dir=directory),
        )
        runner = client.beta.messages.tool_runner(
            model="claude-sonnet-5-5",
            max_tokens=2000,
            tools=[bash],  # or: limpet.integrations.anthropic.tools(limpet.profile("default"))
            messages=[{"role": "user", "content": "Look around."}],
        )
        async for message in runner:
            for block in message.content:
                if block.type == "text":
                    print(f"Claude: {block.text}")
                elif block.type == "tool_use":
                    print(f"call:   {json.dumps(block.input)}")
            answers = await runner.generate_tool_call_response()
            for result in answers["content"] if answers else []:
                if isinstance(result, dict) and result["type"] == "tool_result":
                    error = " (is_error)" if result.get("is_error") else ""
                    print(f"result: {str(result.get('content')).rstrip()}{error}\n")
    await client.close()


if __name__ == "__main__":
    asyncio.run(main())
