"""`limpet check` in its three forms, and the rules in `limpet run`."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

LIMPET = [sys.executable, "-m", "limpet.cli"]


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def limpet(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LIMPET, *arguments], input=stdin, capture_output=True, text=True, timeout=30
    )


def test_a_person_sees_the_offending_part_marked_and_what_to_do() -> None:
    done = limpet("check", "cd x && git add -A")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "✗ refused"
    assert lines[2:4] == ["  cd x && git add -A", "                  ^^"]
    assert lines[4].startswith("  git-add-blind: ")
    assert lines[5].startswith("  instead: name the paths")


def test_marks_stand_below_their_line_of_several_and_below_wide_text() -> None:
    lines = limpet("check", "echo grüße\necho ü; git push -f\nls").stdout.splitlines()
    assert lines[2:4] == ["  echo ü; git push -f", "                   ^^"]


def test_control_characters_of_a_command_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in limpet("check", "git add -A \x1b[2J").stdout


def test_allowed_is_status_0_and_asked_is_3(tmp_path: Path) -> None:
    assert limpet("check", "rm -rf build").returncode == 0
    (tmp_path / "limpet.toml").write_text('[permissions]\nask = ["npm publish *"]')
    done = limpet("check", "npm publish")
    assert (done.returncode, done.stdout.splitlines()[0]) == (3, "? needs approval")


def test_json_is_the_verdict_and_the_status_0() -> None:
    done = limpet("check", "--json", "git push -f")
    verdict = json.loads(done.stdout)
    assert done.returncode == 0
    assert verdict["decision"] == "deny"
    (finding,) = verdict["findings"]
    assert finding.keys() == {"rule", "message", "advice", "start", "end"}
    assert (finding["rule"], finding["start"], finding["end"]) == ("git-push-force", 9, 11)


def test_jsonl_answers_line_by_line_and_loses_nothing_on_a_bad_one() -> None:
    rows = ['{"command": "rm -rf /"}', "", "nonsense", '{"command": 3}', '{"command": "ls"}']
    done = limpet("check", "--jsonl", stdin="\n".join(rows))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer.get("decision") for answer in answers] == ["deny", None, None, "allow"]
    assert [list(answer) for answer in answers[1:3]] == [["error"], ["error"]]
    assert "line 3" in answers[1]["error"]
    assert done.returncode == 2


def test_jsonl_answers_before_the_next_line_comes() -> None:
    with subprocess.Popen(
        [*LIMPET, "check", "--jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for command, decision in (("ls", b"allow"), ("rm -rf ~", b"deny")):
            process.stdin.write(json.dumps({"command": command}).encode() + b"\n")
            process.stdin.flush()
            assert decision in process.stdout.readline()
        process.stdin.close()


def test_a_reader_that_goes_away_ends_it_quietly() -> None:
    rows = '{"command": "ls"}\n' * 50_000
    shell = f"{sys.executable} -m limpet.cli check --jsonl | head -1"
    done = subprocess.run(
        ["bash", "-c", shell], input=rows, capture_output=True, text=True, timeout=30
    )
    assert done.stderr == ""
    assert json.loads(done.stdout)["decision"] == "allow"


WRONG = {
    (): "no command",
    ("git", "status"): "quote it: limpet check 'git status'",
    ("--jsonl", "ls"): "takes none",
}


@pytest.mark.parametrize(("arguments", "problem"), WRONG.items())
def test_wrong_arguments_are_told(arguments: tuple[str, ...], problem: str) -> None:
    done = limpet("check", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr


def test_the_command_may_come_from_standard_input() -> None:
    assert limpet("check", "-", stdin="echo a\nrm -rf ~\n").returncode == 1


def test_the_rules_may_be_chosen() -> None:
    assert limpet("check", "ls; pwd").returncode == 0
    assert limpet("check", "--rules", "strict", "ls; pwd").returncode == 1
    assert limpet("check", "--rules", "none", "git add -A").returncode == 0


def test_an_error_in_limpet_toml_names_file_line_and_key(tmp_path: Path) -> None:
    (tmp_path / "limpet.toml").write_text("\n[rules]\nof = []")
    done = limpet("check", "ls")
    assert done.returncode == 2
    assert f"{tmp_path}/limpet.toml:3: rules.of: no such setting" in done.stderr


def test_run_refuses_with_126_says_why_and_runs_nothing(tmp_path: Path) -> None:
    done = limpet("run", "touch ran && git add -A")
    assert done.returncode == 126
    assert done.stdout == ""
    assert "git-add-blind" in done.stderr
    assert "name the paths" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_run_takes_the_rules_of_the_directory_it_runs_in(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "limpet.toml").write_text('[permissions]\ndeny = ["echo *"]')
    assert limpet("run", "--cwd", str(project), "echo hi").returncode == 126
    assert limpet("run", "echo hi").stdout == "hi\n"


def test_what_needs_approval_is_refused_with_the_way_to_allow_it(tmp_path: Path) -> None:
    (tmp_path / "limpet.toml").write_text('[permissions]\nask = ["echo *"]')
    done = limpet("run", "echo hi")
    assert (done.returncode, done.stdout) == (126, "")
    assert "permissions' `allow`" in done.stderr


def test_colour_is_for_terminals() -> None:
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*LIMPET, "check", "git add -A"], stdout=follower, env={**os.environ, "NO_COLOR": ""}
    )
    os.close(follower)
    process.wait(30)
    assert b"\x1b[31m" in os.read(leader, 4096)
    os.close(leader)
    assert "\x1b" not in limpet("check", "git add -A").stdout
