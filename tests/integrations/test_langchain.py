"""limpet's tools as LangChain takes them; only the chat model is scripted."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from support import marked_processes, wait_until

import limpet
from limpet.integrations.langchain import LimpetToolError, tools
from limpet.profiles import NAMES


def called(tool: BaseTool, arguments: dict[str, Any], **configurable: object) -> ToolMessage:
    """Return the message that a model's call comes to, made in both ways."""
    call: Any = {"name": tool.name, "args": arguments, "id": "1", "type": "tool_call"}
    config: Any = {"configurable": configurable}
    message = tool.invoke(call, config)
    later = asyncio.run(tool.ainvoke(call, config))
    assert isinstance(message, ToolMessage)
    assert (message.content, message.status) == (later.content, later.status)
    return message


def test_a_command_has_a_content_and_an_artifact() -> None:
    message = called(tools()[0], {"command": "echo hi; exit 3"})
    assert (message.content, message.status) == ("hi\n[exit code 3]", "success")
    assert message.artifact["exit_code"] == 3


@pytest.mark.parametrize("name", NAMES)
def test_every_profile_is_offered_as_it_is(name: str) -> None:
    toolbox = limpet.profile(name)
    for tool, definition in zip(tools(toolbox), toolbox.definitions(), strict=True):
        offered = convert_to_openai_tool(tool)["function"]
        assert (offered["name"], offered["description"]) == definition[:1] + definition[2:3]
        given = definition.input_schema
        assert offered["parameters"]["properties"] == given["properties"]
        assert offered["parameters"].get("required", []) == given.get("required", [])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"command": "ls", "mode": "fast"}, 'mode must be one of "default", "slow", "background"'),
        ({}, "command is required"),
        ({"command": "ls", "self": 1}, "there is no 'self'"),
    ],
)
def test_wrong_input_is_an_error_that_says_what_is_allowed(
    arguments: dict[str, Any], said: str
) -> None:
    message = called(tools(limpet.profile("modes"))[0], arguments)
    assert message.status == "error"
    assert said in str(message.content)


def test_a_refused_command_is_an_error_with_the_safer_way() -> None:
    message = called(tools()[0], {"command": "git push --force"})
    assert message.status == "error"
    assert "--force-with-lease" in str(message.content)


def test_a_host_that_handles_errors_itself_gets_the_whole_answer() -> None:
    tool = tools()[0]
    tool.handle_tool_error = False
    with pytest.raises(ToolException) as caught:
        tool.invoke({"command": "git push --force"})
    assert isinstance(caught.value, LimpetToolError)
    assert caught.value.answer.can_retry
    assert caught.value.answer.data["outcome"] == "refused"


def test_a_conversation_is_where_the_host_says(tmp_path: Path) -> None:
    tool = tools(ctx=limpet.ToolContext(tmp_path))[0]
    assert f"Working directory: {tmp_path}" in tool.description
    assert called(tool, {"command": "pwd"}).content == f"{tmp_path}\n"


def test_a_thread_sees_its_own_tasks_only() -> None:
    offered = {tool.name: tool for tool in tools()}
    config: Any = {"configurable": {"thread_id": 7}}
    offered["bash"].invoke({"command": "sleep 60", "background": True}, config)
    (task,) = limpet.Bash().tasks()
    try:
        assert task.id in str(called(offered["bash_list"], {}, thread_id="7").content)
        assert task.id not in str(called(offered["bash_list"], {}, thread_id="8").content)
    finally:
        task.stop_sync()


def test_a_cancelled_call_leaves_nothing_running(tmp_path: Path) -> None:
    async def main() -> None:
        tool = tools(ctx=limpet.ToolContext(tmp_path))[0]
        running = asyncio.create_task(tool.ainvoke({"command": "touch begun; sleep 60 & sleep 60"}))
        assert await asyncio.to_thread(wait_until, (tmp_path / "begun").exists)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not marked_processes()

    asyncio.run(main())


def test_many_calls_at_once_keep_their_answers_apart() -> None:
    tool = tools()[0]
    calls: list[Any] = [{"command": f"echo {number}"} for number in range(20)]
    expected = [f"{number}\n" for number in range(20)]
    assert asyncio.run(tool.abatch(calls)) == expected
    assert tool.batch(calls, {"max_concurrency": 4}) == expected


def test_a_sync_call_works_inside_of_a_loop() -> None:
    async def main() -> str:
        return str(tools()[0].invoke({"command": "echo hi"}))

    assert asyncio.run(main()) == "hi\n"


def test_a_chat_models_call_is_answered_end_to_end() -> None:
    (tool, *_) = tools()
    ai = AIMessage(
        "", tool_calls=[{"name": "bash", "args": {"command": "echo $((6*7))"}, "id": "call-1"}]
    )
    history = [HumanMessage("What is 6*7?"), ai, tool.invoke(ai.tool_calls[0])]
    assert isinstance(history[-1], ToolMessage)
    assert (history[-1].content, history[-1].tool_call_id) == ("42\n", "call-1")


def test_without_the_package_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['langchain_core'] = None\n"
        "try: import limpet.integrations.langchain\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert "pip install 'limpet[langchain]'" in done.stdout
