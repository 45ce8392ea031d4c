"""One call waits for a task to end, to be quiet, to print a line or to listen on a port."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import open_descriptors, python

import limpet
from limpet.tasks import watch
from limpet.tasks.record import TaskStatus
from tasks.helpers import WITHIN_S, end_all, ended, kill_supervisor, printed


@pytest.fixture(autouse=True)
def end_tasks(no_leaks: None, state_dir: Path) -> Iterator[None]:
    """End what a test leaves running."""
    yield
    end_all()


@pytest.fixture(params=["inotify", "polling"])
def woken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have waits woken by the kernel, and where that cannot be, by looking."""
    monkeypatch.setattr(watch, "USE_INOTIFY", request.param == "inotify")
    return str(request.param)


def test_until_it_ends(bash: limpet.Bash, woken: str) -> None:
    task = bash.start_sync("echo a; sleep 0.3; echo b; exit 3")
    waited = task.wait_sync(timeout_s=WITHIN_S)
    assert (waited.task_id, waited.matched, waited.match) == (task.id, "exit", None)
    assert (waited.status, waited.exit_code) == (TaskStatus.EXITED, 3)
    assert (waited.text, waited.cursor, waited.more) == ("a\nb\n", 4, False)


def test_until_it_prints(bash: limpet.Bash, woken: str) -> None:
    task = bash.start_sync("echo starting; sleep 0.3; echo listening on 8000; sleep 60")
    waited = task.wait_sync(r"/listening on \d+/", timeout_s=WITHIN_S)
    assert (waited.matched, waited.match) == ("regex", "listening on 8000")
    assert (waited.status, waited.exit_code) == (TaskStatus.RUNNING, None)
    assert waited.text == "starting\nlistening on 8000\n"


def test_until_it_is_quiet(bash: limpet.Bash) -> None:
    task = bash.start_sync("for i in 1 2 3; do echo $i; sleep 0.1; done; sleep 60")
    waited = task.wait_sync("quiet:0.7", timeout_s=WITHIN_S)
    assert (waited.matched, waited.text) == ("quiet", "1\n2\n3\n")


LISTEN = (
    "import socket, time; time.sleep(0.3); s = socket.create_server(('127.0.0.1', 0));"
    " print(s.getsockname()[1], flush=True); time.sleep(60)"
)
LISTEN_LATER = (
    "import socket, time; time.sleep(0.4); s = socket.create_server(('127.0.0.1', {port}));"
    " time.sleep(60)"
)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize("how", ["itself", "in a session of its own"])
def test_until_it_listens(bash: limpet.Bash, how: str) -> None:
    port = free_port()
    prefix = "" if how == "itself" else "setsid "
    task = bash.start_sync(f"{prefix}{python(LISTEN_LATER.format(port=port))}")
    waited = task.wait_sync(f"port:{port}", timeout_s=WITHIN_S)
    assert (waited.matched, waited.match) == ("port", str(port))


def test_someone_elses_port_is_not_its_own(bash: limpet.Bash) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        task = bash.start_sync("echo up; sleep 60")
        printed(task, "up")
        assert task.wait_sync(f"port:{port}", timeout_s=0.4).matched == "timeout"
        other = bash.start_sync(python(LISTEN))
        theirs = other.wait_sync(r"/^\d+$/", timeout_s=WITHIN_S).match
        assert task.wait_sync(f"port:{theirs}", timeout_s=0.4).matched == "timeout"
        assert other.wait_sync(f"port:{theirs}", timeout_s=WITHIN_S).matched == "port"


def test_a_server_is_not_disturbed_by_who_waits_for_its_port(bash: limpet.Bash) -> None:
    code = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); s.settimeout(0.6)\n"
        "print(s.getsockname()[1], flush=True)\n"
        "try: s.accept(); print('visited')\n"
        "except TimeoutError: print('undisturbed')"
    )
    task = bash.start_sync(python(code))
    port = task.wait_sync(r"/^\d+$/", timeout_s=WITHIN_S).match
    assert task.wait_sync(f"port:{port}", timeout_s=WITHIN_S).matched == "port"
    assert "undisturbed" in ended(task).text


