"""Refused means that nothing ran, and that whoever asked learns why."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import limpet
from limpet.command.model import Command, Word
from limpet.events import Event, Finished
from limpet.safety.rule import Rule


def _always(command: Command) -> Word | None:
    return command.words[0]


NO_TOUCH = Rule(
    id="no-touch",
    message="files are made by people",
    advice="ask for the file",
    find=_always,
    names=("touch",),
)
"""About a command that is harmless, and leaves a trace if it runs."""

Drive = Callable[[limpet.Bash, str, limpet.ToolContext], limpet.Result]


def run(bash: limpet.Bash, command: str, ctx: limpet.ToolContext) -> limpet.Result:
    """Run on an event loop."""
    return asyncio.run(bash.run(command, ctx=ctx))


def run_sync(bash: limpet.Bash, command: str, ctx: limpet.ToolContext) -> limpet.Result:
    """Run without one."""
    return bash.run_sync(command, ctx=ctx)


async def events_of(bash: limpet.Bash, command: str, ctx: limpet.ToolContext) -> list[Event]:
    """Return all events of a stream."""
    return [event async for event in bash.stream(command, ctx=ctx)]


def stream(bash: limpet.Bash, command: str, ctx: limpet.ToolContext) -> limpet.Result:
    """Return the result at the end of a stream that has nothing else."""
    events = asyncio.run(events_of(bash, command, ctx))
    assert len(events) == 1
    assert isinstance(events[0], Finished)
    return events[0].result


@pytest.fixture
def guarded() -> limpet.Bash:
    """Return a tool that refuses to touch files."""
    return limpet.Bash(rules=limpet.RulePolicy(extra=(NO_TOUCH,)))


@pytest.mark.parametrize("drive", [run, run_sync, stream])
@pytest.mark.parametrize(
    "command",
    [
        "touch ran",
        "echo x > ran; touch ran2",
        "touch ran &",
        "echo $(touch ran)",
        "bash -c 'touch ran'",
        "f() { touch ran; }; f",
    ],
)
def test_nothing_of_a_refused_command_runs(
    guarded: limpet.Bash, drive: Drive, command: str, tmp_path: Path
) -> None:
    result = drive(guarded, command, limpet.ToolContext(tmp_path))
    assert result.outcome is limpet.Outcome.REFUSED
    assert list(tmp_path.iterdir()) == []
    assert result.command == command
    assert result.exit_code is None
    assert result.usage is None
    assert result.output == ""
    assert not result.ok
    assert result.is_error
    assert result.cwd == str(tmp_path)


@pytest.mark.parametrize("drive", [run, run_sync, stream])
def test_a_refusal_carries_its_verdict(guarded: limpet.Bash, drive: Drive, tmp_path: Path) -> None:
    result = drive(guarded, "ls; touch ran", limpet.ToolContext(tmp_path))
    assert result.verdict == guarded.check("ls; touch ran")
    assert result.verdict is not None
    assert result.verdict.decision == "deny"
    assert result.hint == result.verdict.describe()
    found = json.loads(json.dumps(result.to_dict()))
    assert found["outcome"] == "refused"
    assert found["verdict"]["decision"] == "deny"
    assert [finding["rule"] for finding in found["verdict"]["findings"]] == ["no-touch"]


@pytest.mark.parametrize("drive", [run, run_sync, stream])
def test_checking_a_refusal_raises_what_says_why(drive: Drive, tmp_path: Path) -> None:
    """`git add -A` where there is no repository would do no harm if it ran."""
    result = drive(limpet.Bash(), "git add -A", limpet.ToolContext(tmp_path))
    with pytest.raises(limpet.CommandRefused, match="git-add-blind") as caught:
        result.check()
    assert isinstance(caught.value, PermissionError)
    assert caught.value.result is result
    assert "name the paths" in str(caught.value)


@pytest.mark.parametrize("drive", [run, run_sync])
def test_what_is_allowed_runs_and_says_so(
    guarded: limpet.Bash, drive: Drive, tmp_path: Path
) -> None:
    result = drive(guarded, "echo 'touch ran' > note", limpet.ToolContext(tmp_path))
    assert result.ok
    assert result.verdict is not None
    assert result.verdict.decision == "allow"
    assert [path.name for path in tmp_path.iterdir()] == ["note"]


def test_without_rules_there_is_no_verdict(tmp_path: Path) -> None:
    result = limpet.Bash(rules="none").run_sync("true")
    assert result.ok
    assert result.verdict is None
    assert result.to_dict()["verdict"] is None


def test_a_note_does_not_keep_a_command_from_running() -> None:
    result = limpet.Bash().run_sync("echo hi; echo )")
    assert result.outcome is limpet.Outcome.EXITED
    assert result.verdict is not None
    assert [finding.rule for finding in result.verdict.findings] == ["not-understood"]


def test_a_refusal_does_not_take_a_turn(guarded: limpet.Bash) -> None:
    for _ in range(200):
        assert guarded.run_sync("touch ran").outcome is limpet.Outcome.REFUSED
    assert guarded.run_sync("echo still here").output == "still here\n"


def test_a_refused_call_of_a_conversation_does_not_move_it(tmp_path: Path) -> None:
    rules = limpet.RulePolicy(extra=(NO_TOUCH,))
    bash = limpet.Bash(rules=rules, persist_cwd=True)
    ctx = limpet.ToolContext(tmp_path)
    assert bash.run_sync("cd / && touch ran", ctx=ctx).outcome is limpet.Outcome.REFUSED
    assert bash.run_sync("pwd", ctx=ctx).output == f"{tmp_path}\n"
