from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

import pytest

import limpet
from limpet.policy import EnvironmentPolicy
from limpet.process.env import NON_INTERACTIVE, build, check_variables, secret_values
from limpet.process.table import MARKER

HOST = {
    b"PATH": b"/usr/bin:/bin",
    b"HOME": b"/home/someone",
    b"LC_ALL": b"C.UTF-8",
    b"AWS_REGION": b"eu-west-1",
    b"aws_profile": b"work",
    b"EDITOR": b"vi",
    b"BYTES": b"\xff\xfe",
}


def environment_of(
    policy: EnvironmentPolicy,
    inherited: Mapping[bytes, bytes] = HOST,
    extra: Mapping[str, str] | None = None,
) -> dict[bytes, bytes]:
    entries = build(policy, inherited, extra, "run-id", "/somewhere").entries()
    variables = dict(entry.split(b"=", 1) for entry in entries)
    assert len(variables) == len(entries)  # each name once
    return variables


def environment_seen(
    policy: EnvironmentPolicy | None = None, env: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment that a command really has."""
    bash = limpet.Bash(environment=policy or EnvironmentPolicy())
    result = bash.run_sync("/usr/bin/env -0", env=env).check()
    return dict(line.split("=", 1) for line in result.output.split("␀") if line)


# What is inherited


def test_all_is_inherited_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_VARIABLE", "with = signs,\nlines and ünïcode")
    assert environment_seen()["SOME_VARIABLE"] == "with = signs,\nlines and ünïcode"


def test_bytes_that_are_no_text_are_inherited_unchanged() -> None:
    assert environment_of(EnvironmentPolicy())[b"BYTES"] == b"\xff\xfe"


def test_core_is_what_programs_need_to_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_VARIABLE", "value")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/tmp/agent")
    seen = environment_seen(EnvironmentPolicy(inherit="core"))
    assert seen["PATH"] == os.environ["PATH"]
    assert (seen["LC_TIME"], seen["SSH_AUTH_SOCK"]) == ("C", "/tmp/agent")
    assert "SOME_VARIABLE" not in seen


def test_none_leaves_only_what_limpet_sets() -> None:
    environment = environment_of(EnvironmentPolicy(inherit="none"))
    assert environment.keys() == {*NON_INTERACTIVE, MARKER, b"PWD"}


def test_commands_run_without_an_inherited_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_VARIABLE", "value")
    seen = environment_seen(EnvironmentPolicy(inherit="none"))
    assert "SOME_VARIABLE" not in seen
    assert seen["LIMPET_RUN"]


def test_the_host_environment_is_not_changed() -> None:
    before = dict(os.environ)
    environment_seen(EnvironmentPolicy(set={"SOME_VARIABLE": "a"}), env={"OTHER": "b"})
    assert dict(os.environ) == before


def test_a_change_of_the_host_environment_reaches_the_next_call(
    bash: limpet.Bash, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in ("first", "second"):
        monkeypatch.setenv("SOME_VARIABLE", value)
        assert bash.run_sync('echo "$SOME_VARIABLE"').output == f"{value}\n"


# What is left out


@pytest.mark.parametrize(
    ("exclude", "gone"),
    [
        (("AWS_*",), {b"AWS_REGION", b"aws_profile"}),
        (("aws_*",), {b"AWS_REGION", b"aws_profile"}),
        (("HOME", "LC_*"), {b"HOME", b"LC_ALL"}),
        (("HOM",), set()),
        (("B?TES",), {b"BYTES"}),
        (("[AB]*",), {b"AWS_REGION", b"aws_profile", b"BYTES"}),
        ((), set()),
    ],
)
@pytest.mark.parametrize("plain", [EnvironmentPolicy(), EnvironmentPolicy(inherit="core")])
def test_excluded_patterns_match_without_regard_to_case(
    exclude: tuple[str, ...], gone: set[bytes], plain: EnvironmentPolicy
) -> None:
    excluding = replace(plain, exclude=exclude)
    assert environment_of(excluding).keys() == environment_of(plain).keys() - gone


def test_what_is_set_is_not_excluded() -> None:
    policy = EnvironmentPolicy(exclude=("*",), set={"AWS_REGION": "set"})
    environment = environment_of(policy, extra={"HOME": "called"})
    assert environment[b"AWS_REGION"] == b"set"
    assert environment[b"HOME"] == b"called"


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "GITHUB_TOKEN",
        "github_token",
        "GITHUB_PAT",
        "NPM_TOKEN",
        "NPM_CONFIG__AUTH",
        "REDISCLI_AUTH",
        "PGPASSWORD",
        "DB_PASSWD",
        "GPG_PASSPHRASE",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "SSH_PRIVATE_KEY",
        "SENTRY_DSN",
        "DATABASE_URL",
        "AZURE_STORAGE_CONNECTION_STRING",
        "client_secret",
    ],
)
def test_a_name_that_looks_like_a_secret_is_hidden(name: str) -> None:
    policy = EnvironmentPolicy(hide_secrets=True)
    assert name.encode() not in environment_of(policy, {name.encode(): b"value"})


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LC_ALL",
        "TZ",
        "TMPDIR",
        "OLDPWD",
        "SSH_AUTH_SOCK",
        "SSH_CONNECTION",
        "GIT_AUTHOR_NAME",
        "XDG_RUNTIME_DIR",
        "VIRTUAL_ENV",
        "PYTHONPATH",
        "NODE_PATH",
        "HTTPS_PROXY",
        "CI",
        "DISPLAY",
        "COLUMNS",
    ],
)
def test_an_ordinary_name_is_not_taken_for_a_secret(name: str) -> None:
    policy = EnvironmentPolicy(hide_secrets=True)
    assert environment_of(policy, {name.encode(): b"value"})[name.encode()] == b"value"


def test_nothing_is_hidden_unless_asked_for() -> None:
    assert environment_of(EnvironmentPolicy(), {b"API_KEY": b"value"})[b"API_KEY"] == b"value"


def test_a_hidden_secret_is_neither_inherited_nor_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "key-0123456789")
    bash = limpet.Bash(environment=EnvironmentPolicy(hide_secrets=True))
    result = bash.run_sync('echo "[$SOME_API_KEY]"; printf key-; printf "%s\\n" 0123456789')
    assert result.output == "[]\n[masked]\n"


def test_a_secret_given_to_the_call_is_passed_on_and_masked() -> None:
    bash = limpet.Bash(environment=EnvironmentPolicy(hide_secrets=True))
    command = 'echo "$SOME_TOKEN ${#SOME_TOKEN}"'
    assert bash.run_sync(command, env={"SOME_TOKEN": "0123456789"}).output == "[masked] 10\n"


def test_secrets_to_mask_come_longest_first_and_never_very_short() -> None:
    policy = EnvironmentPolicy(hide_secrets=True, set={"B_KEY": "12345678"})
    inherited = {b"A_KEY": b"123456789012", b"C_KEY": b"1234567", b"HOME": b"/home/someone"}
    extra = {"D_KEY": "1234567890", "E_KEY": "1234567890"}
    assert secret_values(policy, inherited, extra) == (b"123456789012", b"1234567890", b"12345678")
    assert secret_values(EnvironmentPolicy(), inherited, extra) == ()


# What is set


def test_programs_are_told_that_nobody_is_there() -> None:
    environment = environment_of(EnvironmentPolicy())
    assert NON_INTERACTIVE.items() <= environment.items()
    assert environment[b"EDITOR"] == b"true"


@pytest.mark.parametrize("name", [b"FORCE_COLOR", b"CLICOLOR_FORCE"])
def test_forced_colour_is_not_inherited(name: bytes) -> None:
    assert name not in environment_of(EnvironmentPolicy(), {name: b"1"})
    assert environment_of(EnvironmentPolicy(), {}, {name.decode(): "1"})[name] == b"1"


def test_the_policy_overrides_the_defaults_and_the_call_overrides_the_policy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("A", "inherited")
    policy = EnvironmentPolicy(set={"A": "set", "B": "set", "PAGER": "less", "TERM": "xterm"})
    seen = environment_seen(policy, env={"B": "called", "TERM": "vt100", "GIT_EDITOR": "ed"})
    assert (seen["A"], seen["B"]) == ("set", "called")
    assert (seen["PAGER"], seen["TERM"], seen["GIT_EDITOR"]) == ("less", "vt100", "ed")
    assert seen["GIT_PAGER"] == "cat"


# The marker


@pytest.mark.parametrize("policy", [EnvironmentPolicy(), EnvironmentPolicy(inherit="none")])
def test_the_marker_is_always_set(policy: EnvironmentPolicy) -> None:
    assert environment_of(policy, {})[MARKER] == b"run-id"
    assert environment_of(policy, {MARKER: b"outer"})[MARKER] == b"outer/run-id"


def test_the_marker_cannot_be_overridden() -> None:
    policy = EnvironmentPolicy(exclude=("LIMPET_*",), set={"LIMPET_RUN": "other"})
    environment = environment_of(policy, {MARKER: b"outer"}, {"LIMPET_RUN": "another"})
    assert environment[MARKER] == b"outer/run-id"


def test_a_nested_run_carries_the_ids_of_all_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMPET_RUN", "outermost/outer")
    marker = environment_seen()["LIMPET_RUN"]
    assert marker.startswith("outermost/outer/")
    assert marker.count("/") == 2


# What cannot be a variable


@pytest.mark.parametrize(
    ("variables", "error", "named"),
    [
        ({"": "value"}, ValueError, "''"),
        ({"A=B": "value"}, ValueError, "'A=B'"),
        ({"A\0B": "value"}, ValueError, r"'A\\x00B'"),
        ({"SOME_NAME": "a\0b"}, ValueError, "SOME_NAME"),
        ({"SOME_NAME": "\ud800"}, ValueError, "SOME_NAME"),
        ({"SOME_NAME": 1}, TypeError, "'SOME_NAME'=1"),
        ({"SOME_NAME": None}, TypeError, "'SOME_NAME'=None"),
        ({"SOME_NAME": b"value"}, TypeError, "'SOME_NAME'=b'value'"),
        ({b"SOME_NAME": "value"}, TypeError, "b'SOME_NAME'"),
    ],
)
def test_what_cannot_be_a_variable_is_named_before_anything_runs(
    bash: limpet.Bash, variables: dict[str, str], error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        check_variables(variables)
    with pytest.raises(error, match=named):
        bash.run_sync("true", env=variables)
    with pytest.raises(error, match=named):
        limpet.Bash(environment=EnvironmentPolicy(set=variables)).run_sync("true")


def test_odd_names_and_bytes_that_a_string_can_carry_are_passed_on() -> None:
    variables = {"a.b-c": "1", "ünï": "é", "RAW": "\udcff"}
    expected = {b"a.b-c": b"1", "ünï".encode(): "é".encode(), b"RAW": b"\xff"}
    assert check_variables(variables) == expected


def test_the_command_starts_with_pwd_naming_its_directory() -> None:
    assert environment_of(EnvironmentPolicy(inherit="none"))[b"PWD"] == b"/somewhere"