def test_until_the_first_of_several_conditions(bash: limpet.Bash) -> None:
    task = bash.start_sync("echo go; sleep 60")
    printed(task, "go")
    waited = task.wait_sync(["/never/", "quiet:0.3", "port:1"], timeout_s=WITHIN_S)
    assert waited.matched == "quiet"
    assert task.wait_sync(["quiet:30", re.compile("GO", re.I)], timeout_s=5).matched == "regex"


def test_until_the_first_of_several_tasks(bash: limpet.Bash, woken: str) -> None:
    slow = bash.start_sync("sleep 60")
    quick = bash.start_sync("sleep 0.3; echo quick; exit 4")

    async def main() -> tuple[str, int | None, str]:
        waited = await bash.wait([slow, quick], timeout_s=WITHIN_S)
        return waited.task_id, waited.exit_code, waited.text

    assert asyncio.run(main()) == (quick.id, 4, "quick\n")


def test_what_was_printed_before_the_wait_counts_unless_a_cursor_says_otherwise(
    bash: limpet.Bash,
) -> None:
    task = bash.start_sync("echo ready; read line; echo ready again; sleep 60", stdin=True)
    first = task.wait_sync("/ready/", timeout_s=WITHIN_S)
    assert task.wait_sync("/ready/", timeout_s=5).matched == "regex"
    assert task.wait_sync("/ready/", timeout_s=0.3, cursor=first.cursor).matched == "timeout"
    task.send_sync("\n")
    again = task.wait_sync("/ready/", timeout_s=WITHIN_S, cursor=first.cursor)
    assert (again.match, again.text) == ("ready again", "ready again\n")


def test_a_prompt_without_a_newline_is_seen(bash: limpet.Bash) -> None:
    task = bash.start_sync("printf 'Password: '; read line", stdin=True)
    assert task.wait_sync("/Password: $/", timeout_s=WITHIN_S).matched == "regex"


def test_a_line_in_colour_and_in_pieces_is_seen(bash: limpet.Bash) -> None:
    task = bash.start_sync(r"printf '\033[32mrea'; sleep 0.2; printf 'dy\033[0m é\n'; sleep 60")
    assert task.wait_sync("/^ready é$/", timeout_s=WITHIN_S).match == "ready é"


def test_a_line_behind_much_output_is_seen(bash: limpet.Bash) -> None:
    task = bash.start_sync("seq 300000; echo the end is here; sleep 60")
    waited = task.wait_sync("/the end is here/", timeout_s=WITHIN_S)
    assert (waited.match, waited.more) == ("the end is here", True)
    assert waited.text.startswith("1\n2\n")


def test_the_note_of_the_end_matches_nothing(bash: limpet.Bash) -> None:
    task = bash.start_sync("sleep 0.2; echo hi")
    assert task.wait_sync("/limpet|exit 0/", timeout_s=WITHIN_S).matched == "exit"
    assert task.wait_sync("/limpet|exit 0/", timeout_s=WITHIN_S).matched == "exit"


@pytest.mark.parametrize("until", ["/never/", "quiet:30", "port:1", ["quiet:30", "/never/"]])
def test_a_task_that_ends_before_ends_every_wait(bash: limpet.Bash, until: str | list[str]) -> None:
    task = bash.start_sync("echo over; exit 5")
    for _ in range(2):
        waited = task.wait_sync(until, timeout_s=WITHIN_S)
        assert (waited.matched, waited.exit_code, waited.text) == ("exit", 5, "over\n")


def test_a_line_printed_at_the_very_end_is_seen(bash: limpet.Bash) -> None:
    task = bash.start_sync("printf done")
    assert task.wait_sync("/done/", timeout_s=WITHIN_S).matched == "regex"


def test_every_wait_has_an_end(bash: limpet.Bash, woken: str) -> None:
    task = bash.start_sync("echo here; sleep 60")
    printed(task, "here")
    started = time.monotonic()
    waited = task.wait_sync(timeout_s=0.3)
    assert 0.3 <= time.monotonic() - started < 5
    assert (waited.matched, waited.status, waited.text) == ("timeout", "running", "here\n")
    assert task.wait_sync(timeout_s=0).matched == "timeout"


