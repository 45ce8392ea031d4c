"""No command can spoil its own result or the next call."""

from __future__ import annotations

import pytest

import limpet

POISON = {
    "set -eu; false": (1, ""),
    "set -euo pipefail; false | cat": (1, ""),
    "exec false": (1, ""),
    "exit 7": (7, ""),
    "printf x": (0, "x"),
    "PS1='$ '; PS4=; echo ok": (0, "ok\n"),
    "exec 1>&2; echo moved": (0, "moved\n"),
    "exec >/dev/null; echo gone": (0, ""),
    "trap 'exit 9' EXIT; true": (9, ""),
    "unset PATH; echo no path": (0, "no path\n"),
    "set -n; echo never": (0, ""),
    "function echo { printf fake; }; echo real": (0, "fake"),
    "enable -n echo; /bin/echo still": (0, "still\n"),
}
UNPARSEABLE = ['echo "unclosed', "if true", "cat <<EOF\nno end", "$(", "done"]


@pytest.mark.parametrize(("command", "expected"), POISON.items())
def test_the_result_is_right_and_the_next_call_is_fine(
    bash: limpet.Bash, command: str, expected: tuple[int, str]
) -> None:
    result = bash.run_sync(command)
    assert (result.exit_code, result.output) == expected
    assert bash.run_sync("echo fine").output == "fine\n"


@pytest.mark.parametrize("command", UNPARSEABLE)
def test_what_bash_cannot_parse_ends_with_its_own_message(bash: limpet.Bash, command: str) -> None:
    result = bash.run_sync(command, timeout_s=5)
    assert result.outcome is limpet.Outcome.EXITED
    assert "EOF" in result.output or "syntax error" in result.output


def test_a_command_can_print_anything_limpet_prints(bash: limpet.Bash) -> None:
    marker = "[… 3 lines / 9 bytes omitted; full: /tmp/x …]"
    result = bash.run_sync(f"echo '{marker}'")
    assert result.output == marker + "\n"
    assert not result.truncated
