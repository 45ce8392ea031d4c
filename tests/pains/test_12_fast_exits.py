"""A command that ends at once loses nothing."""

from __future__ import annotations

import asyncio

import pytest

import limpet
from limpet.process import exit as exit_watch
from limpet.process import spawn

ROUNDS = 300
COMMAND = "echo out; echo err >&2; exit 3"


def test_every_result_is_complete(bash: limpet.Bash) -> None:
    results = [bash.run_sync(COMMAND) for _ in range(ROUNDS)]
    assert {(r.output, r.exit_code, r.outcome) for r in results} == {
        ("out\nerr\n", 3, limpet.Outcome.EXITED)
    }


def test_every_result_is_complete_on_asyncio_many_at_once(bash: limpet.Bash) -> None:
    async def main() -> list[limpet.Result]:
        return await asyncio.gather(*(bash.run(COMMAND) for _ in range(ROUNDS)))

    assert {(r.output, r.exit_code) for r in asyncio.run(main())} == {("out\nerr\n", 3)}


def test_every_result_is_complete_without_pidfd(
    bash: limpet.Bash, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exit_watch, "USE_PIDFD", False)
    results = [bash.run_sync(COMMAND) for _ in range(50)]
    results += [bash.run_sync(f"sleep 0.02; {COMMAND}") for _ in range(5)]
    assert {(r.output, r.exit_code) for r in results} == {("out\nerr\n", 3)}
    held = bash.run_sync("sleep 0.5 & echo x")
    assert held.output == "x\n"
    timed_out = bash.run_sync("echo x; sleep 30", timeout_s=0.2)
    assert timed_out.outcome is limpet.Outcome.TIMED_OUT


def test_every_result_is_complete_where_only_popen_is_known(
    bash: limpet.Bash, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Python newer than those whose fork_exec is known falls back to subprocess itself."""
    monkeypatch.setattr(spawn, "_HAS_FORK_EXEC", False)
    results = [bash.run_sync(COMMAND) for _ in range(20)]
    assert {(r.output, r.exit_code) for r in results} == {("out\nerr\n", 3)}
    assert bash.run_sync("echo $0; ls /proc/self/fd").output.split() == ["bash", *"0123"]
    missing = bash.run_sync("true", ctx=limpet.ToolContext("/no-such-place"))
    assert missing.outcome is limpet.Outcome.FAILED_TO_START
    killed = bash.run_sync("setsid sleep 60 & sleep 60", timeout_s=0.2)
    assert killed.outcome is limpet.Outcome.TIMED_OUT


def test_what_is_written_right_before_the_end_is_read_whatever_its_size(bash: limpet.Bash) -> None:
    for size in (1, 4096, 65536, 65537, 300_000):
        result = bash.run_sync(f"head -c {size} /dev/zero; exit 5")
        assert (result.total_bytes, result.exit_code) == (size, 5)


def test_uvloop_runs_commands_too(bash: limpet.Bash) -> None:
    import uvloop

    async def main() -> list[limpet.Result]:
        timed_out = await bash.run("echo begun; setsid sleep 60 & sleep 60", timeout_s=0.3)
        assert timed_out.outcome is limpet.Outcome.TIMED_OUT
        assert timed_out.output == "begun\n"
        return await asyncio.gather(*(bash.run(COMMAND) for _ in range(50)))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert {(r.output, r.exit_code) for r in runner.run(main())} == {("out\nerr\n", 3)}
