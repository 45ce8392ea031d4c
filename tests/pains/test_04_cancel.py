"""Cancelling kills the whole tree, keeps the output, and leaves the host alone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support import marked_processes, wait_until

import limpet
from limpet.events import Output

TREE = "echo begun; setsid sleep 60 & sleep 60"


async def _begun(bash: limpet.Bash, **call: limpet.ToolContext) -> asyncio.Task[limpet.Result]:
    task = asyncio.create_task(bash.run(TREE, **call))  # type: ignore[arg-type]  # ctx only
    sleeping = lambda: any("sleep 60" in words for words in marked_processes().values())  # noqa: E731
    assert await asyncio.to_thread(wait_until, sleeping)
    return task


def test_cancelling_the_awaiting_task_kills_and_keeps_the_output(bash: limpet.Bash) -> None:
    async def main() -> limpet.Result:
        task = await _begun(bash)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert marked_processes() == {}
        result = caught.value.result  # type: ignore[attr-defined]  # see Bash.run
        assert isinstance(result, limpet.Result)
        return result

    result = asyncio.run(main())
    assert result.outcome is limpet.Outcome.CANCELLED
    assert result.output == "begun\n"


def test_a_second_cancel_does_not_leave_the_kill_half_done() -> None:
    bash = limpet.Bash(kill_grace_s=0.3)

    async def main() -> None:
        task = asyncio.create_task(bash.run("trap '' TERM; echo x; while :; do sleep 1; done"))
        await asyncio.sleep(0.2)
        task.cancel()
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert marked_processes() == {}

    asyncio.run(main())


def test_setting_the_event_of_the_conversation_returns_a_result(bash: limpet.Bash) -> None:
    async def main() -> limpet.Result:
        cancel = asyncio.Event()
        task = await _begun(bash, ctx=limpet.ToolContext(cancel=cancel))
        cancel.set()
        return await task

    result = asyncio.run(main())
    assert result.outcome is limpet.Outcome.CANCELLED
    assert result.output == "begun\n"
    assert marked_processes() == {}


def test_a_threading_event_cancels_a_blocking_call(bash: limpet.Bash) -> None:
    cancel = threading.Event()
    timer = threading.Timer(0.2, cancel.set)
    timer.start()
    result = bash.run_sync(TREE, ctx=limpet.ToolContext(cancel=cancel))
    timer.join()
    assert result.outcome is limpet.Outcome.CANCELLED
    assert marked_processes() == {}


def test_a_call_cancelled_before_it_starts_never_starts(bash: limpet.Bash, tmp_path: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    context = limpet.ToolContext(working_dir=tmp_path, cancel=cancel)
    result = bash.run_sync("touch started", ctx=context)
    assert result.outcome is limpet.Outcome.CANCELLED

    async def main() -> None:
        task = asyncio.create_task(bash.run("touch started", ctx=limpet.ToolContext(tmp_path)))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert list(tmp_path.glob("started")) == []


def test_a_timeout_around_the_call_works_as_for_any_coroutine(bash: limpet.Bash) -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await bash.run("sleep 60")

    asyncio.run(main())
    assert marked_processes() == {}


def test_to_stop_iterating_over_a_stream_kills_the_command(bash: limpet.Bash) -> None:
    async def main() -> None:
        events = bash.stream(TREE)
        async for event in events:
            if isinstance(event, Output):
                break
        await events.aclose()
        assert marked_processes() == {}

    asyncio.run(main())


def test_the_end_of_the_loop_kills_what_still_runs(bash: limpet.Bash) -> None:
    async def main() -> None:
        await _begun(bash)  # and return while it runs

    asyncio.run(main())
    assert marked_processes() == {}


HOSTS = {
    "blocking, interrupted": ("limpet.Bash().run_sync(command)", signal.SIGINT),
    "asyncio, interrupted": ("asyncio.run(limpet.Bash().run(command))", signal.SIGINT),
    "in a daemon thread, exits": (
        "threading.Thread(target=limpet.Bash().run_sync, args=[command], daemon=True).start()\n"
        "while not os.path.exists('begun'): time.sleep(0.01)",
        None,
    ),
    "loop abandoned, exits": (
        "loop = asyncio.new_event_loop()\n"
        "task = loop.create_task(limpet.Bash().run(command))\n"
        "loop.call_later(0.5, loop.stop); loop.run_forever(); os.close(2)",
        None,
    ),
}


@pytest.mark.parametrize(("call", "signum"), HOSTS.values(), ids=HOSTS.keys())
def test_a_host_that_ends_takes_its_commands_with_it(
    call: str, signum: signal.Signals | None, tmp_path: Path
) -> None:
    code = (
        "import asyncio, limpet, os, threading, time\n"
        "command = 'touch begun; setsid sleep 60 & sleep 60'\n" + call
    )
    host = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE)
    try:
        assert wait_until(lambda: (tmp_path / "begun").exists())
        if signum is not None:
            os.kill(host.pid, signum)
        host.communicate(timeout=5)
        assert marked_processes() == {}
    finally:
        host.kill()
        host.wait()
