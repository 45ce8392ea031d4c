"""Anthropic's real SDK: its tool runner, with answers from a script in place of the network."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic, AsyncAnthropic, DefaultAsyncHttpxClient, DefaultHttpxClient
from anthropic.lib.tools import ToolError
from support import marked_processes, wait_until

import limpet
from limpet.integrations.anthropic import BashTool, BashToolSync, tools, tools_sync
from limpet.profiles import NAMES

MODEL = "claude-scripted"
START: list[Any] = [{"role": "user", "content": "go"}]


class Script:
    """Answers with tool calls, one turn after the other, and keeps what it was sent."""

    def __init__(self, *turns: list[dict[str, Any]]) -> None:
        self._turns = list(turns)
        self.requests: list[dict[str, Any]] = []
        self.transport = httpx2.MockTransport(self._answer)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(json.loads(request.content))
        calls = self._turns.pop(0) if self._turns else []
        content = calls or [{"type": "text", "text": "done"}]
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": content,
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        return httpx2.Response(200, json=message)

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """What the model was told, by the id of its call."""
        told: dict[str, dict[str, Any]] = {}
        for request in self.requests:  # each has what is new, or all of it
            for message in request["messages"]:
                if message["role"] == "user" and not isinstance(message["content"], str):
                    told |= {one["tool_use_id"]: one for one in message["content"]}
        return told

    async def run(self, offered: list[Any]) -> dict[str, dict[str, Any]]:
        """Run the conversation to its end in the async runner."""
        http = DefaultAsyncHttpxClient(transport=self.transport)
        async with AsyncAnthropic(api_key="none", http_client=http, max_retries=0) as client:
            runner = client.beta.messages.tool_runner(
                model=MODEL, max_tokens=100, tools=offered, messages=START
            )
            await runner.until_done()
        return self.results

    def run_sync(self, offered: list[Any]) -> dict[str, dict[str, Any]]:
        """Do the same in the other runner."""
        http = DefaultHttpxClient(transport=self.transport)
        with Anthropic(api_key="none", http_client=http, max_retries=0) as client:
            runner = client.beta.messages.tool_runner(
                model=MODEL, max_tokens=100, tools=offered, messages=START
            )
            runner.until_done()
        return self.results


def use(number: int, tool: str = "bash", **given: Any) -> dict[str, Any]:  # noqa: ANN401 -- JSON
    return {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": given}


def session(where: Path, **fields: Any) -> BashTool:  # noqa: ANN401 -- of a policy
    return BashTool(limpet.Policy(**fields), limpet.ToolContext(where))


def refused(tool: BashTool, given: object) -> str:
    with pytest.raises(ToolError) as caught:
        asyncio.run(tool.call(given))
    assert isinstance(caught.value.content, str)
    return caught.value.content


# The bash tool


def test_the_runner_offers_and_runs_the_bash_tool(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    script = Script(
        [use(1, command="cd below; echo out; echo err >&2; X=1")],
        [use(2, command="pwd; echo $X"), use(3, command="exit 3")],
        [use(4, restart=True)],
        [use(5, command="pwd")],
    )
    told = asyncio.run(script.run([session(tmp_path)]))
    assert script.requests[0]["tools"] == [{"type": "bash_20250124", "name": "bash"}]
    assert told["toolu_1"] == {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": "out\nerr\n",
    }
    assert told["toolu_2"]["content"] == f"{tmp_path}/below\n\n", "variables do not persist"
    assert told["toolu_3"]["content"] == "[exit code 3]"
    assert "is_error" not in told["toolu_3"], "an exit code is an answer"
    assert told["toolu_4"]["content"] == f"bash was restarted; it is in {tmp_path}"
    assert told["toolu_5"]["content"] == f"{tmp_path}\n"


def test_what_could_not_be_done_is_sent_as_an_error(tmp_path: Path) -> None:
    script = Script(
        [use(1, command="git push --force"), use(2, command="echo a; sleep 60"), use(3)],
        [use(4, command=""), use(5, commnd="ls"), use(6, command="echo fine")],
    )
    told = asyncio.run(script.run([session(tmp_path, timeout_s=0.3)]))
    assert [told[f"toolu_{n}"].get("is_error", False) for n in range(1, 7)] == [True] * 5 + [False]
    assert "git-push-force" in told["toolu_1"]["content"]
    assert told["toolu_2"]["content"].startswith("a\n[timed out after 0.")
    assert told["toolu_3"]["content"] == (
        "command is required: text that is not empty; or restart: true"
    )
    assert told["toolu_4"]["content"] == 'command must be text that is not empty, not ""'
    assert told["toolu_5"]["content"] == "there is no 'commnd': the fields are command, restart"


def test_a_restart_with_a_command_does_both(tmp_path: Path) -> None:
    async def both() -> str:
        tool = session(tmp_path)
        await tool.call({"command": "cd /"})
        return await tool.call({"command": "pwd", "restart": True})

    assert asyncio.run(both()) == f"{tmp_path}\n"


@pytest.mark.parametrize("given", [None, "[]", 5, {"command": 5}, {"restart": "yes"}])
def test_any_input_is_answered(given: object, tmp_path: Path) -> None:
    assert refused(session(tmp_path), given)


def test_two_tools_are_two_conversations(tmp_path: Path) -> None:
    async def apart() -> str:
        one, other = session(tmp_path), session(tmp_path)
        await one.call({"command": "cd /"})
        return await other.call({"command": "pwd"})

    assert asyncio.run(apart()) == f"{tmp_path}\n"


def test_output_is_budgeted(tmp_path: Path) -> None:
    text = asyncio.run(session(tmp_path).call({"command": "seq 100000"}))
    assert len(text) < 31_000
    assert "left out; all of it is in" in text


def test_the_sandbox_holds(tmp_path: Path) -> None:
    tool = session(tmp_path, sandbox="read-only")
    text = asyncio.run(tool.call({"command": "touch here"}))
    assert "exit code 1" in text
    assert not (tmp_path / "here").exists()


def test_cancelling_the_runner_kills_the_tree(tmp_path: Path) -> None:
    async def cancel() -> None:
        script = Script([use(1, command="sleep 70 & setsid sleep 71 & touch up; wait")])
        running = asyncio.create_task(script.run([session(tmp_path)]))
        assert await asyncio.to_thread(wait_until, (tmp_path / "up").exists)
        assert await asyncio.to_thread(wait_until, lambda: len(marked_processes()) == 3)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert marked_processes() == {}, "all is dead by the time the cancelled call returns"

    asyncio.run(cancel())


def test_many_at_once(tmp_path: Path) -> None:
    async def many() -> list[str]:
        tool = session(tmp_path)
        return await asyncio.gather(
            *(tool.call({"command": f"sleep 0.2; echo {n}"}) for n in range(30))
        )

    assert asyncio.run(many()) == [f"{n}\n" for n in range(30)]


def test_the_sync_runner_has_its_twin(tmp_path: Path) -> None:
    script = Script(
        [use(1, command="cd /; git push -f")],
        [use(2, command="cd /")],
        [use(3, command="pwd"), use(4, restart=True), use(5, command="pwd")],
    )
    told = script.run_sync([BashToolSync(ctx=limpet.ToolContext(tmp_path))])
    assert script.requests[0]["tools"] == [{"type": "bash_20250124", "name": "bash"}]
    assert told["toolu_1"]["is_error"] is True
    assert told["toolu_3"]["content"] == "/\n"
    assert told["toolu_5"]["content"] == f"{tmp_path}\n"


# The tools of a profile


def test_the_runner_offers_and_runs_all_tools_of_a_profile(tmp_path: Path) -> None:
    box, ctx = limpet.profile("default"), limpet.ToolContext(tmp_path, session_id="a")
    script = Script(
        [use(1, command="echo hi; exit 3"), use(2, "bash_list"), use(3, command="git push -f")],
        [use(4, "bash_output", task="bash-none00"), use(5, command=5)],
    )
    told = asyncio.run(script.run([*tools(box, ctx)]))
    offered = script.requests[0]["tools"]
    assert [one["name"] for one in offered] == [one.name for one in box.definitions(ctx)]
    assert offered[0]["input_schema"] == box.input_schema
    assert offered[0]["description"].endswith(f"Working directory: {tmp_path}")
    assert told["toolu_1"]["content"] == "hi\n[exit code 3]"
    assert told["toolu_2"]["content"] == "(no tasks)"
    assert [told[f"toolu_{n}"].get("is_error") for n in range(1, 6)] == [
        None, None, True, True, True
    ]  # fmt: skip
    assert told["toolu_5"]["content"] == "command must be text that is not empty, not 5"


@pytest.mark.parametrize("name", NAMES)
def test_any_profile_can_be_offered_in_both_runners(name: str, tmp_path: Path) -> None:
    """An empty answer would be refused by the API."""
    box, ctx = limpet.profile(name), limpet.ToolContext(tmp_path)
    first = box.name
    told = asyncio.run(Script([use(1, first, command="true")]).run([*tools(box, ctx)]))
    same = Script([use(1, first, command="true")]).run_sync([*tools_sync(box, ctx)])
    assert told["toolu_1"]["content"]
    assert same["toolu_1"].keys() == told["toolu_1"].keys()
    assert "is_error" not in told["toolu_1"]


def test_a_sync_call_can_be_cancelled_from_outside(tmp_path: Path) -> None:
    cancel = threading.Event()
    tool = BashToolSync(ctx=limpet.ToolContext(tmp_path, cancel))

    def soon() -> None:
        wait_until((tmp_path / "up").exists)
        cancel.set()

    watcher = threading.Thread(target=soon)
    watcher.start()
    with pytest.raises(ToolError, match="cancelled"):
        tool.call({"command": "touch up; sleep 70"})
    watcher.join()
    assert marked_processes() == {}


# Its packaging


def test_without_the_package_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['anthropic'] = None\n"
        "try: import limpet.integrations.anthropic\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    assert "pip install 'limpet[anthropic]'" in done.stdout
