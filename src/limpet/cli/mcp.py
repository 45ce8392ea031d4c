"""`limpet mcp`: the tools of a profile, served to an MCP client."""

from __future__ import annotations

import argparse
import os
import signal
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from limpet.cli import confine
from limpet.cli.check import PACKS, policy_of
from limpet.cli.profiled import add_profile, conversation, own_options, toolbox
from limpet.cli.sink import print_now
from limpet.policy import Policy

if TYPE_CHECKING:
    import asyncio

    from limpet.integrations.mcp import McpServer

_EXAMPLES = """\
examples:
  limpet mcp                                          on stdin and stdout, as clients start it
  limpet mcp --sandbox workspace --cwd /repo
  limpet mcp --profile modes --restricted
  limpet mcp --http 127.0.0.1:8100                    at http://127.0.0.1:8100/mcp
  LIMPET_MCP_TOKEN=… limpet mcp --http 0.0.0.0:8100   elsewhere only with a token

clients: claude mcp add limpet -- limpet mcp          and others: docs/integrations.md

exit status: 0 when the client has gone; 1 if it cannot listen; 2 wrong arguments.
"""
_TOKEN = "LIMPET_MCP_TOKEN"  # noqa: S105 -- the name of the variable
_MAX_TASKS = 100
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "mcp",
        help="serve a profile's tools to an MCP client",
        description="Serve the tools of a profile by the Model Context Protocol: on stdin and"
        " stdout, or over HTTP.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_profile(parser)
    parser.add_argument("--http", metavar="HOST:PORT", help="serve over HTTP at /mcp")
    parser.add_argument("--token-file", metavar="F",
                        help=f"with the token that clients must send (or {_TOKEN})")  # fmt: skip
    parser.add_argument("--allow-host", action="append", default=[], metavar="NAME",
                        help="what else the Host header may say")  # fmt: skip
    parser.add_argument("--allow-origin", action="append", default=[], metavar="URL",
                        help="a web page that may connect")  # fmt: skip
    parser.add_argument("--session", metavar="ID", help="see and tell of this one's tasks only")
    parser.add_argument("--timeout", type=float, metavar="S",
                        help="seconds, of a call that gives none (default: 120)")  # fmt: skip
    parser.add_argument("--max-calls", type=int, metavar="N",
                        help="commands that run at once; more wait (default: 64)")  # fmt: skip
    parser.add_argument("--max-tasks", type=int, metavar="N",
                        help=f"background tasks at once (default: {_MAX_TASKS})")  # fmt: skip
    parser.add_argument("--rules", choices=PACKS,
                        help="which commands to refuse (default: limpet.toml's)")  # fmt: skip
    confine.add_arguments(parser)
    parser.set_defaults(call=_mcp)


def _mcp(options: argparse.Namespace) -> int:
    policy = _bounded(confine.confined(policy_of(options, options.cwd), options), options)
    own_options(options)  # what is wrong with them is told now, and not to the first client
    address = _address(options)
    if address is None and os.isatty(0):
        print_now(2, "limpet: waits for an MCP client on standard input; see limpet mcp --help\n")
    import asyncio

    try:
        from limpet.integrations.mcp import McpServer
    except ImportError as error:
        print_now(2, f"limpet: {error}\n")
        return 1
    server = McpServer(lambda: toolbox(options, policy), conversation(options))
    return asyncio.run(_on_stdio(server) if address is None else _on_http(server, address, options))


def _bounded(policy: Policy, options: argparse.Namespace) -> Policy:
    given = {
        "timeout_s": options.timeout,
        "max_concurrent": options.max_calls,
        "max_tasks": _MAX_TASKS if options.max_tasks is None else options.max_tasks,
    }
    return replace(policy, **{name: value for name, value in given.items() if value is not None})


def _address(options: argparse.Namespace) -> tuple[str, int] | None:
    if options.http is None:
        for flag in ("token_file", "allow_host", "allow_origin"):
            if getattr(options, flag):
                raise ValueError(f"--{flag.replace('_', '-')} needs --http")
        return None
    host, colon, port = options.http.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"--http takes HOST:PORT, as in 127.0.0.1:8100, not {options.http!r}")
    return host.strip("[]") or "127.0.0.1", int(port)


async def _on_stdio(server: McpServer) -> int:
    import asyncio

    loop = asyncio.get_running_loop()
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup wants it so
            loop.add_signal_handler(number, _leave, server, loop, number)
    await server.serve_stdio()
    await server.cancel_calls()
    return 0


def _leave(server: McpServer, loop: asyncio.AbstractEventLoop, number: int) -> None:
    """Kill what runs, and end: the thread that reads stdin would keep us until that is closed."""
    ending = loop.create_task(server.cancel_calls())
    ending.add_done_callback(lambda _: os._exit(128 + number))


async def _on_http(server: McpServer, address: tuple[str, int], options: argparse.Namespace) -> int:
    from limpet.integrations.mcp_http import serve

    def on_ready(url: str) -> None:
        print_now(2, f"limpet: serves {options.profile} at {url}\n")

    with suppress(KeyboardInterrupt):  # raised again by uvicorn once all is closed
        await serve(
            server,
            *address,
            token=_token(options),
            hosts=tuple(options.allow_host),
            origins=tuple(options.allow_origin),
            on_ready=on_ready,
        )
    return 0


def _token(options: argparse.Namespace) -> str | None:
    token = os.getenv(_TOKEN)
    if options.token_file is not None:
        with open(options.token_file) as file:
            token = file.readline().strip()
        if not token:
            raise ValueError(f"--token-file {options.token_file} is empty")
    return token or None
