"""With secrets hidden, a command does not get them, and cannot print the ones that are known."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import python

import limpet

SECRETS = {
    "OPENAI_API_KEY": "sk-0123456789abcdef",
    "GITHUB_TOKEN": "ghp_0123456789abcdef",
    "db_password": "correct horse battery",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG",
    "GOOGLE_APPLICATION_CREDENTIALS": "/home/me/credentials.json",
}


@pytest.fixture
def discreet(monkeypatch: pytest.MonkeyPatch) -> limpet.Bash:
    """Return a tool that hides the secrets its host has."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    return limpet.Bash(environment=limpet.EnvironmentPolicy(hide_secrets=True))


def test_the_environment_has_no_secret(discreet: limpet.Bash) -> None:
    for command in ("env", "cat /proc/self/environ | tr '\\0' '\\n'", "export -p"):
        output = discreet.run_sync(command).output
        assert "PATH=" in output
        for name, value in SECRETS.items():
            assert name not in output
            assert value not in output


def test_what_is_passed_by_name_is_there_and_masked(discreet: limpet.Bash) -> None:
    result = discreet.run_sync(
        'echo "${#MY_TOKEN} $MY_TOKEN"', env={"MY_TOKEN": "abcdefghijklmnop"}
    )
    assert result.output == "16 [masked]\n"


def test_a_known_value_is_masked_wherever_it_comes_from(
    discreet: limpet.Bash, tmp_path: Path
) -> None:
    secret = SECRETS["GITHUB_TOKEN"]
    (tmp_path / ".netrc").write_text(f"password {secret}\n")
    result = discreet.run_sync(f"cat {tmp_path}/.netrc; seq 20000; cat {tmp_path}/.netrc")
    assert secret not in result.output
    assert result.output.startswith("password [masked]\n")
    assert result.spill_path is not None
    assert secret.encode() not in Path(result.spill_path).read_bytes()


def test_a_secret_written_in_pieces_is_masked(discreet: limpet.Bash) -> None:
    code = (
        f"import os, time\nfor c in {'<' + SECRETS['GITHUB_TOKEN'] + '>'!r}:\n"
        "    os.write(1, c.encode()); time.sleep(0.002)"
    )
    assert discreet.run_sync(python(code)).output == "<[masked]>"


def test_the_beginning_of_a_secret_at_the_end_of_the_output_is_not_lost(
    discreet: limpet.Bash,
) -> None:
    beginning = SECRETS["GITHUB_TOKEN"][:10]
    assert discreet.run_sync(f"printf {beginning}").output == beginning
    late = discreet.run_sync(f"printf {beginning}; sleep 9", timeout_s=0.2)
    assert late.output == beginning


def test_by_default_nothing_is_hidden(bash: limpet.Bash, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_0123456789abcdef")
    assert bash.run_sync("echo $GITHUB_TOKEN").output == "ghp_0123456789abcdef\n"
