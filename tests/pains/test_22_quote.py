"""The command reaches bash byte for byte."""

from __future__ import annotations

import random
import shlex
from pathlib import Path

import pytest

import limpet
from limpet.process import spawn

ALPHABET = "ab'\"\\!$`*?[]{}()<>|&;# \t\n~=%-é🐚\x01\x7f"


def test_random_strings_come_back_as_they_went(bash: limpet.Bash) -> None:
    dice = random.Random(22)  # noqa: S311 -- the same strings in every run
    for _ in range(150):
        text = "".join(dice.choices(ALPHABET, k=dice.randrange(60)))
        quoted = shlex.quote(text)
        result = bash.run_sync(f"printf %s {quoted} | od -An -v -tx1")
        assert bytes.fromhex(result.output.replace("\n", "")).decode() == text


VERBATIM = {
    "heredoc": (
        "cat <<'EOF'\nit's \"quoted\" $HOME `x` \\\\ !\nEOF",
        'it\'s "quoted" $HOME `x` \\\\ !\n',
    ),
    "leading dash": ("-c() { echo dash; }; -c", "dash\n"),
    "two dashes": ("-- 2>/dev/null; echo after", "after\n"),
    "history": ("echo 'a!b' !!", "a!b !!\n"),
    "carriage return in quotes": ("printf 'a\\r\\n' | od -An -c | tr -d ' '", "a\\r\\n\n"),
    "trailing backslash": ("echo a\\", "a\\\n"),
    "no newline, comment at the end": ("echo x # comment", "x\n"),
    "the shell's name": ("echo $0", "bash\n"),
    "no arguments": ("echo $#", "0\n"),
}


@pytest.mark.parametrize(("command", "output"), VERBATIM.values(), ids=VERBATIM.keys())
def test_what_is_written_is_what_runs(bash: limpet.Bash, command: str, output: str) -> None:
    assert bash.run_sync(command).output == output


def test_bytes_that_are_no_text_reach_bash(bash: limpet.Bash, tmp_path: Path) -> None:
    """A file name that is not UTF-8 comes into Python as surrogates, and must go out as it came."""
    name = b"caf\xe9"
    (Path(str(tmp_path)) / name.decode("utf-8", "surrogateescape")).touch()
    context = limpet.ToolContext(tmp_path)
    command = "test -e " + name.decode("utf-8", "surrogateescape")
    assert bash.run_sync(command, ctx=context).exit_code == 0


@pytest.mark.parametrize("length", [spawn.LONGEST_ARGUMENT, spawn.LONGEST_ARGUMENT + 1, 400_000])
def test_a_command_longer_than_an_argument_means_the_same(
    bash: limpet.Bash, tmp_path: Path, length: int
) -> None:
    start = "cat > file <<'EOF'\n"
    end = '\nEOF\nread x || echo "eof $# ${0##*/}" | cat; ls /proc/self/fd | wc -w; exit 3'
    body = ("it's $HOME `x`\n" * length)[: length - len(start) - len(end)]
    result = bash.run_sync(start + body + end, ctx=limpet.ToolContext(tmp_path))
    assert result.exit_code == 3
    assert (tmp_path / "file").read_text() == body + "\n"
    first, descriptors = result.output.splitlines()
    assert first.startswith("eof 0 ")
    assert int(descriptors) == 4  # 0 to 2, and the listing's own


REFUSED = {
    "": "empty",
    " \n\t": "empty",
    "echo a\0b": "NUL",
    "echo \ud800": "surrogates",
}


@pytest.mark.parametrize(("command", "reason"), REFUSED.items())
def test_what_no_shell_can_read_is_said_before_anything_starts(
    bash: limpet.Bash, command: str, reason: str
) -> None:
    result = bash.run_sync(command)
    assert result.outcome is limpet.Outcome.FAILED_TO_START
    assert reason in (result.hint or "")


def test_values_of_the_wrong_type_are_errors(bash: limpet.Bash) -> None:
    with pytest.raises(TypeError, match="the command must be a string, not int"):
        bash.run_sync(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="environment names and values must be strings: 'A'=1"):
        bash.run_sync("true", env={"A": 1})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="not a name for an environment variable: 'A=B'"):
        bash.run_sync("true", env={"A=B": "c"})
    with pytest.raises(TypeError, match="stdin must be text or bytes, not list"):
        bash.run_sync("true", stdin=["x"])  # type: ignore[arg-type]


def test_a_shell_that_is_missing_is_said() -> None:
    result = limpet.Bash(shell="no-such-bash").run_sync("true")
    assert result.outcome is limpet.Outcome.FAILED_TO_START
    assert "Policy.shell" in (result.hint or "")


def test_an_environment_too_large_to_pass_on_is_said(bash: limpet.Bash) -> None:
    result = bash.run_sync("true", env={"HUGE": "x" * 200_000})
    assert result.outcome is limpet.Outcome.FAILED_TO_START
    assert "environment" in (result.hint or "")
