"""`limpet hook`: the events and answers that Claude Code documents for PreToolUse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from limpet.cli import main


def event(command: object = "ls", cwd: object = "/tmp", **others: Any) -> dict[str, Any]:  # noqa: ANN401 -- JSON
    """Return an event as Claude Code sends it."""
    return {
        "session_id": "abc123",
        "transcript_path": "/home/u/.claude/projects/p/abc123.jsonl",
        "cwd": str(cwd),
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command, "description": "Do it", "timeout": 120000},
        "tool_use_id": "toolu_01ABC123",
        **others,
    }


class Hook:
    """Answers events in this process."""

    def __init__(self, path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self._path = path
        self._capfd = capfd

    def said(self, given: object, *options: str) -> str:
        """Return what is printed for an event."""
        data = given if isinstance(given, bytes) else json.dumps(given).encode()
        self._path.write_bytes(data)
        done = _call(self._path, options)
        printed, complaint = self._capfd.readouterr()
        assert (done, complaint) == (0, "")
        return printed

    def answer(self, given: object, *options: str) -> tuple[str, str]:
        """Return the decision and the reason, out of exactly the documented form."""
        printed = json.loads(self.said(given, *options))
        assert printed.keys() == {"hookSpecificOutput"}
        inner = printed["hookSpecificOutput"]
        assert inner.keys() == {
            "hookEventName",
            "permissionDecision",
            "permissionDecisionReason",
        }
        assert inner["hookEventName"] == "PreToolUse"
        return inner["permissionDecision"], inner["permissionDecisionReason"]


def _call(path: Path, options: tuple[str, ...]) -> int:
    """Call the command line with a file as standard input."""
    before = os.dup(0)
    with path.open("rb") as file:
        os.dup2(file.fileno(), 0)
    try:
        return main(["hook", *options])
    finally:
        os.dup2(before, 0)
        os.close(before)


@pytest.fixture
def hook(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Hook:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Hook(tmp_path / "event", capfd)


def test_a_forbidden_command_is_denied_with_the_way_out(hook: Hook) -> None:
    decision, reason = hook.answer(event("cd src && git push --force"))
    assert decision == "deny"
    assert "git-push-force" in reason
    assert "Instead: use `git push --force-with-lease`" in reason


def test_an_ordinary_command_is_left_to_claude_code(hook: Hook) -> None:
    """An `allow` would skip the user's own permissions."""
    assert hook.said(event("git status | head")) == ""


def test_allow_is_said_if_asked_for(hook: Hook) -> None:
    assert hook.answer(event("git status"), "--allow")[0] == "allow"
    assert hook.answer(event("rm -rf /"), "--allow")[0] == "deny"


@pytest.mark.parametrize(
    "other",
    [
        event("rm -rf /", tool_name="Write"),
        event("rm -rf /", tool_name="bash"),
        event("rm -rf /", hook_event_name="PostToolUse"),
        {"hook_event_name": "Stop", "session_id": "abc123"},
        {"hook_event_name": "PreToolUse", "tool_name": "Read", "tool_input": {"file_path": "x"}},
    ],
)
def test_of_other_tools_and_events_there_is_no_opinion(other: object, hook: Hook) -> None:
    assert hook.said(other) == ""
    assert hook.said(other, "--allow") == ""


def test_other_tools_can_be_guarded_too(hook: Hook) -> None:
    given = event("rm -rf /", tool_name="mcp__shell__run")
    assert hook.said(given, "--tool", "Other") == ""
    assert hook.answer(given, "--tool", "Other", "--tool", "mcp__shell__run")[0] == "deny"
    assert hook.answer(event("rm -rf /"), "--tool", "Other")[0] == "deny", "and still Bash"


def test_the_rules_are_those_of_where_the_session_works(hook: Hook, tmp_path: Path) -> None:
    (tmp_path / "limpet.toml").write_text(
        '[permissions]\nask = ["terraform apply *"]\ndeny = ["npm publish *"]\n'
    )
    below = tmp_path / "src"
    below.mkdir()
    decision, reason = hook.answer(event("terraform apply -auto-approve", below))
    assert decision == "ask"
    assert "terraform apply" in reason
    assert hook.answer(event("npm publish --tag x", below))[0] == "deny"
    assert hook.said(event("npm publish --tag x", "/")) == ""


