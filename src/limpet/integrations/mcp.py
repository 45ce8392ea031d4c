"""The Model Context Protocol: the tools of a profile, and background tasks as resources.

    server = McpServer(lambda: limpet.profile("default"), limpet.ToolContext("/repo"))
    await server.serve_stdio()

A refused command, wrong arguments and an unknown tool are answers of the tool, with `isError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from limpet import __version__
from limpet.context import ToolContext

try:
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.shared.exceptions import MCPError
except ImportError as error:  # pragma: no cover
    raise ImportError("the MCP server needs the SDK: pip install 'limpet[mcp]'") from error

if TYPE_CHECKING:
    import anyio
    from mcp.server.context import ServerRequestContext
    from starlette.applications import Starlette

    from limpet.events import Progress
    from limpet.profiles import Answer, Definition, TaskFacts, Toolbox

MAX_WAITING = 256
"""Calls beyond this are answered at once with an error, instead of being queued."""
_SCHEME = "limpet://tasks/"
_TEXT = "text/plain"
_MOST_RESOURCES = 200
_READ_BYTES = 1 << 20
_INSTRUCTIONS = """\
Runs shell commands. Each call is a shell of its own, without a terminal. What goes on in the \
background is a task, which can be read as a resource limpet://tasks/ID too."""


