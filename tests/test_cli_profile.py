"""`limpet run --profile`: a command as a profile's tool, read by a model or seen by a person."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from render.emulator import LIMPET, on_terminal, shown


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LIMPET, "run", *arguments], capture_output=True, text=True, timeout=30, check=False
    )


def test_piped_it_prints_what_the_model_reads_and_exits_as_the_command_did() -> None:
    done = run("--profile", "modes", "echo hi; exit 3")
    assert (done.stdout, done.stderr, done.returncode) == ("hi\n[exit code: 3]\n", "", 3)


def test_the_rules_and_limits_are_the_profiles() -> None:
    refused = run("--profile", "report", "echo a; echo b")
    assert refused.returncode == 126
    assert "The command was refused" in refused.stdout
    limited = run("--profile", "tail", "--timeout", "0.2", "sleep 60")
    assert limited.returncode == 124


def test_with_json_it_prints_the_result() -> None:
    done = run("--profile", "report", "--json", "echo hi")
    assert json.loads(done.stdout)["stdout"] == "hi\n"


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("report", ["$ echo hi   ok", "timeout: 30s", "stdout: 1 lines stderr: 0 lines"]),
        ("default", ["$ echo hi   ok", "timeout: 120s"]),
        ("tasks", ["✓ Command completed", "stdout:", "  hi"]),
    ],
)
def test_on_a_terminal_it_shows_the_profiles_panel(name: str, seen: list[str]) -> None:
    text = "\n".join(shown("run", "--profile", name, "echo hi").seen())
    assert [part for part in seen if part not in text] == []


def test_what_was_cut_is_said_so_in_the_panel() -> None:
    text = shown("run", "--profile", "tasks", "seq 20000").written
    assert "Output (truncated):" in text
    assert "... (78894 characters truncated) ..." in text
    text = "\n".join(shown("run", "--profile", "report", "seq 20000").seen())
    assert "(truncated) stdout:" in text
    assert "bytes left out" in text or "lines left out" in text


def test_while_it_runs_its_last_lines_are_shown_and_then_only_the_panel() -> None:
    command = "echo early; while [ ! -e go ]; do sleep 0.05; done"
    with on_terminal("run", "--profile", "modes", command) as terminal:
        assert terminal.read_until(lambda: "lines" in terminal.written)
        assert "early" in terminal.written
        Path("go").touch()
        assert terminal.finish() == 0
    text = "\n".join(terminal.seen())
    assert text.count("early\n") <= 1 and "╭" in text
    assert text.lstrip().startswith("╭")


def test_it_is_not_for_background_tasks() -> None:
    done = run("--profile", "modes", "--background", "true")
    assert done.returncode == 2
    assert "limpet call" in done.stderr
