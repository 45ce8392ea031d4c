"""Hosts that are not as they should be: the call comes back all the same, and nothing is left."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support import marked_processes, wait_until

import limpet
from limpet.events import Finished
from limpet.output.capture import Capture
from limpet.process import reap, table


def in_a_host_of_its_own(code: str, timeout_s: float = 20, **environment: str) -> str:
    """Run Python code in a process of its own and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", "import asyncio, os, signal, time, limpet\n" + code],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_waiting_for_survivors_of_a_shell_that_ends_at_once_has_a_limit_too() -> None:
    bash = limpet.Bash(survivors="wait")
    result = asyncio.run(bash.run("sleep 60 >/dev/null 2>&1 &", timeout_s=0.5))
    assert result.outcome is limpet.Outcome.TIMED_OUT
    assert marked_processes() == {}


def test_a_stream_cancelled_as_it_ends_gives_its_turn_back() -> None:
    bash = limpet.Bash(max_concurrent=1)

    async def main() -> limpet.Result:
        async def consume() -> None:
            async for event in bash.stream("echo hi"):
                if isinstance(event, Finished):
                    asyncio.get_running_loop().call_soon(task.cancel)

        task = asyncio.create_task(consume())
        with pytest.raises(asyncio.CancelledError):
            await task
        return await asyncio.wait_for(bash.run("echo next"), 5)

    assert asyncio.run(main()).output == "next\n"


def test_a_waiter_whose_loop_is_closed_harms_nobody() -> None:
    bash = limpet.Bash(max_concurrent=1)
    results: list[limpet.Result] = []
    holder = threading.Thread(target=lambda: results.append(bash.run_sync("sleep 0.5; echo fine")))
    holder.start()
    assert wait_until(lambda: bool(marked_processes()))
    loop = asyncio.new_event_loop()
    waiter = loop.create_task(bash.run("echo never"))
    loop.run_until_complete(asyncio.sleep(0.1))
    loop.close()
    holder.join()
    assert results[0].output == "fine\n"
    assert bash.run_sync("echo next").output == "next\n"
    waiter.get_coro().close()  # which nobody will finish
    waiter._log_destroy_pending = False  # type: ignore[attr-defined]  # that is the point here


def test_cancelling_a_call_that_waits_for_its_turn_does_not_wait_for_it() -> None:
    bash = limpet.Bash(max_concurrent=1)

    async def main() -> tuple[limpet.Result, float]:
        cancel = asyncio.Event()
        first = asyncio.create_task(bash.run("sleep 60"))
        await asyncio.sleep(0.1)
        second = asyncio.create_task(bash.run("true", ctx=limpet.ToolContext(cancel=cancel)))
        await asyncio.sleep(0.1)
        started = time.monotonic()
        cancel.set()
        result = await second
        waited_s = time.monotonic() - started
        first.cancel()
        await asyncio.wait([first])
        return result, waited_s

    result, waited_s = asyncio.run(main())
    assert result.outcome is limpet.Outcome.CANCELLED
    assert waited_s < 5


def test_a_deleted_working_directory_of_the_host_is_not_replaced_by_another(
    tmp_path: Path,
) -> None:
    """$PWD names where the host was started, which may be anywhere."""
    (tmp_path / "gone").mkdir()
    code = (
        "os.chdir('gone'); os.rmdir('../gone'); bash = limpet.Bash()\n"
        "for ctx in (None, limpet.ToolContext('.'), limpet.ToolContext('sub')):\n"
        "    result = bash.run_sync('touch ran', ctx=ctx); print(result.outcome, result.hint)"
    )
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        said = in_a_host_of_its_own(code, PWD=str(tmp_path)).splitlines()
    finally:
        os.chdir(before)
    assert len(said) == 3
    assert all(line.startswith("failed_to_start") and "was deleted" in line for line in said)
    assert list(tmp_path.iterdir()) == []


def _no_pidfd(*_: object) -> int:
    raise OSError(errno.ENOSYS, "no such system call")


