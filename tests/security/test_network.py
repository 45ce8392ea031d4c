"""An opened network opens nothing else, and single ports open only these."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

import limpet
from limpet.events import Output
from security.attacks import driver
from security.campaign import make
from security.host import MODES, USERS, as_user, scratch, tool

ATTEMPTS = [
    ("sockets", name) for name in (*driver.PROGRAMS["sockets"], *driver.COMMANDS["sockets"])
]
OPENED = (
    "tcp", "udp", "made: listen", "made: UDP-Lite", "made: netlink route", "made: SCTP",
    "made: ping",
)  # fmt: skip
"""What network=True is for."""


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mode", MODES)
def test_an_open_network_opens_no_unix_sockets_and_no_raw_ones(user: str, mode: str) -> None:
    came = make(user, mode, ATTEMPTS, network=True)
    escaped = [name for (_, name), each in came.items()
               if each.had_effect and not name.startswith(OPENED)]  # fmt: skip
    assert escaped == []
    assert came["sockets", "tcp: connect"].had_effect
    assert came["sockets", "udp: sendto"].had_effect


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mode", MODES)
def test_an_open_port_opens_no_other(user: str, mode: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as allowed:
        came = make(user, mode, ATTEMPTS, ports=[allowed.getsockname()[1]])
        assert [name for (_, name), each in came.items() if each.had_effect] == []


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mode", MODES)
def test_an_open_port_can_be_connected_to(user: str, mode: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as allowed, scratch(user) as base:
        port = allowed.getsockname()[1]
        bash, ctx = tool(mode, ports=[port]), limpet.ToolContext(base)
        command = f"exec 3<> /dev/tcp/127.0.0.1/{port} && echo connected >&3"
        result = as_user(user, lambda: bash.run_sync(command, ctx=ctx))
        assert result.exit_code == 0, result
        allowed.accept()[0].close()


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mode", ["off", *MODES])
def test_nobody_can_connect_into_a_jail_with_an_open_port(user: str, mode: str) -> None:
    """To listen on a socket that is not bound binds it, which Landlock does not see."""

    def act(base: Path) -> bool:
        fields = {} if mode == "off" else {"ports": [1]}
        server = (
            "import socket; s = socket.socket(); s.listen(); s.settimeout(1);"
            " print(s.getsockname()[1], flush=True); s.accept()"
        )
        came_in = []

        def connect(event: object) -> None:
            if isinstance(event, Output) and event.text.strip().isdigit():
                with socket.create_connection(("127.0.0.1", int(event.text)), timeout=1):
                    came_in.append(event)

        async def watch() -> None:
            stream = tool(mode, **fields).stream(
                f"/usr/bin/python3 -c '{server}'", ctx=limpet.ToolContext(base)
            )
            async for event in stream:
                connect(event)

        asyncio.run(watch())
        return bool(came_in)

    with scratch(user) as base:
        assert as_user(user, lambda: act(base)) == (mode == "off")


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mode", MODES)
def test_with_ports_no_other_way_leads_to_a_closed_port(user: str, mode: str) -> None:
    """Fast open, several sends at once, and a socket that was connected elsewhere before."""
    program = Path(__file__).parent / "attacks/ports.py"
    with (
        socket.create_server(("127.0.0.1", 0)) as allowed,
        socket.create_server(("127.0.0.1", 0)) as closed,
        scratch(user) as base,
    ):
        ports = [server.getsockname()[1] for server in (allowed, closed)]
        bash, ctx = tool(mode, ports=ports[:1]), limpet.ToolContext(base)
        command = f"/usr/bin/python3 - {ports[0]} {ports[1]}"
        source = os.fsencode(program.read_text())
        result = as_user(user, lambda: bash.run_sync(command, ctx=ctx, stdin=source))
        assert result.exit_code == 0, result
        closed.setblocking(False)
        with pytest.raises(BlockingIOError):
            closed.accept()
        allowed.settimeout(5)
        allowed.accept()[0].close()
