"""A sandbox that was asked for and cannot be had: nothing runs, unless less was asked for too."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import limpet
from limpet.attempt import Call
from limpet.cli import main
from limpet.process import steps
from limpet.sandbox import ground, seccomp


@pytest.fixture
def force() -> Iterator[Callable[..., None]]:
    """Return a function that makes the kernel look other than it is."""

    def put(**facts: Any) -> None:  # noqa: ANN401 -- any of its fields
        ground._forced.append(ground._look(os.geteuid())._replace(**facts))

    yield put
    ground._forced.clear()


@pytest.mark.parametrize("facts", [{"abi": 0}, {"has_seccomp": False, "has_broker": False}])
@pytest.mark.parametrize("mode", ["read-only", "workspace"])
def test_nothing_runs(
    force: Callable[..., None], facts: dict[str, object], mode: str, tmp_path: Path
) -> None:
    force(**facts)
    bash = limpet.Bash(sandbox=mode)
    ctx = limpet.ToolContext(tmp_path)

    async def stream() -> None:
        async for _ in bash.stream("touch ran", ctx=ctx):
            pass

    with pytest.raises(limpet.SandboxUnavailable, match=r"needs (Landlock|seccomp)"):
        bash.run_sync("touch ran", ctx=ctx)
    with pytest.raises(limpet.SandboxUnavailable):
        asyncio.run(bash.run("touch ran", ctx=ctx))
    with pytest.raises(limpet.SandboxUnavailable):
        asyncio.run(stream())
    assert not (tmp_path / "ran").exists()


def test_the_error_says_what_is_needed(force: Callable[..., None]) -> None:
    force(abi=0)
    with pytest.raises(limpet.SandboxUnavailable) as caught:
        limpet.Bash(sandbox="read-only").run_sync("true")
    text = str(caught.value)
    assert "Linux 5.13" in text
    assert "Nothing ran" in text
    assert "limpet doctor" in text


def test_a_kernel_that_refuses_at_the_last_moment_is_no_way_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(_: object) -> int:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(seccomp, "install", refuse)
    with pytest.raises(limpet.SandboxUnavailable, match="cannot be set up"):
        limpet.Bash(sandbox="workspace").run_sync("touch ran", ctx=limpet.ToolContext(tmp_path))
    assert not (tmp_path / "ran").exists()


def test_a_system_without_executable_memory_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "can_be_made", lambda: False)
    with pytest.raises(limpet.SandboxUnavailable, match="executable memory"):
        limpet.Bash(sandbox="read-only").run_sync("true")


def test_another_system_has_only_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(limpet.SandboxUnavailable, match=r"Landlock|limits need Linux"):
        limpet.Bash(sandbox="read-only").run_sync("true")


def test_single_ports_need_a_kernel_that_has_them(force: Callable[..., None]) -> None:
    force(abi=3)
    with pytest.raises(limpet.SandboxUnavailable, match=r"Linux 6\.7"):
        limpet.Bash(sandbox="read-only", ports=[443]).run_sync("true")


def test_degrading_is_said_in_each_result(force: Callable[..., None], tmp_path: Path) -> None:
    force(abi=0, can_mount=False, own_network=False)
    policy = limpet.SandboxPolicy(mode="read-only", degrade=True)
    for _ in range(2):
        result = limpet.Bash(sandbox=policy).run_sync("echo hi", ctx=limpet.ToolContext(tmp_path))
        assert result.output == "hi\n"
        assert result.sandbox is not None
        missing = [line for line in result.sandbox.not_enforced if line.startswith("files ")]
        assert missing == [
            "files anywhere are not written, made, renamed or removed: needs Landlock (Linux 5.13)"
        ]
        assert "no network: seccomp" in result.sandbox.enforced


def test_degraded_the_rules_still_hold(force: Callable[..., None]) -> None:
    force(abi=0, has_seccomp=False, has_broker=False, can_mount=False, own_network=False)
    policy = limpet.SandboxPolicy(mode="workspace", degrade=True)
    result = limpet.Bash(sandbox=policy).run_sync("git push --force")
    assert result.outcome is limpet.Outcome.REFUSED


def test_a_call_has_no_switch() -> None:
    """What a model can give is in `Call`; the sandbox is the policy's."""
    assert not {"sandbox", "network", "hide", "limits", "degrade"} & set(Call.__annotations__)
    with pytest.raises(TypeError, match="no such argument"):
        limpet.Bash(sandbox="read-only").run_sync("true", sandbox="off")  # type: ignore[call-arg]
    assert "sandbox" not in inspect.signature(limpet.ToolContext).parameters


def test_what_the_user_asks_for_a_project_cannot_take_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from limpet import settings

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "limpet").mkdir(parents=True)
    (tmp_path / "config" / "limpet" / "limpet.toml").write_text('sandbox = "workspace"')
    project = tmp_path / "project"
    project.mkdir()
    for asked, got in [
        ("off", "workspace"),
        ("workspace", "workspace"),
        ("read-only", "read-only"),
    ]:
        (project / "limpet.toml").write_text(f'sandbox = "{asked}"')
        assert settings.load(project).sandbox.mode == got


def test_the_command_line_refuses_too(
    force: Callable[..., None], capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    force(abi=0)
    target = tmp_path / "ran"
    assert main(["run", "--sandbox", "read-only", f"touch {target}"]) == 125
    assert "needs Landlock" in capfd.readouterr().err
    assert not target.exists()


def test_the_doctor_says_so(force: Callable[..., None], capfd: pytest.CaptureFixture[str]) -> None:
    force(abi=0)
    assert main(["doctor"]) == 1
    assert "There is no sandbox here: it needs Landlock" in capfd.readouterr().out
    force(abi=5)
    assert main(["doctor"]) == 0
    out = capfd.readouterr().out
    assert "✗ no signals to processes outside: needs Landlock ABI 6 (Linux 6.12)" in out