class McpServer:
    """One profile served to any number of clients."""

    def __init__(self, open_toolbox: Callable[[], Toolbox], ctx: ToolContext) -> None:
        """Prepare to serve.

        Args:
            open_toolbox: Returns the tools; called when they are first asked for, so that the
                handshake does not wait for it.
            ctx: The conversation: where it works, what it may do, which tasks it sees.
        """
        self._open = open_toolbox
        self._ctx = ctx
        self._calls: set[asyncio.Task[Any]] = set()
        self.server: Server[Any] = Server(
            "limpet",
            version=__version__,
            title="limpet",
            description="The bash tool for LLM agents.",
            instructions=_INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
        )

    @cached_property
    def toolbox(self) -> Toolbox:
        """The tools, made when they are first needed."""
        return self._open()

    # Transports

    async def serve_stdio(self) -> None:
        """Serve one client on stdin and stdout, until it closes them."""
        from mcp.server.stdio import stdio_server

        async with stdio_server() as (reading, writing):
            options = self.server.create_initialization_options()
            await self.server.run(reading, writing, options)

    def app(self, *, hosts: list[str], origins: list[str]) -> Starlette:
        """Return what serves clients over HTTP, at `/mcp`.

        Args:
            hosts: What the Host header may say, such as `127.0.0.1:*`.
            origins: What the Origin header may say, if a browser sends one.
        """
        from mcp.server.transport_security import TransportSecuritySettings

        security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)
        return self.server.streamable_http_app(transport_security=security)

    async def cancel_calls(self) -> None:
        """Kill all that runs for clients, and wait until it is dead."""
        for call in self._calls:
            call.cancel()
        if self._calls:
            await asyncio.wait(self._calls)

    # Tools

    async def _list_tools(self, _: ServerRequestContext[Any], __: object) -> types.ListToolsResult:
        tools = [_tool(one) for one in self.toolbox.definitions(self._ctx)]
        return types.ListToolsResult(tools=tools)

    async def _call_tool(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if len(self._calls) >= MAX_WAITING:
            return _error(f"{MAX_WAITING} calls are under way: wait for some of them")
        # A task of its own: the protocol's cancel comes again and again until the call has ended,
        # and one is enough to kill.
        call = asyncio.create_task(self._answered(context, params))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            call.cancel()
            with _shielded():
                await asyncio.wait([call])
            raise

    async def _answered(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        arguments = params.arguments or {}
        try:
            if (context.meta or {}).get("progress_token") is None:
                answer = await self.toolbox.call(arguments, self._ctx, tool=params.name)
            else:
                answer = await self._watched(context, params.name, arguments)
        except LookupError as error:
            return _error(str(error.args[0]))
        return types.CallToolResult(
            content=[types.TextContent(text=answer.text)],
            structured_content=answer.data,
            is_error=answer.is_error,
        )

    async def _watched(
        self, context: ServerRequestContext[Any], name: str, arguments: dict[str, Any]
    ) -> Answer:
        """Call a tool, and tell the client how it goes."""
        from limpet.events import Progress
        from limpet.profiles import Answer

        # The engine's events, whatever form the profile has for them.
        async with aclosing(self.toolbox.watch(arguments, self._ctx, tool=name)) as events:
            async for event in events:
                if isinstance(event, Answer):
                    return event
                if isinstance(event, Progress):
                    await context.session.report_progress(event.elapsed_s, None, _said(event))
        raise AssertionError("a call has no answer")

    # Resources

    async def _list_resources(
        self, _: ServerRequestContext[Any], __: object
    ) -> types.ListResourcesResult:
        from limpet.profiles import TaskFacts
        from limpet.profiles.reach import visible

        found = []
        for task, _state in islice(visible(self.toolbox.bash, self._ctx), _MOST_RESOURCES):
            with suppress(OSError):  # removed by another program at this moment
                found.append(_resource(TaskFacts.of(task)))
        return types.ListResourcesResult(resources=found)

    async def _list_templates(
        self, _: ServerRequestContext[Any], __: object
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template=f"{_SCHEME}{{id}}",
            name="task",
            title="A background task's output",
            description="All that a background task has printed so far.",
            mime_type=_TEXT,
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def _read_resource(
        self, _: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        from limpet.errors import TaskNotFound
        from limpet.profiles.reach import find

        uri = str(params.uri)
        if not uri.startswith(_SCHEME):
            why = f"no resource {uri!r}; tasks are {_SCHEME}ID"
            raise MCPError(types.INVALID_PARAMS, why, {"uri": uri})
        try:
            task = find(self.toolbox.bash, self._ctx, uri.removeprefix(_SCHEME))
            text = task.output(limit=_READ_BYTES).text
        except (TaskNotFound, OSError) as error:
            raise MCPError(types.INVALID_PARAMS, str(error), {"uri": uri}) from None
        contents = types.TextResourceContents(uri=uri, mime_type=_TEXT, text=text)
        return types.ReadResourceResult(contents=[contents])


def _tool(one: Definition) -> types.Tool:
    hints = one.hints
    return types.Tool(
        name=one.name,
        title=one.title,
        description=one.description,
        input_schema=one.input_schema,
        output_schema=one.output_schema,
        annotations=types.ToolAnnotations(
            title=one.title,
            read_only_hint=hints.is_read_only,
            destructive_hint=hints.is_destructive,
            idempotent_hint=hints.is_idempotent,
            open_world_hint=hints.is_open_world,
        ),
    )


def _error(text: str) -> types.CallToolResult:
    data = {"error": "invalid_input", "message": text, "retry": True}
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=data, is_error=True
    )


def _said(event: Progress) -> str:
    from limpet.render.safe import one_line
    from limpet.render.summary import seconds, size

    counters = f"{seconds(event.elapsed_s)}, {event.lines} lines, {size(event.bytes)}"
    last = one_line(event.last_line)
    return f"{last} ({counters})" if last else counters


def _resource(facts: TaskFacts) -> types.Resource:
    code = "" if facts.exit_code is None else f" {facts.exit_code}"
    return types.Resource(
        uri=f"{_SCHEME}{facts.id}",
        name=facts.id,
        title=facts.description or facts.display or facts.id,
        description=f"{facts.status}{code} after {facts.duration_s:.0f} s: {facts.display}",
        mime_type=_TEXT,
    )


def _shielded() -> anyio.CancelScope:
    import anyio

    return anyio.CancelScope(shield=True)
