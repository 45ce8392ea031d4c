"""`limpet mcp`: how soon it answers, what a call adds to the engine's own time, what adds up."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.measure import Row, within
from limpet import Bash

STARTS = 5
CALLS = 300
AT_ONCE = 32
IN_A_ROW = 1000
ANSWER_GOAL_S, ADDED_GOAL_S = 1.5, 0.005
GROWTH_GOAL_KIB = 2048


def measure() -> Iterator[Row]:
    """Yield the rows of a server on stdio."""
    bare = min(_started([sys.executable, "-c", "pass"]) for _ in range(STARTS))
    first = []
    for _ in range(STARTS):
        server = _Server()
        first.append(server.answered_s)
        server.close()
    answered = statistics.median(first)
    yield within("limpet mcp, to the answer of initialize, cold", answered, bare, ANSWER_GOAL_S)
    server = _Server()
    try:
        yield _added(server)
        yield _at_once(server)
        yield _in_a_row(server)
    finally:
        server.close()


def _started(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - began


class _Server:
    """A server and its two pipes; a client's own work would be measured too."""

    def __init__(self) -> None:
        began = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "limpet.cli", "mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._id = 0
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        self.send("initialize", hello)
        self.answer()
        self.answered_s = time.perf_counter() - began
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def send(self, method: str, params: dict[str, Any]) -> None:
        self._id += 1
        self._write({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})

    def answer(self) -> None:
        assert self._process.stdout is not None
        assert "result" in json.loads(self._process.stdout.readline())

    def call(self, command: str) -> None:
        self.send("tools/call", {"name": "bash", "arguments": {"command": command}})

    def footprint(self) -> tuple[int, int]:
        """Return how much memory it has, in KiB, and how many descriptors."""
        place = Path(f"/proc/{self._process.pid}")
        status = (place / "status").read_text()
        rss = int(status.partition("VmRSS:")[2].split()[0])
        return rss, len(os.listdir(place / "fd"))  # noqa: PTH208

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def _added(server: _Server) -> Row:
    bash = Bash()
    through, own = [], []
    for _ in range(CALLS):
        began = time.perf_counter()
        server.call(":")
        server.answer()
        through.append(time.perf_counter() - began)
        began = time.perf_counter()
        bash.run_sync(":")
        own.append(time.perf_counter() - began)
    call, engine = statistics.median(through), statistics.median(own)
    return within("a call through it, beyond the engine's", call - engine, engine, ADDED_GOAL_S)


def _at_once(server: _Server) -> Row:
    began = time.perf_counter()
    for _ in range(AT_ONCE):
        server.call("sleep 1")
    for _ in range(AT_ONCE):
        server.answer()
    return within(f"{AT_ONCE} calls of 1 s at once", time.perf_counter() - began, 1.0, 2.0)


def _in_a_row(server: _Server) -> Row:
    for _ in range(CALLS):
        server.call(":")
        server.answer()
    memory, opened = server.footprint()
    for _ in range(IN_A_ROW):
        server.call(":")
        server.answer()
    grown, more = (b - a for a, b in zip((memory, opened), server.footprint(), strict=True))
    return Row(
        f"{IN_A_ROW} calls in a row: memory and descriptors grown",
        f"{grown} KiB, {more}",
        f"{memory} KiB, {opened}",
        (memory + grown) / memory,
        f"≤ {GROWTH_GOAL_KIB} KiB, 0",
        grown <= GROWTH_GOAL_KIB and more <= 0,
    )
