"""The user's profile counts if asked for: read once, in its own session, within a limit."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import limpet
from limpet import login


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the profile of a user with a home of their own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(login, "_known", {})
    path = tmp_path / ".bash_profile"
    path.write_text(
        'echo "welcome, this is no output"; echo read >> ~/reads\n'
        'export PATH="$HOME/bin:$PATH" FROM_PROFILE="two\nlines"\n'
    )
    return path


@pytest.fixture
def bash() -> limpet.Bash:
    """Return a tool that inherits from the profile."""
    return limpet.Bash(environment=limpet.EnvironmentPolicy(login=True))


def test_the_profile_is_inherited_and_read_once(bash: limpet.Bash, profile: Path) -> None:
    async def main() -> list[limpet.Result]:
        return await asyncio.gather(*(bash.run('echo "$PATH|$FROM_PROFILE"') for _ in range(8)))

    expected = f"{profile.parent}/bin:"
    for result in [*asyncio.run(main()), bash.run_sync('echo "$PATH|$FROM_PROFILE"')]:
        assert result.output.startswith(expected)
        assert result.output.endswith("|two\nlines\n")
    assert (profile.parent / "reads").read_text() == "read\n"


def test_a_profile_that_hangs_is_done_without(
    bash: limpet.Bash, profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile.write_text("sleep 60")
    monkeypatch.setattr(login, "LOGIN_TIMEOUT_S", 0.3)
    with pytest.warns(RuntimeWarning, match="login profile could not be read"):
        assert bash.run_sync("echo on").output == "on\n"
    assert bash.run_sync("echo on").output == "on\n"  # and is not tried again


def test_a_profile_that_wants_a_terminal_does_not_get_ours(
    bash: limpet.Bash, profile: Path
) -> None:
    profile.write_text("read answer < /dev/tty; export GOT=$?")
    assert bash.run_sync("echo $GOT").output == "1\n"


def test_without_it_no_profile_is_read(profile: Path) -> None:
    assert limpet.Bash().run_sync('echo "${FROM_PROFILE-no}"').output == "no\n"
    assert not (profile.parent / "reads").exists()