def test_without_pidfds_escapees_are_killed_all_the_same(
    bash: limpet.Bash, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pidfd_open", _no_pidfd)
    result = bash.run_sync("setsid sleep 60 & sleep 60", timeout_s=0.3)
    assert result.outcome is limpet.Outcome.TIMED_OUT
    assert marked_processes() == {}


@pytest.mark.parametrize("drive", [lambda b, c: b.run_sync(c), lambda b, c: asyncio.run(b.run(c))])
def test_an_error_of_our_own_is_raised_and_leaves_nothing(
    bash: limpet.Bash,
    monkeypatch: pytest.MonkeyPatch,
    drive: Callable[[limpet.Bash, str], limpet.Result],
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Capture, "_keep", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        drive(bash, "setsid sleep 60 & echo x; sleep 60")
    assert wait_until(lambda: marked_processes() == {})
    monkeypatch.undo()
    assert wait_until(lambda: bash.run_sync("(true &)").ok and not reap.running_count())


INTERRUPTED = """
import random
bash = limpet.Bash()
hits = 0
for delay in [random.Random(i).uniform(0, 0.006) for i in range(120)]:
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        bash.run_sync({command!r})
        time.sleep(0.01)
    except KeyboardInterrupt:
        hits += 1
signal.setitimer(signal.ITIMER_REAL, 0)
print(hits, len(os.listdir('/proc/self/fd')), bash.run_sync('echo fine').output)
"""


@pytest.mark.parametrize("command", ["sleep 0.004", "seq 20000"])
def test_ctrl_c_at_any_moment_of_a_blocking_call_leaves_nothing(command: str) -> None:
    setup = "signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))\n"
    said = in_a_host_of_its_own(setup + INTERRUPTED.format(command=command), timeout_s=50)
    hits, descriptors, fine = said.split()
    assert int(hits) > 20
    assert int(descriptors) <= 6  # 0 to 2, /proc/loadavg, the listing's own, and one to spare
    assert fine == "fine"
    assert marked_processes() == {}


def test_a_second_ctrl_c_during_the_grace_does_not_leave_the_kill_half_done() -> None:
    code = (
        "import threading\n"
        "for delay in (0.4, 0.6):\n"
        "    threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try: limpet.Bash().run_sync(\"trap '' TERM; while :; do sleep 1; done\")\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    assert in_a_host_of_its_own(code) == "interrupted\n"
    assert marked_processes() == {}


SUBREAPER = """
import ctypes, sys
sys.path[:0] = {path!r}
from support import wait_until, zombie_children
assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0
bash = limpet.Bash()
for _ in range(5):
    bash.run_sync('set -m; sleep 0.01 & true')
    bash.run_sync('sleep 0.2 & echo x')
    bash.run_sync('setsid sleep 60 & sleep 60', timeout_s=0.1)
assert wait_until(lambda: bash.run_sync('(true &)').ok and not zombie_children()), zombie_children()
"""


def test_a_reaper_of_orphans_reaps_those_that_left_the_group_and_supervisors_too() -> None:
    in_a_host_of_its_own(SUBREAPER.format(path=sys.path))


def test_what_survivors_print_later_is_not_kept_in_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "supersecretvalue123")
    bash = limpet.Bash(environment=limpet.EnvironmentPolicy(hide_secrets=True))
    result = bash.run_sync("echo start; (sleep 0.3; echo supersecretvalue123) &")
    assert wait_until(lambda: marked_processes() == {})
    task = bash.task(result.task_id or "")
    assert task.wait_sync(timeout_s=5).matched == "exit"
    assert Path(task.output_path).read_text().startswith("start\n[masked]\n[limpet: ")


PRELUDES = {
    "ulimit -f 0; true | true; exit 3": (3, ""),
    "PWD=/nowhere; true | true; builtin pwd": (0, "{cwd}\n"),
    "__limpet=mine; true | true; echo $__limpet": (0, "mine\n"),
}


@pytest.mark.parametrize(("command", "expected"), PRELUDES.items())
def test_the_prelude_changes_no_outcome(
    command: str, expected: tuple[int, str], tmp_path: Path
) -> None:
    bash = limpet.Bash(persist_cwd=True)
    context = limpet.ToolContext(tmp_path)
    result = bash.run_sync(command, ctx=context)
    assert result.exit_code == expected[0]
    assert result.output == expected[1].format(cwd=tmp_path)
    assert context.cwd == str(tmp_path)


@pytest.mark.parametrize("value", ["/nonexistent", "$WHERE/rc", "`echo $WHERE`/rc"])
def test_the_users_own_prelude_means_what_it_means_to_bash(
    bash: limpet.Bash, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    (tmp_path / "rc").write_text("greeting=hello\n")
    monkeypatch.setenv("WHERE", str(tmp_path))
    monkeypatch.setenv("BASH_ENV", value)
    plain = bash.run_sync('echo "$? $greeting"; echo "$BASH_ENV"')
    piped = bash.run_sync('echo "$? $greeting"; echo "$BASH_ENV" | cat')
    assert piped.output == plain.output


NOT_DUMPABLE = """
import ctypes
if os.geteuid() == 0: os.setgid(65534); os.setuid(65534)
assert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0
bash = limpet.Bash(persist_cwd=True)
ctx = limpet.ToolContext('/')
print(repr(bash.run_sync('cd /usr; echo hi | cat', ctx=ctx).output), ctx.cwd)
print(repr(bash.run_sync('echo long #' + 'x' * 200_000).output))
"""


def test_a_host_whose_descriptors_cannot_be_reached_by_proc_uses_files() -> None:
    setup = (
        "import limpet.hint, limpet.output.text, tempfile, shlex, stat; limpet.check('x=$(rm y)')\n"
    )
    said = in_a_host_of_its_own(setup + NOT_DUMPABLE)
    assert said == "'hi\\n' /usr\n'long\\n'\n"


def test_a_spawn_does_not_wait_for_who_forks_beside_it() -> None:
    """A child that another thread forks at the wrong moment holds every descriptor of ours."""
    code = (
        "import threading\n"
        "def fork():\n"
        "    if os.fork() == 0: time.sleep(3); os._exit(0)\n"
        "bash = limpet.Bash(); slowest = 0\n"
        "for _ in range(60):\n"
        "    thread = threading.Thread(target=fork); thread.start()\n"
        "    started = time.monotonic(); bash.run_sync('exit 3')\n"
        "    slowest = max(slowest, time.monotonic() - started); thread.join()\n"
        "print(slowest < 2)"
    )
    assert in_a_host_of_its_own(code) == "True\n"


def test_what_the_host_blocks_the_command_does_not() -> None:
    code = (
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})\n"
        "command = \"trap 'echo bye; exit' TERM; sleep 60 & wait\"\n"
        "result = limpet.Bash().run_sync(command, timeout_s=0.3)\n"
        "print(result.output, sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))))"
    )
    assert in_a_host_of_its_own(code) == "bye\n [2, 15]\n"


def test_a_host_that_ignores_its_children_gets_a_result() -> None:
    code = (
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "result = limpet.Bash().run_sync('echo out; exit 3')\n"
        "print(result.outcome, result.exit_code, result.output, result.hint)"
    )
    said = in_a_host_of_its_own(code)
    assert said.startswith("exited None out\n the exit code is unknown")


def test_a_directory_with_a_nul_in_its_name_is_explained(bash: limpet.Bash) -> None:
    result = bash.run_sync("true", ctx=limpet.ToolContext("/tmp/a\0b"))
    assert result.outcome is limpet.Outcome.FAILED_TO_START
    assert "NUL" in (result.hint or "")


@pytest.mark.parametrize("free", range(14))
def test_a_host_with_few_descriptors_left_gets_a_result(free: int) -> None:
    code = (
        "import resource\nfrom limpet.tasks import nursery\n"
        "bash = limpet.Bash(); bash.run_sync('echo x | cat')\n"
        "used = len(os.listdir('/proc/self/fd')) - 1\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (used + {free}, 4096))\n"
        "for command in ('true', 'echo x | cat', 'seq 20000', 'sleep 0.2 & echo x'):\n"
        "    result = bash.run_sync(command, timeout_s=5)\n"
        "    assert result.outcome in ('exited', 'failed_to_start'), result\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))\n"
        "time.sleep(0.3); bash.run_sync('(true &)'); nursery.close()\n"
        "print(len(os.listdir('/proc/self/fd')) - 1 - used)"
    )
    assert in_a_host_of_its_own(code) == "0\n"


def test_a_process_table_that_cannot_be_read_is_no_error() -> None:
    assert table.look_up(2**22 + 1) is None
    assert table.command_line(2**22 + 1) == ""
