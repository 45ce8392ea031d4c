"""OpenAI's real Agents SDK, with a scripted model; and the items of the Responses API."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, ShellTool
from agents.strict_schema import ensure_strict_json_schema
from agents.testing import ScriptedModel, assistant_message, function_call
from openai.types.responses import ResponseFunctionShellToolCall, ResponseFunctionToolCall
from openai.types.responses.response_function_shell_tool_call import Action
from support import marked_processes, wait_until

import limpet
from limpet.integrations.openai import call, definitions, shell_executor, tools
from limpet.profiles import NAMES

CONFIG = RunConfig(tracing_disabled=True)
NUMBERS = count()


async def run(offered: list[Any], *turns: list[Any]) -> list[dict[str, Any]]:
    """Run an agent whose model makes these calls; return all items of the conversation."""
    model = ScriptedModel([*turns, [assistant_message("done")]])
    agent = Agent(name="worker", model=model, tools=offered)
    result = await Runner.run(agent, "go", run_config=CONFIG)
    assert result.final_output == "done"
    model.assert_complete()
    return [dict(item) for item in result.to_input_list()]


def texts(items: list[dict[str, Any]]) -> list[str]:
    return [one["output"] for one in items if one.get("type") == "function_call_output"]


def calls(*given: object, tool: str = "bash") -> list[Any]:
    return [
        function_call(
            tool,
            one if isinstance(one, str) else json.dumps(one),
            call_id=f"call_{next(NUMBERS)}",
        )
        for one in given
    ]


async def alive(sign: Path, processes: int) -> None:
    """Wait for a sign of life of so many processes."""
    await seen(sign.exists)
    await seen(lambda: len(marked_processes()) == processes)


async def seen(condition: Callable[[], bool]) -> None:
    assert await asyncio.to_thread(wait_until, condition)


async def cancelled(running: asyncio.Task[Any]) -> None:
    """Cancel a run, and see that nothing of it is left."""
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await seen(lambda: not marked_processes())  # the SDK does not wait for what it cancels


# Function tools


def test_an_agent_calls_the_tools_of_a_profile(tmp_path: Path) -> None:
    box, ctx = limpet.profile("default"), limpet.ToolContext(tmp_path, session_id="a")
    offered = tools(box, ctx)
    items = asyncio.run(
        run(
            [*offered],
            calls({"command": "pwd; exit 3", "description": None, "timeout_s": None}),
            calls({"status": None}, tool="bash_list"),
        )
    )
    assert texts(items) == [f"{tmp_path}\n[exit code 3]", "(no tasks)"]
    assert [one.name for one in offered] == [one.name for one in box.definitions(ctx)]
    assert offered[0].description.endswith(f"Working directory: {tmp_path}")


@pytest.mark.parametrize("name", NAMES)
def test_every_schema_is_strict_as_the_sdk_wants_it(name: str) -> None:
    """The SDK rewrites what is not strict, and refuses what cannot be made so."""
    box = limpet.profile(name)
    for tool, plain in zip(tools(box), definitions(box), strict=True):
        assert tool.strict_json_schema
        assert tool.params_json_schema == plain["parameters"]
        assert plain["parameters"] is not None
        copy = json.loads(json.dumps(plain["parameters"]))
        assert ensure_strict_json_schema(copy) == plain["parameters"]
        assert plain["strict"] is True
        assert plain["type"] == "function"


def test_what_went_wrong_is_text_for_the_model(tmp_path: Path) -> None:
    box = limpet.profile("default", limpet.Policy(timeout_s=0.3))
    offered = tools(box, limpet.ToolContext(tmp_path))
    refused, late, wrong, broken, fine = texts(
        asyncio.run(
            run(
                [*offered],
                calls({"command": "git push -f"}),
                calls({"command": "echo a; sleep 60"}),
                calls({"command": 5}),
                calls('{"command": '),
                calls({"command": "echo fine"}),
            )
        )
    )
    assert "git-push-force" in refused
    assert late.startswith("a\n[timed out after 0.")
    assert wrong == "command must be text that is not empty, not 5"
    assert broken.startswith("the input is not JSON that can be read")
    assert fine == "fine\n"


def test_a_host_that_fails_does_not_end_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def approve(_: object) -> bool:
        raise RuntimeError("the window is closed")

    policy = limpet.Policy(permissions=limpet.PermissionPolicy(ask=("ls",)), approve=approve)
    offered = tools(limpet.profile("default", policy), limpet.ToolContext(tmp_path))
    (text,) = texts(asyncio.run(run([*offered], calls({"command": "ls"}))))
    assert text == "the tool bash has failed: RuntimeError('the window is closed')"
    assert "Traceback" in caplog.text


def test_many_calls_run_at_once(tmp_path: Path) -> None:
    offered = tools(limpet.profile("default"), limpet.ToolContext(tmp_path))
    many = calls(*({"command": f"sleep 0.5; echo {n}"} for n in range(20)))
    began = time.monotonic()
    items = asyncio.run(run([*offered], many))
    assert sorted(texts(items), key=int) == [f"{n}\n" for n in range(20)]
    assert time.monotonic() - began < 5


def test_cancelling_the_run_kills_the_tree(tmp_path: Path) -> None:
    async def cancel() -> None:
        offered = tools(limpet.profile("default"), limpet.ToolContext(tmp_path))
        command = {"command": "sleep 70 & setsid sleep 71 & touch up; wait"}
        running = asyncio.create_task(run([*offered], calls(command)))
        await alive(tmp_path / "up", 3)
        await cancelled(running)

    asyncio.run(cancel())


# The Responses API


@pytest.mark.parametrize("as_dict", [True, False])
def test_a_function_call_item_becomes_its_output_item(as_dict: bool, tmp_path: Path) -> None:
    item = ResponseFunctionToolCall(
        type="function_call", call_id="call_7", name="bash", arguments='{"command": "pwd"}'
    )
    box, ctx = limpet.profile("default"), limpet.ToolContext(tmp_path)
    answer = asyncio.run(call(box, item.model_dump() if as_dict else item, ctx))
    assert answer == {
        "type": "function_call_output",
        "call_id": "call_7",
        "output": f"{tmp_path}\n",
    }


def test_a_call_of_a_tool_that_is_not_there_is_answered() -> None:
    item = {"call_id": "call_7", "name": "shell", "arguments": "{}"}
    answer = asyncio.run(call(limpet.profile("modes"), item))
    assert answer["output"] == "the profile modes has no tool 'shell': bash"


# The shell tool


def shell(
    *commands: str, timeout_ms: int | None = None, max_output_length: int | None = None
) -> list[Any]:
    return [
        ResponseFunctionShellToolCall(
            type="shell_call",
            id="shell_1",
            call_id="call_1",
            status="completed",
            action=Action(
                commands=[*commands], timeout_ms=timeout_ms, max_output_length=max_output_length
            ),
        )
    ]


def executed(where: Path, turn: list[Any], **fields: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    tool = ShellTool(executor=shell_executor(limpet.Policy(**fields), limpet.ToolContext(where)))
    items = asyncio.run(run([tool], turn))
    (item,) = [one for one in items if one.get("type") == "shell_call_output"]
    output: list[dict[str, Any]] = item["output"]
    return output


def exited(code: int) -> dict[str, Any]:
    return {"type": "exit", "exit_code": code}


def test_commands_run_in_order_each_with_its_own_outcome(tmp_path: Path) -> None:
    outputs = executed(
        tmp_path,
        shell(
            "echo a > file", "cat file; echo err >&2; exit 4", "kill -9 $$", "git push -f", "pwd"
        ),
    )
    assert [one["outcome"] for one in outputs] == [exited(n) for n in (0, 4, 137, 126, 0)]
    assert outputs[1]["stdout"] == "a\n"
    assert outputs[1]["stderr"] == "err\n"
    assert outputs[3]["stdout"] == ""
    assert outputs[3]["stderr"].startswith("[refused: ")
    assert outputs[4]["stdout"] == f"{tmp_path}\n"


def test_a_command_that_cannot_start_says_why(tmp_path: Path) -> None:
    first, second = executed(tmp_path / "gone", shell("pwd", "pwd"))
    assert first["outcome"] == exited(125)
    assert "gone" in first["stderr"]
    assert second["outcome"] == exited(125)


def test_after_a_timeout_the_rest_is_not_run(tmp_path: Path) -> None:
    outputs = executed(
        tmp_path, shell("sleep 0.4", "echo two; sleep 60", "touch three", "true", timeout_ms=700)
    )
    assert [one["outcome"] for one in outputs] == [exited(0), {"type": "timeout"}]
    assert outputs[1]["stdout"] == "two\n"
    limit = re.match(
        r"\[stopped at the limit of (0\.\d+) s; raise timeout_ms", outputs[1]["stderr"]
    )
    assert limit is not None
    assert float(limit[1]) <= 0.3, "the time is for all of them together"
    assert outputs[1]["stderr"].endswith("[out of time: 2 commands after this did not run]\n")
    assert not (tmp_path / "three").exists()


def test_the_shortest_time_limit_still_answers(tmp_path: Path) -> None:
    outputs = executed(tmp_path, shell("sleep 60", "true", timeout_ms=1))
    assert [one["outcome"] for one in outputs] == [{"type": "timeout"}]


def test_the_policys_time_limit_holds_where_the_model_gives_none(tmp_path: Path) -> None:
    (output,) = executed(tmp_path, shell("sleep 60"), timeout_s=0.2)
    assert output["outcome"] == {"type": "timeout"}


@pytest.mark.parametrize("most", [0, 1, 40, 1000, 100_000])
def test_no_more_is_returned_than_the_model_wants(most: int, tmp_path: Path) -> None:
    turn = shell("seq 3000", "seq 3000 >&2; echo last >&2", "echo short", max_output_length=most)
    outputs = executed(tmp_path, turn)
    everything = "".join(one["stdout"] + one["stderr"] for one in outputs)
    assert len(everything) <= most
    assert [one["outcome"] for one in outputs] == [exited(0)] * 3
    if most >= 1000:
        assert outputs[0]["stdout"].startswith("1\n2\n")
        assert outputs[0]["stdout"].endswith("2999\n3000\n"), "the tail is what matters most"
        assert outputs[1]["stderr"].endswith("\nlast\n")
        assert outputs[2]["stdout"] == "short\n", "what is short is not cut"
    assert ("left out" in everything) == (most == 1000)


def test_the_directory_persists_only_if_the_policy_says_so(tmp_path: Path) -> None:
    assert executed(tmp_path, shell("cd /", "pwd"))[1]["stdout"] == f"{tmp_path}\n"
    assert executed(tmp_path, shell("cd /", "pwd"), persist_cwd=True)[1]["stdout"] == "/\n"


def test_a_cancelled_conversation_runs_nothing_more(tmp_path: Path) -> None:
    async def give_up() -> Any:  # noqa: ANN401 -- an item
        cancel = asyncio.Event()
        ctx = limpet.ToolContext(tmp_path, cancel)
        tool = ShellTool(executor=shell_executor(ctx=ctx))
        running = asyncio.create_task(run([tool], shell("touch up; sleep 70", "touch never")))
        await seen((tmp_path / "up").exists)
        cancel.set()
        return (await running)[-2]

    (output,) = asyncio.run(give_up())["output"]
    assert output["outcome"] == exited(130)
    assert output["stderr"].endswith("[cancelled: 1 command after this did not run]\n")
    assert not (tmp_path / "never").exists()


def test_cancelling_the_run_kills_the_shell_command(tmp_path: Path) -> None:
    async def cancel() -> None:
        tool = ShellTool(executor=shell_executor(ctx=limpet.ToolContext(tmp_path)))
        turn = shell("setsid sleep 71 & touch up; sleep 70; true", "touch never")
        running = asyncio.create_task(run([tool], turn))
        await alive(tmp_path / "up", 3)
        await cancelled(running)

    asyncio.run(cancel())
    assert not (tmp_path / "never").exists()


# Its packaging


def test_without_the_package_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['agents'] = None\n"
        "try: import limpet.integrations.openai\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    assert "pip install 'limpet[openai]'" in done.stdout
