"""The MCP server over HTTP: who may connect, and from where."""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

from limpet.integrations.mcp import McpServer

_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_App = Callable[[_Scope, _Receive, _Send], Awaitable[None]]
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_GRACE_S = 1


def is_loopback(host: str) -> bool:
    """True if only programs of this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Bearer:
    """Lets requests through that carry the token."""

    def __init__(self, app: _App, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] != "http" or self._is_allowed(scope):
            await self._app(scope, receive, send)
            return
        headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": b"a bearer token is required\n"})

    def _is_allowed(self, scope: _Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(given) == 1 and hmac.compare_digest(given[0], self._wanted)


async def serve(
    server: McpServer,
    host: str,
    port: int,
    *,
    token: str | None = None,
    hosts: tuple[str, ...] = (),
    origins: tuple[str, ...] = (),
    on_ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until the program is told to end.

    Args:
        server: What to serve.
        host: Where to listen; elsewhere than on this machine only with a token.
        port: Which port; 0 is any that is free.
        token: What clients must send as a bearer token.
        hosts: What else the Host header may say, such as `bash.example.org`.
        origins: Web pages that may connect, such as `https://example.org`.
        on_ready: Called with the address once it listens.

    Raises:
        OSError: It cannot listen there.
        ValueError: It would be open to everybody.
    """
    if token is None and not is_loopback(host):
        raise ValueError(f"to listen on {host} needs a token: whoever connects can run commands")
    listening = _listen(host, port)
    bound = listening.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    names = [*_LOOPBACK, shown, *hosts]
    app: _App = server.app(
        hosts=[*(f"{name}:*" for name in names), *hosts],
        origins=[*(f"http://{name}:*" for name in _LOOPBACK), *origins],
    )
    if token is not None:
        app = Bearer(app, token)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_S,
    )
    on_ready(f"http://{shown}:{bound}/mcp")
    try:
        await uvicorn.Server(config).serve(sockets=[listening])
    finally:
        await server.cancel_calls()
        listening.close()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=128)
