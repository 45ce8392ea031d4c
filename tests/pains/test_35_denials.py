"""A sandbox that explains itself: what it is, what it denied, how to permit it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import limpet
from limpet.confinement import LimitPolicy, SandboxPolicy
from limpet.sandbox import denials, ground, plan


def _run(command: str, tmp_path: Path, **policy: object) -> limpet.Result:
    bash = limpet.Bash(limpet.Policy(rules="none", **policy))  # type: ignore[arg-type]
    return bash.run_sync(command, ctx=limpet.ToolContext(tmp_path))


@pytest.fixture
def outside() -> Path:
    """Return a file that is in no temporary place."""
    return Path("/var/tmp") / f"limpet-outside-{os.getpid()}"


def test_the_result_names_the_mode_and_what_holds(tmp_path: Path) -> None:
    result = _run("true", tmp_path, sandbox="workspace")
    assert result.sandbox is not None
    assert result.sandbox.mode == "workspace"
    assert any(line.startswith("no network: ") for line in result.sandbox.enforced)
    assert result.to_dict()["sandbox"]["mode"] == "workspace"  # type: ignore[index]
    assert _run("true", tmp_path).sandbox is None


def test_the_environment_carries_the_mode(tmp_path: Path) -> None:
    assert _run("echo $LIMPET_SANDBOX", tmp_path, sandbox="read-only").output == "read-only\n"
    assert _run("echo ${LIMPET_SANDBOX-none}", tmp_path).output == "none\n"


@pytest.mark.parametrize(
    "command",
    [
        "touch {path}",
        "echo x > {path}",
        "mkdir {path}",
        "cp /etc/passwd {path}",
        "/usr/bin/python3 -c \"open('{path}', 'w')\"",
        "node -e \"require('fs').writeFileSync('{path}', '')\"",
        "git init -q {path}",
    ],
)
@pytest.mark.parametrize("mode", ["read-only", "workspace"])
def test_a_denied_write_is_explained(
    command: str, mode: str, tmp_path: Path, outside: Path
) -> None:
    result = _run(command.format(path=outside), tmp_path, sandbox=mode)
    assert not outside.exists()
    assert result.sandbox is not None
    (denial, *_) = result.sandbox.denials
    assert denial.path is not None
    assert denial.path.startswith(str(outside))
    assert denial.permit
    assert result.hint is not None
    assert str(outside) in result.hint


def test_a_refusal_that_is_not_the_sandboxs_is_not_claimed(tmp_path: Path) -> None:
    result = _run("ls /nonexistent; false", tmp_path, sandbox="read-only")
    assert result.sandbox is not None
    assert result.sandbox.denials == ()
    result = _run("echo 'a: Permission denied'", tmp_path, sandbox="workspace")
    assert result.sandbox is not None
    assert result.sandbox.denials == ()


@pytest.mark.parametrize(
    "command",
    [
        "curl -sS http://nowhere.invalid/",
        "/usr/bin/python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 2)'",
        "exec 3<>/dev/tcp/192.0.2.1/80",
    ],
)
def test_a_closed_network_is_explained(command: str, tmp_path: Path) -> None:
    result = _run(command, tmp_path, sandbox="read-only")
    assert result.sandbox is not None
    assert [denial.rule for denial in result.sandbox.denials] == ["the network is off"]


def test_a_denied_signal_is_explained(tmp_path: Path) -> None:
    result = _run(f"kill -0 {os.getpid()}", tmp_path, sandbox="read-only")
    assert result.sandbox is not None
    (denial,) = result.sandbox.denials
    assert "outside" in denial.rule


def test_a_look_into_a_process_outside_is_explained(tmp_path: Path) -> None:
    result = _run(f"cat /proc/{os.getpid()}/environ", tmp_path, sandbox="workspace")
    assert result.output.endswith("Permission denied\n")
    assert result.sandbox is not None
    (denial,) = result.sandbox.denials
    assert denial.rule.startswith("processes outside")


def test_hostile_output_is_read_in_no_time() -> None:
    made = plan.make(SandboxPolicy(mode="read-only"), None, ground.look(), "/", {})
    for line in ("'" * 100_000, "a" * 100_000, "x: " * 50_000, "\x00/" * 50_000, "‘" * 50_000):
        text = f"{line}: Permission denied\n" * 3
        assert denials.find(text, "/", made) is not None


def test_the_model_is_told(tmp_path: Path) -> None:
    bash = limpet.Bash(sandbox="workspace", limits=LimitPolicy(cpu_s=60))
    text = bash.constraints(limpet.ToolContext(tmp_path))
    assert str(tmp_path) in text
    assert "no network" in text
    assert "CPU time per process 60 s" in text
    assert limpet.Bash().constraints() == ""
    ports = limpet.Bash(sandbox="read-only", ports=[443]).constraints()
    assert "port 443" in ports
    assert "read-only" in ports


LIMPET = [sys.executable, "-m", "limpet.cli"]


def _limpet(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LIMPET, *arguments], capture_output=True, text=True, timeout=30, cwd=cwd
    )


def test_the_command_line_confines(tmp_path: Path, outside: Path) -> None:
    done = _limpet("run", "--sandbox", "workspace", f"touch here && touch {outside}", cwd=tmp_path)
    assert done.returncode == 1
    assert (tmp_path / "here").exists()
    assert not outside.exists()
    assert "the sandbox has probably denied" in done.stderr
    done = _limpet("run", "--sandbox", "read-only", "--json", "touch never", cwd=tmp_path)
    assert json.loads(done.stdout)["sandbox"]["mode"] == "read-only"
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--network", "on"], "this needs a sandbox"),
        (["--sandbox", "read-only", "--port", "0"], "1 to 65535"),
        (["--sandbox", "read-only", "--hide", "x"], "absolute"),
        (["--limit", "cpu"], "NAME=VALUE"),
        (["--limit", "memory=lots"], "whole number"),
        (["--sandbox", "read-only", "--network", "on", "--port", "80"], "not both"),
    ],
)
def test_wrong_arguments_are_told(arguments: list[str], problem: str, tmp_path: Path) -> None:
    done = _limpet("run", *arguments, "true", cwd=tmp_path)
    assert done.returncode == 2
    assert problem in done.stderr


def test_limits_of_the_command_line(tmp_path: Path) -> None:
    options = ["--limit", "memory=2G", "--limit", "cpu=60", "--limit", "open-files=none"]
    done = _limpet("run", *options, "ulimit -d; ulimit -t", cwd=tmp_path)
    assert done.stdout.split() == [str(2 << 20), "60"]


def test_the_doctor_tells(tmp_path: Path) -> None:
    found = json.loads(_limpet("doctor", "--json", cwd=tmp_path).stdout)
    assert found["landlock_abi"] >= 1
    assert set(found["modes"]) == {"read-only", "workspace"}
    for promises in found["modes"].values():
        assert {"name", "enforced", "by"} == promises[0].keys()
    text = _limpet("doctor", cwd=tmp_path)
    assert text.returncode == 0
    assert f"ABI {found['landlock_abi']}" in text.stdout
    assert "✓ no signals to processes outside: Landlock" in text.stdout


def test_settings_can_ask_for_a_sandbox(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "limpet.toml").write_text('sandbox = "workspace"\n[limits]\ncpu_s = 60\n')
    done = _limpet("run", f"ulimit -t; touch {outside}", cwd=tmp_path)
    assert done.stdout == "60\n"
    assert not outside.exists()
    (tmp_path / "limpet.toml").write_text('[sandbox]\nmode = "read-only"\nhide = ["/etc/hosts"]\n')
    done = _limpet("run", "cat /etc/hosts; touch x", cwd=tmp_path)
    assert done.stdout == ""
    (tmp_path / "limpet.toml").write_text('sandbox = "rad-only"\n')
    done = _limpet("run", "true", cwd=tmp_path)
    assert done.returncode == 2
    assert "limpet.toml:1: sandbox.mode" in done.stderr
