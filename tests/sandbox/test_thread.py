"""The jailed thread: reused, bounded, out of reach, and never a burden to other threads."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from support import open_descriptors, wait_until

import limpet
from limpet.sandbox import jail, landlock


def _threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


@pytest.fixture
def bash() -> limpet.Bash:
    return limpet.Bash(sandbox="read-only", rules="none")


def test_one_thread_serves_all_calls_of_a_policy(bash: limpet.Bash) -> None:
    assert bash.run_sync("true").ok
    assert limpet.Bash(sandbox="read-only").run_sync("true").ok
    assert len(jail._kept) == 1
    for _ in range(20):
        assert bash.run_sync("true").ok
    assert wait_until(lambda: _threads() <= 4 + threading.active_count())


def test_the_number_of_kept_jails_is_bounded(tmp_path: Path) -> None:
    before = open_descriptors()
    bash = limpet.Bash(sandbox="workspace", rules="none")
    for number in range(jail.KEPT_AT_MOST + 8):
        place = tmp_path / str(number)
        place.mkdir()
        result = bash.run_sync("echo hi > file", ctx=limpet.ToolContext(place))
        assert result.ok, result
        assert (place / "file").read_text() == "hi\n"
    assert len(jail._kept) <= jail.KEPT_AT_MOST
    jail.close_all()
    assert wait_until(lambda: open_descriptors().keys() <= before.keys())


def test_a_workspace_that_was_removed_and_made_again_works(tmp_path: Path) -> None:
    bash = limpet.Bash(sandbox="workspace", rules="none")
    place = Path("/var/tmp") / f"limpet-test-{os.getpid()}"
    ctx = limpet.ToolContext(place)
    try:
        for _ in range(3):
            place.mkdir()
            assert bash.run_sync("echo hi > file && mkdir d && mv file d", ctx=ctx).ok
            (place / "d" / "file").unlink()
            (place / "d").rmdir()
            place.rmdir()
    finally:
        subprocess.run(["rm", "-rf", place], check=True)


def test_other_threads_are_not_restricted(bash: limpet.Bash, tmp_path: Path) -> None:
    stop = threading.Event()
    failures: list[BaseException] = []

    def write_all_the_time() -> None:
        number = 0
        while not stop.is_set():
            try:
                number += 1
                path = tmp_path / f"file{number % 10}"
                path.write_text("x")
                path.chmod(0o600)
            except OSError as error:
                failures.append(error)

    writer = threading.Thread(target=write_all_the_time)
    writer.start()
    for _ in range(20):
        assert not bash.run_sync(f"touch {tmp_path}/never").ok
    stop.set()
    writer.join()
    assert not failures
    assert not (tmp_path / "never").exists()
    assert limpet.Bash().run_sync(f"touch {tmp_path}/unjailed").ok
    # A thread started after, and by, anyone but the jail is as free.
    status = Path("/proc/self/status").read_text()
    assert "NoNewPrivs:\t0" in status


def test_no_thread_of_the_host_is_ever_in_the_domain_of_a_command(bash: limpet.Bash) -> None:
    """By the id of such a thread the host could be killed, and its memory be read."""
    command = (
        f"for t in /proc/{os.getpid()}/task/*; do id=${{t##*/}};"
        " kill -0 $id 2>/dev/null && echo signal $id;"
        " head -c 1 $t/environ >/dev/null 2>&1 && echo environ $id;"
        " head -c 1 $t/maps >/dev/null 2>&1 && echo maps $id;"
        " readlink $t/fd/0 $t/cwd $t/root $t/exe && echo fd $id; done; echo done"
    )
    for _ in range(10):
        assert bash.run_sync(command).output == "done\n"


def test_the_check_for_reachable_threads_can_fail() -> None:
    """Without a sandbox the same commands reach the host, so that the test above has teeth."""
    command = f"kill -0 {os.getpid()} && head -c 1 /proc/{os.getpid()}/environ | wc -c"
    assert limpet.Bash().run_sync(command).output == "1\n"


def test_what_cannot_be_confined_does_not_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A step that fails is the end of it, before anything of the command has run."""

    def broken(_: landlock.Ruleset) -> list[tuple[str, tuple[int, ...]]]:
        return [("landlock_restrict_self", (-1, 0))]

    monkeypatch.setattr(landlock.Ruleset, "steps", broken)
    witness = limpet.Bash(sandbox="workspace", rules="none")
    result = witness.run_sync("touch ran", ctx=limpet.ToolContext(tmp_path))
    assert result.outcome is limpet.Outcome.FAILED_TO_START
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "variables",
    [
        {"POSIXLY_CORRECT": "1"},
        {"POSIX_PEDANTIC": "1"},
        {"SHELLOPTS": "posix"},
        {"SSH_CLIENT": "x", "SHLVL": "0"},
        {"BASH_ENV": "/nonexistent"},
    ],
)
def test_no_variable_has_the_shell_begin_unconfined(
    variables: dict[str, str], bash: limpet.Bash, tmp_path: Path
) -> None:
    (tmp_path / ".bashrc").write_text(f"touch {tmp_path}/escaped; echo rc; ulimit -t")
    env = {"HOME": str(tmp_path), **variables}
    result = bash.run_sync(f"ulimit -t; touch {tmp_path}/escaped", env=env)
    assert result.output.startswith("3600\n")
    assert not (tmp_path / "escaped").exists()


