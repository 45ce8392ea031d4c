"""The MCP server, asked by the SDK's own client in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from support import is_running, wait_until

import limpet
from limpet.integrations import mcp as mcp_module
from limpet.integrations.mcp import McpServer
from limpet.profiles import Toolbox, profile
from tasks.helpers import end_all

Ask = Callable[[Client], Awaitable[Any]]


def served(
    ask: Ask,
    work: Path,
    *,
    restricted: bool = False,
    mode: str = "auto",
    session_id: str | None = None,
    **options: Any,  # noqa: ANN401 -- of the profile
) -> Any:  # noqa: ANN401 -- whatever is asked for
    """Return what a client gets from a server of the default profile."""

    async def main() -> Any:  # noqa: ANN401
        server = McpServer(
            lambda: profile(**options),
            limpet.ToolContext(work, restricted=restricted, session_id=session_id),
        )
        async with Client(server.server, mode=mode) as client:
            return await ask(client)

    try:
        return asyncio.run(main())
    finally:
        end_all()


def called(work: Path, tool: str, arguments: dict[str, Any], **options: Any) -> Any:  # noqa: ANN401
    async def ask(client: Client) -> Any:  # noqa: ANN401
        return await client.call_tool(tool, arguments)

    return served(ask, work, **options)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_tools_have_titles_schemas_and_annotations(tmp_path: Path, mode: str) -> None:
    async def ask(client: Client) -> Any:  # noqa: ANN401
        return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in served(ask, tmp_path, mode=mode)}
    assert list(tools) == [
        "bash", "bash_output", "bash_wait", "bash_send", "bash_stop", "bash_list",
    ]  # fmt: skip
    for tool in tools.values():
        assert tool.title and tool.description
        assert tool.input_schema["type"] == tool.output_schema["type"] == "object"
    assert str(tmp_path) in tools["bash"].description
    runs, reads, stops = (tools[name].annotations for name in ("bash", "bash_list", "bash_stop"))
    assert (runs.read_only_hint, runs.destructive_hint, runs.open_world_hint) == (False, True, True)
    assert (reads.read_only_hint, reads.destructive_hint) == (True, False)
    assert (stops.read_only_hint, stops.destructive_hint, stops.open_world_hint) == (
        False, True, False,
    )  # fmt: skip


def test_annotations_are_true_to_a_restricted_conversation(tmp_path: Path) -> None:
    async def ask(client: Client) -> Any:  # noqa: ANN401
        return (await client.list_tools()).tools[0]

    tool = served(ask, tmp_path, restricted=True)
    hints = tool.annotations
    assert (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint) == (
        True, False, False,
    )  # fmt: skip
    assert "read-only sandbox" in tool.description
    denied = called(tmp_path, "bash", {"command": "touch made"}, restricted=True)
    assert "Read-only file system" in denied.content[0].text or "denied" in denied.content[0].text
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_answer_has_text_and_structured_content_that_fits_its_schema(
    tmp_path: Path, mode: str
) -> None:
    """The client validates it against the output schema, and would raise."""
    result = called(tmp_path, "bash", {"command": "echo hi; exit 3"}, mode=mode)
    assert result.content[0].text == "hi\n[exit code 3]"
    assert (result.is_error, result.structured_content["exit_code"]) == (False, 3)


@pytest.mark.parametrize("name", ["report", "tasks", "modes", "tail", "streams"])
def test_every_profile_can_be_served(tmp_path: Path, name: str) -> None:
    async def ask(client: Client) -> Any:  # noqa: ANN401
        tool = (await client.list_tools()).tools[0].name
        return await client.call_tool(tool, {"command": "echo hi"})

    result = served(ask, tmp_path, which=name)
    assert "hi" in result.content[0].text
    assert not result.is_error


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("bash", {"command": "git add -A"}, "git-add-blind"),
        ("bash", {"cmd": "ls"}, "there is no 'cmd'"),
        ("bash", {"command": "ls", "timeout_s": "5"}, "timeout_s must be a number"),
        ("bash", {}, "command is required"),
        ("bash_output", {"task": "bash-nothere"}, "no task"),
        ("nope", {}, "has no tool 'nope'"),
    ],
)
def test_what_cannot_be_done_is_an_error_of_the_tool_not_of_the_protocol(
    tmp_path: Path, tool: str, arguments: dict[str, Any], said: str
) -> None:
    result = called(tmp_path, tool, arguments)
    assert result.is_error
    assert said in result.content[0].text


def test_a_long_command_tells_how_it_goes(tmp_path: Path) -> None:
    told: list[tuple[float, str | None]] = []

    async def ask(client: Client) -> Any:  # noqa: ANN401
        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            told.append((progress, message))
            if len(told) == 2:
                (tmp_path / "go").touch()

        command = "echo step one; while [ ! -e go ]; do sleep 0.05; done; echo done"
        return await client.call_tool("bash", {"command": command}, progress_callback=on_progress)

    result = served(ask, tmp_path, mode="legacy")
    assert result.content[0].text == "step one\ndone\n"
    assert [message for _, message in told if "step one (" not in (message or "")] == []
    assert sorted(told) == told and len(told) >= 2


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_cancel_kills_the_tree_and_the_server_goes_on(tmp_path: Path, mode: str) -> None:
    async def ask(client: Client) -> Any:  # noqa: ANN401
        call = asyncio.create_task(
            client.call_tool("bash", {"command": "sleep 60 & echo $! $$ > pids; wait"})
        )
        while not (tmp_path / "pids").exists() or not (tmp_path / "pids").read_text():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        call.cancel()
        await asyncio.wait([call])
        return await client.call_tool("bash", {"command": "echo alive"})

    assert served(ask, tmp_path, mode=mode).content[0].text == "alive\n"
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert wait_until(lambda: not any(map(is_running, pids)))


def test_many_calls_run_at_once(tmp_path: Path) -> None:
    """Each waits for all the others."""

    async def ask(client: Client) -> Any:  # noqa: ANN401
        command = "touch here-{}; until [ $(ls here-* | wc -l) = 32 ]; do sleep 0.05; done; echo {}"
        calls = (
            client.call_tool("bash", {"command": command.format(n, n), "timeout_s": 30})
            for n in range(32)
        )
        return await asyncio.gather(*calls)

    results = served(ask, tmp_path)
    assert sorted(int(one.content[0].text) for one in results) == list(range(32))


def test_more_calls_than_can_wait_are_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_module, "MAX_WAITING", 1)

    async def ask(client: Client) -> Any:  # noqa: ANN401
        first = asyncio.create_task(
            client.call_tool(
                "bash", {"command": "touch began; until [ -e go ]; do sleep 0.02; done"}
            )
        )
        while not (tmp_path / "began").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        second = await client.call_tool("bash", {"command": "true"})
        (tmp_path / "go").touch()
        return await first, second

    first, second = served(ask, tmp_path)
    assert (first.is_error, second.is_error) == (False, True)
    assert "calls are under way" in second.content[0].text


def test_tasks_are_resources_whose_content_is_their_output(tmp_path: Path) -> None:
    async def ask(client: Client) -> Any:  # noqa: ANN401
        command = {"command": "echo first; sleep 60", "background": True, "description": "Serve"}
        started = await client.call_tool("bash", command)
        task = started.structured_content["task_id"]
        await client.call_tool("bash_wait", {"task": task, "until": "/first/"})
        listed = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        read = await client.read_resource(f"limpet://tasks/{task}")
        return task, listed, templates, read

    task, listed, templates, read = served(ask, tmp_path)
    assert [(one.uri, one.title) for one in listed] == [(f"limpet://tasks/{task}", "Serve")]
    assert listed[0].description.startswith("running")
    assert templates[0].uri_template == "limpet://tasks/{id}"
    assert read.contents[0].text == "first\n"


@pytest.mark.parametrize("uri", ["limpet://tasks/bash-000000", "file:///etc/passwd"])
def test_a_resource_that_is_not_there_is_an_error(tmp_path: Path, uri: str) -> None:
    async def ask(client: Client) -> None:
        with pytest.raises(MCPError, match=r"no task|no resource"):
            await client.read_resource(uri)

    served(ask, tmp_path)


def test_a_session_sees_its_own_tasks_only(tmp_path: Path, bash: limpet.Bash) -> None:
    bash.start_sync("sleep 60", ctx=limpet.ToolContext(session_id="another"))

    async def ask(client: Client) -> Any:  # noqa: ANN401
        return (await client.list_resources()).resources

    assert served(ask, tmp_path, session_id="own") == []


def test_the_tools_are_made_when_they_are_first_asked_for(tmp_path: Path) -> None:
    """The handshake need not wait for them."""
    made: list[Toolbox] = []

    def make() -> Toolbox:
        made.append(profile())
        return made[-1]

    async def main() -> None:
        server = McpServer(make, limpet.ToolContext(tmp_path))
        async with Client(server.server) as client:
            assert client.session is not None and not made
            await client.list_tools()
            assert len(made) == 1

    asyncio.run(main())
