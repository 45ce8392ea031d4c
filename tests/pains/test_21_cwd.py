"""Where a call starts never depends on another, unless the policy says so, and then it is told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support import as_ordinary_user

import limpet


@pytest.fixture
def persistent() -> limpet.Bash:
    """Return a tool whose conversations keep their working directory."""
    return limpet.Bash(persist_cwd=True)


def test_by_default_every_call_starts_in_the_same_place(bash: limpet.Bash, tmp_path: Path) -> None:
    context = limpet.ToolContext(tmp_path)
    result = bash.run_sync("cd /; pwd", ctx=context)
    assert (result.output, result.cwd, result.cwd_changed) == ("/\n", str(tmp_path), False)
    assert bash.run_sync("pwd", ctx=context).output == f"{tmp_path}\n"


def test_without_a_context_a_call_starts_where_the_host_is(bash: limpet.Bash) -> None:
    assert bash.run_sync("pwd").output == f"{Path.cwd()}\n"


def test_a_persistent_conversation_goes_where_cd_went(
    persistent: limpet.Bash, tmp_path: Path
) -> None:
    odd = tmp_path / "it's a 'dir'\nwith a newline "
    odd.mkdir()
    context = limpet.ToolContext(tmp_path)
    moved = persistent.run_sync('cd "$(ls -d it*)" 2>/dev/null || cd it*; exit 3', ctx=context)
    assert moved.exit_code == 3
    assert moved.cwd_changed
    assert moved.cwd == str(odd)
    again = persistent.run_sync("pwd", ctx=context)
    assert again.output == f"{odd}\n"
    assert not again.cwd_changed
    assert persistent.run_sync("pwd", ctx=limpet.ToolContext(tmp_path)).cwd == str(tmp_path)


def test_a_cd_is_never_read_from_the_output(persistent: limpet.Bash, tmp_path: Path) -> None:
    context = limpet.ToolContext(tmp_path)
    persistent.run_sync("echo cd /etc; echo /etc; (cd /etc); pwd", ctx=context)
    assert persistent.run_sync("pwd", ctx=context).output == f"{tmp_path}\n"


def test_the_kept_path_is_the_one_that_cd_was_given(
    persistent: limpet.Bash, tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    context = limpet.ToolContext(tmp_path)
    assert persistent.run_sync("cd link", ctx=context).cwd == f"{tmp_path}/link"
    assert persistent.run_sync("echo $PWD", ctx=context).output == f"{tmp_path}/link\n"


def test_calls_at_once_do_not_move_each_other(persistent: limpet.Bash, tmp_path: Path) -> None:
    async def main() -> None:
        context = limpet.ToolContext(tmp_path)
        stay, move = await asyncio.gather(
            persistent.run("sleep 0.3; pwd", ctx=context), persistent.run("cd /", ctx=context)
        )
        assert stay.output == f"{tmp_path}\n"
        assert move.cwd == "/"
        assert context.cwd == "/"
        first, second = await asyncio.gather(
            persistent.run("sleep 0.1; cd /usr", ctx=context),
            persistent.run("cd /etc; sleep 0.4", ctx=context),
        )
        assert (first.cwd, second.cwd) == ("/usr", "/etc")
        assert context.cwd == "/usr"  # it was there first; the other started before that

    asyncio.run(main())


def test_a_command_killed_in_the_middle_leaves_the_place_known(
    persistent: limpet.Bash, tmp_path: Path
) -> None:
    context = limpet.ToolContext(tmp_path)
    persistent.run_sync("cd /; kill -9 $$", ctx=context)
    assert context.cwd == str(tmp_path)


def test_a_place_that_is_gone_is_said_so_and_then_left(
    persistent: limpet.Bash, tmp_path: Path
) -> None:
    (tmp_path / "gone").mkdir()
    context = limpet.ToolContext(tmp_path)
    persistent.run_sync("cd gone", ctx=context)
    (tmp_path / "gone").rmdir()
    result = persistent.run_sync("pwd", ctx=context)
    assert result.outcome is limpet.Outcome.FAILED_TO_START
    assert "does not exist" in (result.hint or "")
    assert persistent.run_sync("pwd", ctx=context).output == f"{tmp_path}\n"


def test_a_missing_or_closed_place_is_said_before_anything_starts(
    bash: limpet.Bash, tmp_path: Path
) -> None:
    missing = bash.run_sync("touch ran", ctx=limpet.ToolContext(tmp_path / "missing"))
    assert missing.outcome is limpet.Outcome.FAILED_TO_START
    assert f"does not exist: {tmp_path}/missing" in (missing.hint or "")
    (tmp_path / "file").touch()
    file = bash.run_sync("true", ctx=limpet.ToolContext(tmp_path / "file"))
    assert "is not a directory" in (file.hint or "")


def test_an_ordinary_user_is_told_of_a_place_that_may_not_be_entered(
    bash: limpet.Bash, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    context = limpet.ToolContext(closed)
    hint = as_ordinary_user(lambda: bash.run_sync("true", ctx=context).hint or "")
    assert f"may not be entered by this user: {closed}" in hint
