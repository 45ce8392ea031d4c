"""What a child does before it becomes a program: all of it, or nothing runs and it is said why."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import limpet
from limpet.process import spawn

LIMITED = limpet.LimitPolicy(cpu_s=77)


@pytest.fixture
def bash() -> limpet.Bash:
    return limpet.Bash(limits=LIMITED, rules="none")


def test_a_missing_directory_is_told(bash: limpet.Bash, tmp_path: Path) -> None:
    result = bash.run_sync("true", ctx=limpet.ToolContext(tmp_path / "none"))
    assert result.outcome is limpet.Outcome.FAILED_TO_START
    assert result.hint is not None
    assert "does not exist" in result.hint


def test_a_program_that_is_none_is_told(tmp_path: Path) -> None:
    program = tmp_path / "bash"
    program.write_text("not a program")
    program.chmod(0o700)
    result = limpet.Bash(limits=LIMITED, shell=str(program)).run_sync("true")
    assert result.outcome is limpet.Outcome.FAILED_TO_START
    assert result.hint is not None
    assert "Exec format error" in result.hint


def test_too_large_an_environment_is_told(bash: limpet.Bash) -> None:
    result = bash.run_sync("true", env={f"V{n}": "x" * 100_000 for n in range(100)})
    assert result.outcome is limpet.Outcome.FAILED_TO_START
    assert result.hint is not None
    assert "environment is larger" in result.hint


def test_environment_and_arguments_arrive_as_they_are(bash: limpet.Bash) -> None:
    odd = {"EMPTY": "", "LINES": "a\nb", "UNICODE": "žluť", "EQUALS": "a=b=c"}
    for _ in range(3):  # at first they are not known yet
        result = bash.run_sync('printf \'%s|\' "$EMPTY" "$LINES" "$UNICODE" "$EQUALS" $#', env=odd)
        assert result.output == "|a\nb|žluť|a=b=c|0|"
    assert bash.run_sync("echo ${EMPTY-unset}").output == "unset\n"


def test_low_descriptors_are_passed_on_in_any_order() -> None:
    """Standard input of the host is the command's error output, and the other way round."""
    code = (
        "import os\n"
        "from limpet.process import spawn\n"
        "pid = spawn.start('/bin/sh', [b'sh', b'-c', b'echo out; echo err >&2; read x; echo $x'],\n"
        "    environment=[], cwd='/', stdin=0, stdout=2, stderr=1,\n"
        "    steps=(('prlimit64', (0, 0, 0, 0)),))\n"
        "os.waitpid(pid, 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input="in\n", capture_output=True, text=True, timeout=20
    )
    assert (done.stdout, done.stderr) == ("err\n", "out\nin\n")


def test_no_signal_is_blocked_in_the_child_and_none_ignored_for_pythons_sake(
    bash: limpet.Bash,
) -> None:
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
    try:
        output = bash.run_sync("grep -E 'SigBlk|SigIgn' /proc/self/status").output
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    blocked_there, ignored = (int(line.split()[1], 16) for line in output.splitlines())
    assert blocked_there == 0
    pythons = 1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1
    assert ignored & pythons == 0
    assert signal.SIGUSR1 not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_only_what_is_kept_is_inherited(bash: limpet.Bash) -> None:
    stray = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(stray, True)
    try:
        listing = bash.run_sync("ls /proc/self/fd").output.split()
    finally:
        os.close(stray)
    assert listing == ["0", "1", "2", "3"]  # 3 is what ls itself reads


def test_a_step_that_fails_leaves_no_child(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        spawn.start(
            "/bin/sh",
            [b"sh", b"-c", f"touch {tmp_path}/ran".encode()],
            environment=[],
            cwd="/",
            stdin=None,
            stdout=1,
            stderr=2,
            steps=(("chdir", (b"/nonexistent\0",)),),
        )
    assert not (tmp_path / "ran").exists()
