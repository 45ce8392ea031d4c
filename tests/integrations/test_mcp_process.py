"""`limpet mcp` as clients start it: on stdin and stdout, and over HTTP."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from support import is_running, wait_until

from tasks.helpers import end_all

LIMPET = [sys.executable, "-m", "limpet.cli", "mcp"]
TREE = "sleep 60 & echo $! $$ > pids; wait"


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    yield
    end_all()


def parameters(work: Path, *arguments: str) -> StdioServerParameters:
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    rest = [*LIMPET[1:], "--cwd", str(work), *arguments]
    return StdioServerParameters(command=LIMPET[0], args=rest, env=environment)


def pids(work: Path) -> list[int]:
    assert wait_until(lambda: (work / "pids").exists() and bool((work / "pids").read_text()))
    return [int(pid) for pid in (work / "pids").read_text().split()]


class Wire:
    """A server and its two pipes, without a client's help."""

    def __init__(self, work: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*LIMPET, "--cwd", str(work), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._id = 0

    def send(self, method: str, params: dict[str, Any] | None = None, *, is_request: bool) -> None:
        assert self.process.stdin is not None
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if is_request:
            self._id += 1
            message["id"] = self._id
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Return the next message: every line must be one."""
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert found["jsonrpc"] == "2.0"
        return found

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self.send(method, params, is_request=True)
        answer = self.answer()
        assert answer["id"] == self._id, answer
        return answer

    def shake_hands(self) -> None:
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        assert self.ask("initialize", hello)["result"]["serverInfo"]["name"] == "limpet"
        self.send("notifications/initialized", is_request=False)

    def run(self, command: str, tool: str = "bash") -> dict[str, Any]:
        found: dict[str, Any] = self.ask(
            "tools/call", {"name": tool, "arguments": {"command": command}}
        )["result"]
        return found


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    wire = Wire(tmp_path)
    yield wire
    assert wire.process.stdin is not None and wire.process.stdout is not None
    if not wire.process.stdin.closed:
        wire.process.stdin.close()
    wire.process.stdout.close()
    assert wire.process.wait(timeout=20) is not None


def test_a_command_touches_neither_end_of_the_protocol(wire: Wire) -> None:
    """It reads nothing of it, and writes nothing into it."""
    wire.shake_hands()
    assert wire.run("cat; echo read nothing")["content"][0]["text"] == "read nothing\n"
    wire.run(f"echo '{{}}' > /proc/{wire.process.pid}/fd/1; echo junk > /dev/stderr")
    listed = wire.run("ls -l /proc/self/fd | grep -c -- '->'")["content"][0]["text"]
    assert int(listed) == 4  # the three streams, and the directory that ls reads
    assert wire.run("echo still here")["content"][0]["text"] == "still here\n"


def test_what_is_no_message_is_an_error_and_the_server_goes_on(wire: Wire) -> None:
    wire.shake_hands()
    assert wire.process.stdin is not None
    for junk in (b"not json\n", b"{}\n", b"[]\n", b'{"jsonrpc": "2.0", "id": 7, "method": "no"}\n'):
        wire.process.stdin.write(junk)
    wire.process.stdin.flush()
    wire.send("ping", is_request=True)
    answers = [wire.answer()]
    while answers[-1].get("id") != wire._id:
        answers.append(wire.answer())
    assert "result" in answers[-1]
    assert all("error" in one for one in answers[:-1])


def test_when_the_client_goes_so_does_what_runs_for_it(wire: Wire, tmp_path: Path) -> None:
    wire.shake_hands()
    wire.send("tools/call", {"name": "bash", "arguments": {"command": TREE}}, is_request=True)
    running = pids(tmp_path)
    assert wire.process.stdin is not None
    wire.process.stdin.close()
    assert wire.process.wait(timeout=20) == 0
    assert wait_until(lambda: not any(map(is_running, running)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_when_it_is_told_to_end_it_kills_what_runs(
    wire: Wire, tmp_path: Path, number: signal.Signals
) -> None:
    wire.shake_hands()
    wire.send("tools/call", {"name": "bash", "arguments": {"command": TREE}}, is_request=True)
    running = pids(tmp_path)
    wire.process.send_signal(number)
    assert wire.process.wait(timeout=20) == 128 + number
    assert wait_until(lambda: not any(map(is_running, running)))


def test_a_protocols_cancel_kills_the_tree(wire: Wire, tmp_path: Path) -> None:
    wire.shake_hands()
    wire.send("tools/call", {"name": "bash", "arguments": {"command": TREE}}, is_request=True)
    running = pids(tmp_path)
    wire.send("notifications/cancelled", {"requestId": wire._id}, is_request=False)
    assert wait_until(lambda: not any(map(is_running, running)))
    wire.send("ping", is_request=True)
    while wire.answer().get("id") != wire._id:  # the cancelled call may be answered or not
        pass


def test_hundreds_of_calls_leave_no_descriptor_behind(wire: Wire) -> None:
    wire.shake_hands()
    for _ in range(20):
        wire.run("true")
    opened = len(os.listdir(f"/proc/{wire.process.pid}/fd"))  # noqa: PTH208 -- of another process
    for _ in range(100):
        wire.run("true")
    assert len(os.listdir(f"/proc/{wire.process.pid}/fd")) <= opened  # noqa: PTH208


def test_flags_and_settings_hold(tmp_path: Path) -> None:
    (tmp_path / "limpet.toml").write_text('[permissions]\ndeny = ["curl *"]\n')

    async def main() -> list[Any]:
        flags = (
            "--sandbox",
            "workspace",
            "--max-tasks",
            "0",
            "--timeout",
            "0.5",
            "--rules",
            "none",
        )
        async with Client(parameters(tmp_path, *flags)) as client:
            commands: list[dict[str, Any]] = [
                {"command": "touch /usr/x"},
                {"command": "curl x"},
                {"command": "sleep 60"},
                {"command": "sleep 60", "background": True},
                {"command": "git add -A; true"},
            ]
            return [await client.call_tool("bash", one) for one in commands]

    outside, denied, late, task, free = asyncio.run(main())
    assert outside.structured_content["sandbox"]["mode"] == "workspace"
    assert "permission pattern" in denied.content[0].text
    assert "timed out" in late.content[0].text
    assert task.is_error and "task" in task.content[0].text
    assert not free.is_error


# HTTP


@contextmanager
def listening(work: Path, *arguments: str, **environment: str) -> Iterator[tuple[str, int]]:
    """Yield the address of a server."""
    with subprocess.Popen(
        [*LIMPET, "--cwd", str(work), *arguments],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | environment,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            found = re.search(r"at (http://.*:(\d+)/mcp)", process.stderr.readline())
            assert found is not None
            yield found[1], int(found[2])
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=20)


def post(port: int, **headers: str) -> int:
    """Return the status that a request with these headers gets."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request("POST", "/mcp", body, usual | named)
        return connection.getresponse().status
    finally:
        connection.close()


def test_over_http_it_is_the_same_and_only_for_this_machine(tmp_path: Path) -> None:
    with listening(tmp_path, "--http", "127.0.0.1:0") as (url, port):

        async def main() -> Any:  # noqa: ANN401
            async with Client(url) as client:
                calls = (client.call_tool("bash", {"command": f"echo {n}"}) for n in range(8))
                return await asyncio.gather(*calls)

        results = asyncio.run(main())
        assert [int(one.content[0].text) for one in results] == list(range(8))
        assert post(port) == 200
        assert post(port, Host="evil.example") == 421
        assert post(port, Origin="https://evil.example") == 403
        assert post(port, Origin=f"http://localhost:{port}") == 200


def test_when_a_server_over_http_ends_it_kills_what_runs(tmp_path: Path) -> None:
    async def main(url: str) -> None:
        async with Client(url) as client:
            await client.call_tool("bash", {"command": TREE})

    with listening(tmp_path, "--http", "127.0.0.1:0") as (url, _):
        caller = threading.Thread(target=lambda: _ignoring_errors(main(url)))
        caller.start()
        running = pids(tmp_path)
    assert wait_until(lambda: not any(map(is_running, running)))
    caller.join(timeout=20)


def _ignoring_errors(call: Coroutine[Any, Any, None]) -> None:
    with suppress(Exception):  # the server is gone: however the client says that
        asyncio.run(call)


def test_a_token_is_asked_for(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("s3cret\n")
    allowed = ("--allow-host", "bash.example", "--allow-origin", "https://page.example")
    flags = ("--http", "0.0.0.0:0", "--token-file", str(secret), *allowed)
    with listening(tmp_path, *flags) as (_, port):
        assert post(port) == 401
        assert post(port, Authorization="Bearer wrong") == 401
        assert post(port, Authorization="s3cret") == 401
        right = {"Authorization": "Bearer s3cret"}
        assert post(port, **right) == 200
        assert post(port, **right, Host="bash.example", Origin="https://page.example") == 200
        assert post(port, **right, Host="evil.example") == 421


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--http", "0.0.0.0:0"], "needs a token"),
        (["--http", "nonsense"], "HOST:PORT"),
        (["--token-file", "x"], "needs --http"),
        (["--http", "127.0.0.1:0", "--token-file", "/nowhere"], "No such file"),
        (["--profile", "tail", "--local"], "--local is of the profile report"),
        (["--max-calls", "0"], "max_concurrent must be 1 or more"),
    ],
)
def test_wrong_arguments_are_told_before_anything_is_served(
    arguments: list[str], said: str
) -> None:
    done = subprocess.run(
        [*LIMPET, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
    )
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