def test_a_flood_does_not_keep_a_wait_from_its_limit(bash: limpet.Bash) -> None:
    task = limpet.Bash(output=limpet.OutputPolicy(spill_bytes=12 << 20)).start_sync("yes")
    started = time.monotonic()
    assert task.wait_sync("/never/", timeout_s=0.5).matched == "timeout"
    assert time.monotonic() - started < 5


def test_a_supervisor_that_is_killed_ends_the_wait(bash: limpet.Bash) -> None:
    task = bash.start_sync("echo here; sleep 60")
    printed(task, "here")

    async def main() -> tuple[str, TaskStatus]:
        waiting = asyncio.create_task(task.wait(timeout_s=WITHIN_S))
        await asyncio.to_thread(kill_supervisor, task)
        waited = await waiting
        return waited.matched, waited.status

    assert asyncio.run(main()) == ("exit", TaskStatus.LOST)


def test_a_wait_that_is_cancelled_leaves_nothing(bash: limpet.Bash) -> None:
    task = bash.start_sync("sleep 60")
    before = open_descriptors().keys()

    async def main() -> None:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await task.wait()

    asyncio.run(main())
    assert open_descriptors().keys() == before
    assert task.status is TaskStatus.RUNNING


def test_many_wait_at_once(bash: limpet.Bash) -> None:
    task = bash.start_sync("sleep 0.4; echo now; sleep 0.2; exit 2")

    async def main() -> set[tuple[str, str]]:
        waits = [task.wait("/now/") for _ in range(20)] + [task.wait() for _ in range(20)]
        return {(waited.matched, waited.text) for waited in await asyncio.gather(*waits)}

    assert asyncio.run(main()) == {("regex", "now\n"), ("exit", "now\n")}


def test_waiting_does_not_keep_the_loop_from_others(bash: limpet.Bash) -> None:
    task = bash.start_sync("sleep 0.5; echo end")

    async def main() -> int:
        waiting = asyncio.create_task(task.wait())
        ticks = 0
        while not waiting.done():
            await asyncio.sleep(0.01)
            ticks += 1
        return ticks

    assert asyncio.run(main()) > 10


def test_increments_by_cursor_are_the_whole(bash: limpet.Bash) -> None:
    task = bash.start_sync("for i in $(seq 20); do echo line $i; sleep 0.02; done")
    text, cursor = "", 0
    while True:
        waited = task.wait_sync("quiet:0", timeout_s=WITHIN_S, cursor=cursor)
        text, cursor = text + waited.text, waited.cursor
        if waited.matched == "exit":
            break
    assert text == "".join(f"line {number}\n" for number in range(1, 21))


WRONG: dict[str, tuple[object, object, type[Exception]]] = {
    "word": ("finished", None, ValueError),
    "expression": ("/(/", None, ValueError),
    "empty expression": ("//", None, ValueError),
    "quiet": ("quiet:soon", None, ValueError),
    "negative": ("quiet:-1", None, ValueError),
    "forever": ("quiet:inf", None, ValueError),
    "port": ("port:http", None, ValueError),
    "high port": ("port:70000", None, ValueError),
    "number": (7, None, TypeError),
    "list of numbers": ([7], None, TypeError),
    "time": ("exit", -1, ValueError),
    "no time": ("exit", "soon", TypeError),
    "not a number": ("exit", float("nan"), ValueError),
}


def test_what_cannot_be_waited_for_is_told(bash: limpet.Bash) -> None:
    task = bash.start_sync("sleep 60")
    for name, (until, timeout_s, error) in WRONG.items():
        with pytest.raises(error):
            pytest.fail(f"{name}: {task.wait_sync(until, timeout_s)}")  # type: ignore[arg-type]  # the point


def test_to_wait_for_no_task_is_an_error(bash: limpet.Bash) -> None:
    with pytest.raises(ValueError, match="no task"):
        asyncio.run(bash.wait([]))
