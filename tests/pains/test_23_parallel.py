"""Calls at once are independent, bounded, and leave nothing that adds up."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support import open_descriptors, resident_bytes

import limpet


def test_many_at_once_do_not_mix(bash: limpet.Bash) -> None:
    async def main() -> list[limpet.Result]:
        return await asyncio.gather(
            *(bash.run(f"echo out{i}; echo err{i} >&2; exit {i % 7}") for i in range(96))
        )

    for i, result in enumerate(asyncio.run(main())):
        assert (result.output, result.exit_code) == (f"out{i}\nerr{i}\n", i % 7)


def test_one_that_is_killed_takes_no_other_with_it(bash: limpet.Bash) -> None:
    async def main() -> tuple[limpet.Result, limpet.Result]:
        killed, lives = await asyncio.gather(
            bash.run("setsid sleep 60 & sleep 60", timeout_s=0.3),
            bash.run("sleep 1; echo alive"),
        )
        return killed, lives

    killed, lives = asyncio.run(main())
    assert killed.outcome is limpet.Outcome.TIMED_OUT
    assert lives.output == "alive\n"


def test_no_more_run_at_once_than_the_policy_says(tmp_path: Path) -> None:
    bash = limpet.Bash(max_concurrent=3)
    command = "mkdir $$.running; set -- *.running; echo $#; sleep 0.05; rmdir $$.running"

    async def main(context: limpet.ToolContext) -> list[limpet.Result]:
        return await asyncio.gather(*(bash.run(command, ctx=context) for _ in range(15)))

    results = asyncio.run(main(limpet.ToolContext(tmp_path)))
    assert max(int(r.output) for r in results) <= 3
    assert all(r.ok for r in results)


def test_who_gives_up_waiting_passes_the_turn_on() -> None:
    bash = limpet.Bash(max_concurrent=1)

    async def main() -> None:
        first = asyncio.create_task(bash.run("sleep 0.3; echo first"))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(bash.run("echo second"))
        third = asyncio.create_task(bash.run("echo third"))
        await asyncio.sleep(0.05)
        second.cancel()
        assert (await first).output == "first\n"
        assert (await asyncio.wait_for(third, 5)).output == "third\n"

    asyncio.run(main())


def test_threads_and_loops_share_one_tool() -> None:
    bash = limpet.Bash(max_concurrent=4)

    def blocking(i: int) -> str:
        return bash.run_sync(f"echo {i}").output

    def on_a_loop(i: int) -> str:
        return asyncio.run(bash.run(f"echo {i}")).output

    with ThreadPoolExecutor(12) as pool:
        done = list(pool.map(blocking, range(60))) + list(pool.map(on_a_loop, range(60)))
    assert done == [f"{i}\n" for i in range(60)] * 2


def test_nothing_adds_up_over_many_runs(bash: limpet.Bash) -> None:
    """The benchmarks do ten thousand; what adds up shows in a thousand too."""

    async def some(count: int) -> None:
        for _ in range(count // 20):
            await asyncio.gather(*(bash.run("echo x; (exit 3) | true") for _ in range(20)))

    asyncio.run(some(200))
    descriptors, memory, threads = open_descriptors(), resident_bytes(), threading.active_count()
    asyncio.run(some(1000))
    assert open_descriptors().keys() == descriptors.keys()
    assert threading.active_count() == threads
    assert resident_bytes() - memory < 2 << 20
