"""limpet.toml: what it sets, which file counts, and errors that name file, line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from limpet import settings
from limpet.errors import SettingsError
from limpet.policy import PermissionPolicy, Policy, RulePolicy


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("LIMPET_RULES", "LIMPET_TIMEOUT_S", "LIMPET_SURVIVORS", "LIMPET_SHELL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project" / "src"
    path.mkdir(parents=True)
    return path.parent


def _user_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config" / "limpet" / "limpet.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)


def test_without_files_the_policy_is_the_default(project: Path) -> None:
    assert settings.load(project) == Policy()


def test_a_file_above_the_working_directory_counts(project: Path) -> None:
    (project / "limpet.toml").write_text(
        'timeout_s = 5\nsurvivors = "kill"\n'
        '[rules]\npack = "strict"\noff = ["mkfs"]\nblocked_patterns = ["prod"]\n'
        '[permissions]\nallow = ["git *"]\nunmatched = "deny"\n'
        '[output]\nhead_bytes = 10\n[environment]\ninherit = "core"\n'
    )
    policy = settings.load(project / "src")
    assert (policy.timeout_s, policy.survivors) == (5, "kill")
    assert policy.rules == RulePolicy(pack="strict", off=("mkfs",), blocked_patterns=("prod",))
    assert policy.permissions == PermissionPolicy(allow=("git *",), unmatched="deny")
    assert (policy.output.head_bytes, policy.environment.inherit) == (10, "core")


def test_the_nearest_file_counts(project: Path) -> None:
    (project / "limpet.toml").write_text("timeout_s = 5")
    (project / "src" / "limpet.toml").write_text("timeout_s = 7")
    assert settings.load(project / "src").timeout_s == 7


def test_the_projects_file_stands_over_the_users_and_both_over_the_environment(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMPET_TIMEOUT_S", "1")
    monkeypatch.setenv("LIMPET_RULES", "none")
    monkeypatch.setenv("LIMPET_SHELL", "/bin/bash")
    _user_file(tmp_path, 'timeout_s = 2\n[rules]\npack = "strict"')
    (project / "limpet.toml").write_text("timeout_s = 3")
    policy = settings.load(project)
    assert (policy.timeout_s, policy.rules.pack, policy.shell) == (3, "strict", "/bin/bash")


def test_what_the_user_denies_the_project_cannot_allow_by_leaving_it_out(
    project: Path, tmp_path: Path
) -> None:
    _user_file(tmp_path, '[permissions]\ndeny = ["git push *"]\nallow = ["ls *"]')
    (project / "limpet.toml").write_text('[permissions]\ndeny = ["rm *"]\nallow = ["git *"]')
    permissions = settings.load(project).permissions
    assert permissions.deny == ("git push *", "rm *")
    assert permissions.allow == ("git *",)


WRONG = {
    "[rules]\n\nfoo = 1": "3: rules.foo: no such setting",
    "timeout_s = 1\nfoo = 1": "2: foo: no such setting",
    '\n\ntimeout_s = "x"': "3: timeout_s: timeout_s must be a number",
    '[permissions]\nallow = "git"': "2: permissions.allow: allow takes a list of strings",
    '[rules]\noff = []\npack = "lax"': "3: rules.pack: pack must be",
    "rules = 3": "1: rules: must be a table",
    "[rules]\nextra = []": "2: rules.extra: no such setting",
    "approve = true": "1: approve: no such setting",
    "a = [": "1: not TOML",
    'x = 1\n\ny = "': "3: not TOML",
    "rules.pack = 3": "1: rules.pack: pack must be",
    '[permissions]\nallow = ["git *", ""]': "2: permissions.allow: each pattern of allow",
    "max_concurrent = 0": "1: max_concurrent: max_concurrent must be 1 or more",
}


@pytest.mark.parametrize(("text", "problem"), WRONG.items())
def test_an_error_names_file_line_and_key(project: Path, text: str, problem: str) -> None:
    file = project / "limpet.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        settings.load(project)
    assert str(caught.value).startswith(f"{file}:{problem}")


def test_an_error_in_the_users_file_is_told_of_that_file(project: Path, tmp_path: Path) -> None:
    _user_file(tmp_path, "timeout_s = -1")
    (project / "limpet.toml").write_text("max_concurrent = 3")
    with pytest.raises(SettingsError, match=r"config/limpet/limpet.toml:1: timeout_s"):
        settings.load(project)


def test_an_error_in_the_environment_names_the_variable(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMPET_TIMEOUT_S", "soon")
    with pytest.raises(SettingsError, match="LIMPET_TIMEOUT_S: not a number: 'soon'"):
        settings.load(project)


def test_a_file_that_cannot_be_read_is_an_error_and_not_the_default(project: Path) -> None:
    (project / "limpet.toml").write_bytes(b"shell = '\xff'")
    with pytest.raises(SettingsError, match="cannot be read"):
        settings.load(project)
