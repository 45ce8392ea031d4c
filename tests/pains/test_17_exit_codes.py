"""A failure that a pipeline hides is told; what is no failure is not."""

from __future__ import annotations

import pytest

import limpet

HIDDEN = {
    "false | tail -1": "`false` in the last pipeline exited 1",
    "ls /no-such-place 2>/dev/null | wc -l": "`ls` in the last pipeline exited 2",
    "(exit 7) | true": "command 1 of 2 in the last pipeline exited 7",
    "echo x; bash -c 'exit 9' | cat": "`bash` in the last pipeline exited 9",
}
NOT_HIDDEN = [
    "yes | head -1",
    "echo hi | cat",
    "echo x | grep y | wc -l",
    "true || false",
    "echo 'a | b'",
    "false | true | (exit 3)",
]


@pytest.mark.parametrize(("command", "hint"), HIDDEN.items())
def test_a_hidden_failure_is_named(bash: limpet.Bash, command: str, hint: str) -> None:
    result = bash.run_sync(command)
    assert result.exit_code == 0
    assert hint in (result.hint or "")


@pytest.mark.parametrize("command", NOT_HIDDEN)
def test_what_is_no_hidden_failure_is_not_named(bash: limpet.Bash, command: str) -> None:
    assert "pipeline" not in (bash.run_sync(command).hint or "")


def test_looking_at_the_pipeline_changes_nothing_else(bash: limpet.Bash) -> None:
    """The report comes from an EXIT trap in a prelude that the command cannot tell is there."""
    result = bash.run_sync(
        'false | true; echo "$? ${BASH_ENV-unset} $0 $#"; bash -c "trap -p" | cat'
    )
    assert result.output == "0 unset bash 0\n"
    assert bash.run_sync("true | true; trap 'echo mine' EXIT").output == "mine\n"
    assert bash.run_sync("true | true; exit 5").exit_code == 5


def test_the_users_own_prelude_is_still_read(
    bash: limpet.Bash, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    prelude = f"{tmp_path}/it's mine.sh"
    with open(prelude, "w") as file:
        file.write("greeting=hello\n")
    monkeypatch.setenv("BASH_ENV", prelude)
    assert bash.run_sync("echo $greeting").output == "hello\n"
    piped = bash.run_sync('echo "$greeting $BASH_ENV" | cat')
    assert piped.output == f"hello {prelude}\n"
