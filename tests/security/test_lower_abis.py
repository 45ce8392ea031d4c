"""What an older kernel's Landlock lacks is covered by seccomp, or named, or refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import limpet
from limpet.sandbox import ground
from security.attacks import driver
from security.campaign import make
from security.host import MODES, USERS, as_user, scratch, tool
from security.table import UNLESS_ASKED

ABIS = range(1, 7)
FILES = [("files", name) for name in driver.PROGRAMS["files"]]
SOCKETS = [("sockets", name) for name in driver.PROGRAMS["sockets"]]


@contextmanager
def _forced(user: str, abi: int, **facts: bool) -> Iterator[None]:
    """Have an older kernel, and no mount namespace, which would cover what Landlock lacks."""
    own = {"is_root": user == "root", "can_mount": False, "own_network": False}
    real = ground.look()
    ground._forced.append(real._replace(abi=abi, **{**own, **facts}))
    try:
        yield
    finally:
        ground._forced.pop()


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("abi", [1])
def test_files_and_sockets_are_out_of_reach_with_an_older_landlock(
    user: str, mode: str, abi: int
) -> None:
    with _forced(user, abi):
        came = make(user, mode, FILES + SOCKETS)
    assert {name: each.said for (_, name), each in came.items() if each.had_effect} == {}


@pytest.mark.parametrize("user", USERS)
def test_without_a_broker_modes_and_times_are_all_that_is_open_and_that_is_said(user: str) -> None:
    with _forced(user, 6, has_broker=False):
        came = make(user, "workspace", FILES + SOCKETS)
    assert {name for (_, name), each in came.items() if each.had_effect} <= UNLESS_ASKED

    def act(base: Path) -> limpet.Result:
        with _forced(user, 6, has_broker=False):
            return tool("workspace").run_sync(":", ctx=limpet.ToolContext(base))

    with scratch(user) as base:
        result = as_user(user, lambda: act(base))
    assert result.sandbox is not None
    assert any("modes and times" in each for each in result.sandbox.not_enforced)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("abi", ABIS)
def test_truncation_is_refused_and_signals_are_named(user: str, mode: str, abi: int) -> None:
    program = (
        "import os\n"
        "for act in (lambda: os.truncate('../file', 0), lambda: os.open('../file', os.O_TRUNC),\n"
        "            lambda: os.open('../file', 3 | os.O_TRUNC)):\n"
        "    try: act()\n"
        "    except OSError: print('refused')\n"
    )

    def act(base: Path) -> tuple[str, str, limpet.Result]:
        (base / "workspace").mkdir()
        (base / "file").write_text("kept")
        with _forced(user, abi):
            result = tool(mode).run_sync(
                "/usr/bin/python3 -", stdin=program.encode(),
                ctx=limpet.ToolContext(base / "workspace"),
            )  # fmt: skip
        return (base / "file").read_text(), result.stdout, result

    with scratch(user) as base:
        content, said, result = as_user(user, lambda: act(base))
    assert (content, said) == ("kept", "refused\n" * 3)
    assert result.sandbox is not None
    signals = [each for each in result.sandbox.not_enforced if "signals" in each]
    assert bool(signals) == (abi < 6)
    assert all("ABI 6" in each for each in signals)


@pytest.mark.parametrize("abi", [0, 1, 2, 3])
def test_single_ports_are_refused_before_anything_runs(abi: int, tmp_path: Path) -> None:
    with _forced("root", abi), pytest.raises(limpet.SandboxUnavailable, match="Landlock"):
        tool("read-only", ports=[443]).run_sync(f"touch {tmp_path}/ran", ctx=_here(tmp_path))
    assert list(tmp_path.glob("ran")) == []


@pytest.mark.parametrize("mode", MODES)
def test_no_landlock_is_refused_before_anything_runs(mode: str, tmp_path: Path) -> None:
    with _forced("root", 0), pytest.raises(limpet.SandboxUnavailable, match=r"Linux 5\.13"):
        tool(mode).run_sync(f"touch {tmp_path}/ran", ctx=_here(tmp_path))
    assert list(tmp_path.glob("ran")) == []


@pytest.mark.parametrize("mode", MODES)
def test_no_seccomp_is_refused_before_anything_runs(mode: str, tmp_path: Path) -> None:
    with (
        _forced("root", 6, has_seccomp=False),
        pytest.raises(limpet.SandboxUnavailable, match="seccomp"),
    ):
        tool(mode).run_sync(f"touch {tmp_path}/ran", ctx=_here(tmp_path))
    assert list(tmp_path.glob("ran")) == []


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mode", MODES)
def test_degraded_it_runs_and_says_what_does_not_hold(user: str, mode: str) -> None:
    policy = limpet.SandboxPolicy(mode=mode, degrade=True)  # type: ignore[arg-type]  # a mode

    def act(base: Path) -> limpet.Result:
        with _forced(user, 0):
            return limpet.Bash(sandbox=policy).run_sync("echo ran", ctx=limpet.ToolContext(base))

    with scratch(user) as base:
        result = as_user(user, lambda: act(base))
    assert result.stdout == "ran\n"
    assert result.sandbox is not None
    said = " ".join(result.sandbox.not_enforced)
    assert "are not written" in said
    assert "signals" in said
    assert "memory" in said
    assert any("no network: seccomp" in each for each in result.sandbox.enforced)


@pytest.mark.parametrize("user", USERS)
def test_degraded_ports_below_abi_4_stay_closed(user: str) -> None:
    policy = limpet.SandboxPolicy(mode="read-only", ports=(443,), degrade=True)

    with _forced(user, 3):
        came = make(user, "read-only", SOCKETS, sandbox=policy)
    assert [name for (_, name), each in came.items() if each.had_effect] == []


def _here(path: Path) -> limpet.ToolContext:
    return limpet.ToolContext(os.fspath(path))
