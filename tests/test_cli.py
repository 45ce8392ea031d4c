"""The command line, as a person and as a program use it."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from support import marked_processes, wait_until

import limpet

LIMPET = [sys.executable, "-m", "limpet.cli"]
RUN = [*LIMPET, "run"]


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload,no-any-return]  # options of subprocess.run
        [*RUN, *arguments], capture_output=True, text=True, timeout=30, **options
    )


STATUS = {
    "exit 0": 0,
    "exit 3": 3,
    "kill -9 $$": 137,
    "": 125,
}


@pytest.mark.parametrize(("command", "status"), STATUS.items())
def test_the_status_is_the_commands(command: str, status: int) -> None:
    assert run(command).returncode == status


def test_streams_stay_apart_and_are_passed_on_byte_for_byte() -> None:
    done = subprocess.run([*RUN, r"printf 'a\0\377\033[31m'; echo b >&2"], capture_output=True)
    assert done.stdout == b"a\0\xff\x1b[31m"
    assert done.stderr == b"b\n"


def test_output_arrives_while_the_command_runs() -> None:
    with subprocess.Popen([*RUN, "echo now; sleep 60"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"now\n"
        process.terminate()
        process.wait()
    assert process.returncode == 130


def test_a_timeout_has_its_status_and_says_so() -> None:
    done = run("--timeout", "0.3", "echo begun; sleep 60")
    assert (done.returncode, done.stdout) == (124, "begun\n")
    assert "limit of 0.3 s" in done.stderr


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_kills_the_tree_and_keeps_what_there_was(signum: signal.Signals) -> None:
    command = "echo begun; setsid sleep 60 & sleep 60"
    with subprocess.Popen([*RUN, command], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        os.kill(process.pid, signum)
        process.communicate(timeout=10)
    assert process.returncode == 130
    assert marked_processes() == {}


def test_the_result_as_json_has_every_field() -> None:
    done = run("--json", "--description", "a test", "echo out; echo err >&2; exit 3")
    result = json.loads(done.stdout)
    assert done.returncode == 3
    assert done.stderr == ""
    assert list(result) == list(limpet.Result(command="", outcome=limpet.Outcome.EXITED).to_dict())
    assert result["output"] == "out\nerr\n"
    assert result["description"] == "a test"
    apart = json.loads(run("--json", "--separate", "echo out; echo err >&2").stdout)
    assert (apart["stdout"], apart["stderr"]) == ("out\n", "err\n")


def test_an_interrupted_call_still_prints_its_json() -> None:
    with subprocess.Popen(
        [*RUN, "--json", "echo begun; sleep 60"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert wait_until(lambda: any("sleep" in c for c in marked_processes().values()))
        os.kill(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=10)
    assert json.loads(output)["outcome"] == "cancelled"
    assert json.loads(output)["output"] == "begun\n"


def test_options_reach_the_command(tmp_path: Path) -> None:
    done = run("--cwd", str(tmp_path), "--env", "A=1=2", "--env", "B=", 'echo "$PWD $A[$B]"')
    assert done.stdout == f"{tmp_path} 1=2[]\n"


def test_the_command_can_come_from_standard_input() -> None:
    done = subprocess.run([*RUN, "-"], input="echo 'from' \\\n  \"stdin\"; read x || echo eof",
                          capture_output=True, text=True)  # fmt: skip
    assert done.stdout == "from stdin\neof\n"


def test_standard_input_is_passed_on_only_if_asked_for() -> None:
    assert run("cat", input="text").stdout == ""
    assert run("--stdin", "cat", input="text").stdout == "text"


MISTAKES = {
    "no command": ([], "required"),
    "two commands": (["ls", "-la", "/"], ""),
    "unquoted": (["echo", "a"], "quote it: limpet run 'echo a'"),
    "bad variable": (["--env", "A", "true"], "--env takes NAME=VALUE, not 'A'"),
    "empty name": (["--env", "=x", "true"], "not a name for an environment variable: ''"),
    "bad timeout": (["--timeout", "0", "true"], "timeout_s must be positive"),
    "no number": (["--timeout", "soon", "true"], "invalid float value"),
    "unknown option": (["--frobnicate", "true"], "unrecognized arguments"),
}


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_explained_and_nothing_runs(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_help_has_examples_and_the_version_is_told() -> None:
    helped = subprocess.run([*RUN, "--help"], capture_output=True, text=True)
    assert "limpet run --timeout 5 'sleep 60'" in helped.stdout
    version = subprocess.run([*LIMPET, "--version"], capture_output=True, text=True)
    assert version.stdout == f"limpet {limpet.__version__}\n"


@pytest.mark.parametrize("command", ["yes", "yes >&2", "seq 100000"])
def test_a_broken_pipe_is_quiet(command: str) -> None:
    line = f"{' '.join(RUN)} '{command}' 2>&1 | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=20)
    assert done.stdout.split("\n")[1] == "141"
    assert done.stderr == ""
    assert marked_processes() == {}


def test_a_reader_that_takes_nothing_does_not_stop_the_clock() -> None:
    with subprocess.Popen(
        [*RUN, "--timeout", "0.5", "yes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert wait_until(lambda: any("yes" in c for c in marked_processes().values()))
        assert wait_until(lambda: marked_processes().keys() <= {process.pid})
        assert process.stdout is not None
        while process.stdout.read(1 << 16):
            pass
        process.wait(timeout=10)
    assert process.returncode == 124


def test_a_full_disk_is_no_crash() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*RUN, "echo hi"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "limpet: the output could not be written: No space left on device\n"


CLOSED = {">&-": 3, "2>&-": 3, "<&-": 3, ">&- 2>&- <&-": 3}


@pytest.mark.parametrize(("redirection", "status"), CLOSED.items())
def test_closed_standard_streams_are_no_crash(redirection: str, status: int) -> None:
    for options in ("", "--stdin", "--json"):
        line = f"{' '.join(RUN)} {options} 'cat; echo x; exit 3' {redirection}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=20)
        assert done.returncode == status
        assert "Traceback" not in done.stderr


def test_streams_that_end_up_in_one_place_keep_their_order() -> None:
    command = "for i in 1 2 3; do echo o$i; echo e$i >&2; done"
    done = subprocess.run([*RUN, command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.stdout.split() == b"o1 e1 o2 e2 o3 e3".split()


def test_nohup_is_respected() -> None:
    """What is ignored stays ignored; what is not ends the command with limpet."""
    for signum, status in ((signal.SIGHUP, 0), (signal.SIGQUIT, 130)):
        line = f"trap '' HUP; exec {' '.join(RUN)} 'echo begun; sleep 1'"
        with subprocess.Popen(["bash", "-c", line], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
            os.kill(process.pid, signum)
            process.communicate(timeout=10)
        assert process.returncode == status
        assert marked_processes() == {}


def test_standard_input_that_does_not_end_does_not_stop_the_clock() -> None:
    line = f"(echo a; sleep 5) | {' '.join(RUN)} --stdin --timeout 0.3 'head -1; sleep 60'"
    started = time.monotonic()
    with subprocess.Popen(["bash", "-c", line], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(2) == b"a\n"
        assert wait_until(lambda: marked_processes() == {})
        assert time.monotonic() - started < 4
        process.communicate()
    assert process.returncode == 124


def test_json_reaches_a_pipe_that_does_not_block() -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with subprocess.Popen([*RUN, "--json", "seq 5000"], stdout=write_end) as process:
        os.close(write_end)
        time.sleep(0.3)
        with open(read_end) as file:
            assert json.load(file)["total_bytes"] == 23893
    assert process.returncode == 0


def test_a_slow_reader_gets_everything() -> None:
    line = f"{' '.join(RUN)} 'seq 500000' | (sleep 0.5; md5sum)"
    slow = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=30)
    direct = subprocess.run(["bash", "-c", "seq 500000 | md5sum"], capture_output=True, text=True)
    assert slow.stdout == direct.stdout


def test_survivors_are_named() -> None:
    done = run("sleep 60 >/dev/null 2>&1 & echo started")
    assert done.stdout == "started\n"
    (pid,) = marked_processes()
    assert f"still running: {pid} (sleep 60)" in done.stderr
    os.kill(pid, signal.SIGKILL)


def test_it_works_without_a_home(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "LIMPET_STATE_DIR": str(tmp_path / "s")}
    assert run("seq 3", env=environment).stdout == "1\n2\n3\n"


@contextmanager
def on_terminal(*arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run limpet on a terminal of its own, as a person does."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*RUN, *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"},
    )
    os.close(terminal)
    try:
        yield process, controller
    finally:
        process.kill()
        process.wait()
        os.close(controller)


def read_all(controller: int, patience_s: float = 15.0) -> str:
    os.set_blocking(controller, False)
    seen, deadline = b"", time.monotonic() + patience_s
    while time.monotonic() < deadline:
        try:
            piece = os.read(controller, 65536)
        except BlockingIOError:
            time.sleep(0.01)
            continue
        except OSError:  # the terminal's last user has closed it
            break
        if not piece:
            break
        seen += piece
    return seen.decode()


def test_on_a_terminal_lines_are_shown_in_order_with_a_summary() -> None:
    with on_terminal(r"echo a; echo b >&2; printf '\033]0;title\007c'; exit 3") as (
        process,
        screen,
    ):
        seen = read_all(screen)
        assert process.wait() == 3
    assert seen.startswith("a\r\nb\r\nc\r\n")
    assert "✗ exit 3" in seen
    assert "title" not in seen


def test_on_a_terminal_a_long_command_has_a_status_line_that_goes_away() -> None:
    with on_terminal("--description", "a long one", "echo first; sleep 2; echo last") as (
        process,
        screen,
    ):
        seen = read_all(screen)
        assert process.wait() == 0
    assert "a long one · 1." in seen
    assert "1 lines · 6 B" in seen
    assert "last\r\n" in seen
    assert "✓ exit 0" in seen.rpartition("last\r\n")[2]


LINES = {
    "a long line": ("head -c 5000 /dev/zero | tr '\\0' x; sleep {nap}; echo; echo end", "x" * 5000),
    "windows lines": (
        "sleep {nap}; printf 'HTTP/1.1 200 OK\\r\\nServer: x\\r\\n'; echo end",
        "Server: x",
    ),
    "odd text": ("sleep {nap}; echo 'é日'; echo end", "é日"),
}


@pytest.mark.parametrize("nap", [0.1, 1.3], ids=["before the status", "with the status"])
@pytest.mark.parametrize(("command", "text"), LINES.values(), ids=LINES.keys())
def test_on_a_terminal_nothing_is_lost(command: str, text: str, nap: float) -> None:
    with on_terminal(command.format(nap=nap)) as (process, screen):
        seen = read_all(screen)
        assert process.wait() == 0
    # Rich may wrap a long line of its own; the terminal would do it otherwise.
    assert text in seen.replace("\r\n", "") or text in seen.replace("\n", "")


def test_ctrl_c_on_a_terminal_ends_the_command_and_shows_what_there_was() -> None:
    with on_terminal("echo begun; sleep 60") as (process, screen):
        assert wait_until(lambda: any(c.startswith("sleep") for c in marked_processes().values()))
        os.kill(process.pid, signal.SIGINT)
        seen = read_all(screen)
        assert process.wait() == 130
    assert "begun" in seen
    assert "cancelled" in seen
    with suppress(ProcessLookupError):
        assert marked_processes() == {}