def test_the_command_line_can_name_the_rules(hook: Hook) -> None:
    assert hook.said(event("ls; pwd")) == ""
    assert hook.answer(event("ls; pwd"), "--rules", "strict")[0] == "deny"
    assert hook.said(event("git push -f"), "--rules", "none") == ""


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (b"", "not JSON"),
        (b"rm -rf /", "not JSON"),
        (b'{"hook_event_name": "PreToolUse", ', "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not an object"),
        (b"{}", "no hook_event_name"),
        (event(hook_event_name=None), "no hook_event_name"),
        (event(tool_name=7), "no tool_name"),
        (event(tool_input="rm -rf /"), "no command"),
        (event(tool_input={"cmd": "rm -rf /"}), "no command"),
        (event(["rm", "-rf", "/"]), "no command"),
    ],
)
def test_what_cannot_be_read_is_neither_blocked_nor_let_pass(
    given: object, why: str, hook: Hook
) -> None:
    """The user is asked: exit 2 would block, exit 1 would let it run."""
    decision, reason = hook.answer(given)
    assert decision == "ask"
    assert why in reason


def test_settings_that_are_wrong_do_not_open_the_gate(hook: Hook, tmp_path: Path) -> None:
    (tmp_path / "limpet.toml").write_text("rules = [\n")
    decision, reason = hook.answer(event("rm -rf /", tmp_path))
    assert decision == "ask"
    assert "limpet.toml:" in reason


@pytest.mark.parametrize("cwd", ["/nowhere/at/all", "", "relative", "\0", "\ud800"])
def test_any_directory_will_do(cwd: str, hook: Hook) -> None:
    assert hook.answer(event("rm -rf /", cwd))[0] in ("deny", "ask")


def test_the_reason_cannot_play_tricks_on_a_terminal(hook: Hook) -> None:
    _, reason = hook.answer(event("git push -f '\x1b[2J\u202e\ud800'"))
    assert "␛[2J" in reason
    assert reason.isprintable()


def test_the_reason_is_bounded(hook: Hook, tmp_path: Path) -> None:
    (tmp_path / "limpet.toml").write_text(f"{'x' * 10_000} = 1\n")
    assert len(hook.answer(event("ls", tmp_path))[1]) == 4000


def test_an_answer_that_cannot_be_written_blocks(tmp_path: Path) -> None:
    path = tmp_path / "event"
    path.write_text(json.dumps(event("git push -f")))
    with path.open("rb") as given, Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "limpet.cli", "hook"], stdin=given, stdout=full,
            stderr=subprocess.PIPE, timeout=20,
        )  # fmt: skip
    assert done.returncode == 2
    assert b"could not be written: deny" in done.stderr


def test_it_loads_nothing_that_is_slow(tmp_path: Path) -> None:
    """It is waited for before each command: what runs, validates or paints is not needed."""
    path = tmp_path / "event"
    path.write_text(json.dumps(event("git status")))
    code = (
        "import sys; from limpet.cli import main; status = main(['hook'])\n"
        "print(status, *sorted(sys.modules))"
    )
    with path.open("rb") as given:
        done = subprocess.run(
            [sys.executable, "-c", code], stdin=given, capture_output=True, text=True, timeout=20
        )
    status, *loaded = done.stdout.split()
    assert (status, done.stderr) == ("0", "")
    slow = {"asyncio", "pydantic", "rich", "subprocess", "platformdirs", "limpet.tool"}
    assert slow.isdisjoint(loaded)


def test_the_help_has_settings_that_can_be_pasted(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["hook", "--help"])
    printed = capsys.readouterr().out
    start = printed.index('  {"hooks"')
    settings = json.loads(printed[start : printed.index("\n\n", start)])
    (group,) = settings["hooks"]["PreToolUse"]
    assert group["matcher"] == "Bash"
    assert group["hooks"][0]["command"] == "limpet hook"
