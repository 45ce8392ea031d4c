"""A non-zero exit is an answer; an error is what kept the command from answering."""

from __future__ import annotations

import pytest

import limpet

ANSWERS = {
    "grep nothing /dev/null": "no match",
    "cd / && grep nothing /dev/null": "no match",
    "echo a | grep b": "no match",
    "diff /dev/null /etc/passwd >/dev/null": "they differ",
    "test 1 = 2": "the condition is false",
    "[ 1 = 2 ]": "the condition is false",
    "LC_ALL=C /bin/grep nothing /dev/null": "no match",
}


@pytest.mark.parametrize(("command", "meaning"), ANSWERS.items())
def test_exit_one_of_a_question_is_an_answer(bash: limpet.Bash, command: str, meaning: str) -> None:
    result = bash.run_sync(command)
    assert result.exit_code == 1
    assert not result.is_error
    assert f"is an answer: {meaning}" in (result.hint or "")


def test_any_exit_code_is_no_error_and_no_exception(bash: limpet.Bash) -> None:
    for code in (0, 1, 2, 64, 255):
        result = bash.run_sync(f"exit {code}")
        assert (result.exit_code, result.is_error, result.ok) == (code, False, code == 0)


def test_what_was_killed_or_never_ran_is_an_error(bash: limpet.Bash) -> None:
    assert bash.run_sync("kill -9 $$").is_error
    assert bash.run_sync("sleep 9", timeout_s=0.1).is_error
    assert bash.run_sync("").is_error


def test_check_raises_for_those_who_want_it_and_carries_the_result(bash: limpet.Bash) -> None:
    result = bash.run_sync("echo why; exit 3")
    with pytest.raises(limpet.CommandFailed, match="exit code 3") as failed:
        result.check()
    assert failed.value.result.output == "why\n"
    with pytest.raises(limpet.SpawnFailed, match="empty"):
        bash.run_sync(" ").check()
    assert bash.run_sync("true").check().ok


def test_a_missing_program_is_named(bash: limpet.Bash) -> None:
    result = bash.run_sync("no-such-program --flag")
    assert result.exit_code == 127
    assert "`no-such-program` is not installed" in (result.hint or "")
    assert "`./no-such-file`" in (bash.run_sync("./no-such-file").hint or "")