def test_many_threads_and_loops_at_once(bash: limpet.Bash) -> None:
    def in_a_loop(number: int) -> list[str]:
        async def several() -> list[str]:
            results = await asyncio.gather(*(bash.run(f"echo {number}.{i}") for i in range(5)))
            return [result.output for result in results]

        return asyncio.run(several())

    with ThreadPoolExecutor(8) as pool:
        found = [line for lines in pool.map(in_a_loop, range(8)) for line in lines]
        found += pool.map(lambda n: bash.run_sync(f"echo {n}").output, range(20))
    expected = {f"{n}.{i}\n" for n in range(8) for i in range(5)} | {f"{n}\n" for n in range(20)}
    assert set(found) == expected
    assert len(jail._kept) == 1


def test_a_jail_in_use_is_never_given_up(tmp_path: Path) -> None:
    """More places at once than are kept: each call comes back, and writes where it may."""
    bash = limpet.Bash(sandbox="workspace", rules="none", timeout_s=30)
    places = [tmp_path / str(number) for number in range(jail.KEPT_AT_MOST + 10)]

    def work(place: Path) -> bool:
        place.mkdir()
        return bash.run_sync("sleep 0.1; touch x; chmod 600 x", ctx=limpet.ToolContext(place)).ok

    with ThreadPoolExecutor(len(places)) as pool:
        assert all(pool.map(work, places))
    assert all((place / "x").exists() for place in places)


def test_a_forked_host_makes_jails_of_its_own(bash: limpet.Bash) -> None:
    assert bash.run_sync("true").ok
    pid = os.fork()
    if pid == 0:
        good = not jail._kept and bash.run_sync("echo from the child").output.startswith("from")
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert bash.run_sync("echo still here").output == "still here\n"


def test_nothing_is_left_when_the_interpreter_exits(tmp_path: Path) -> None:
    code = (
        "import limpet, glob; b = limpet.Bash(sandbox='workspace', rules='none')\n"
        "print(b.run_sync('echo hi; chmod 700 .').output)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, cwd=tmp_path
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "hi\n\n", "")


def test_an_exit_in_the_middle_of_a_run_is_clean() -> None:
    code = (
        "import limpet, threading, sys, time\n"
        "b = limpet.Bash(sandbox='read-only')\n"
        "threading.Thread(target=lambda: b.run_sync('sleep 60'), daemon=True).start()\n"
        "time.sleep(0.5); sys.exit(3)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (3, "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs one")
def test_no_control_group_is_left(bash: limpet.Bash) -> None:
    def groups() -> list[Path]:
        return list(Path("/sys/fs/cgroup").glob(f"**/limpet-{os.getpid()}-*"))

    before = groups()  # of survivors of other tests, which the next jail removes
    assert bash.run_sync("true").ok
    assert [group for group in groups() if group not in before]
    jail.close_all()
    assert wait_until(lambda: not groups())


def test_a_time_out_kills_what_is_jailed(bash: limpet.Bash) -> None:
    result = bash.run_sync("trap '' TERM; sleep 60 & setsid sleep 60 & wait", timeout_s=0.5)
    assert result.outcome is limpet.Outcome.TIMED_OUT
    assert not result.survivors


def test_survivors_stay_jailed(tmp_path: Path) -> None:
    bash = limpet.Bash(sandbox="read-only", rules="none")
    target = tmp_path / "late"
    result = bash.run_sync(f"(sleep 0.3; touch {target}; exec sleep 60) >/dev/null 2>&1 &")
    (survivor, *_) = result.survivors
    line = Path(f"/proc/{survivor.pid}/cmdline")
    assert wait_until(lambda: line.read_bytes() == b"sleep\x0060\0")  # after it has tried
    assert not target.exists()
    for survivor in result.survivors:
        with suppress(ProcessLookupError):
            os.kill(survivor.pid, signal.SIGKILL)


def test_a_stream_is_jailed_too(tmp_path: Path) -> None:
    target = tmp_path / "file"

    async def collect() -> limpet.Result:
        bash = limpet.Bash(sandbox="read-only")
        async for event in bash.stream(f"touch {target}"):
            last = event
        return last.result  # type: ignore[union-attr]  # the last event has it

    result = asyncio.run(collect())
    assert result.sandbox is not None
    assert result.sandbox.mode == "read-only"
    assert not target.exists()
