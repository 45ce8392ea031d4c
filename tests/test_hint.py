from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import limpet
from limpet.hint import Ending, hint
from limpet.policy import OutputPolicy
from limpet.result import Fate, Outcome, Survivor

PLAIN = Ending(
    command="a-command",
    outcome=Outcome.EXITED,
    exit_code=1,
    signal=None,
    output="",
    total_bytes=0,
    timeout_s=120.0,
    cap="1000 bytes",
    task_id=None,
    adopt_error=None,
    log_path=None,
    save_error=None,
    reading=None,
    pipe_codes=(),
    survivors=(),
    limits=None,
    cpu_s=0.0,
    sandbox=None,
)


def hint_of_one(command: str, output: str = "") -> str | None:
    """Return the hint to a command that exited 1."""
    return hint(PLAIN._replace(command=command, output=output, total_bytes=len(output)))


# How it ended


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        (
            PLAIN._replace(outcome=Outcome.TIMED_OUT, exit_code=143, timeout_s=2.5),
            "stopped at the limit of 2.5 s; raise timeout_s if it needs longer; it printed nothing",
        ),
        (
            PLAIN._replace(outcome=Outcome.TIMED_OUT, exit_code=143, timeout_s=120.0),
            "the limit of 120 s",
        ),
        (PLAIN._replace(outcome=Outcome.CANCELLED, exit_code=None), "the caller cancelled"),
        (
            PLAIN._replace(outcome=Outcome.OUTPUT_CAPPED, exit_code=None),
            "reached the cap of 1000 bytes",
        ),
        (
            PLAIN._replace(outcome=Outcome.SIGNALED, exit_code=137, signal="SIGKILL"),
            "SIGKILL did not come from limpet",
        ),
        (PLAIN._replace(exit_code=None), "the exit code is unknown"),
        (
            PLAIN._replace(exit_code=127, output="bash: line 1: nope: command not found\n"),
            "`nope` is not installed, or not on PATH",
        ),
        (
            PLAIN._replace(exit_code=127, output="bash: line 3: ./a b: No such file or directory"),
            "there is no `./a b` to run",
        ),
        (
            PLAIN._replace(exit_code=126, output="bash: line 1: ./x.sh: Permission denied\n"),
            "`./x.sh` is not executable",
        ),
        (
            PLAIN._replace(output="sudo: a terminal is required to read the password\n"),
            "nobody can answer",
        ),
        (
            PLAIN._replace(
                exit_code=128, output="fatal: could not read Username for 'https://example.org'"
            ),
            "nobody can answer",
        ),
        (
            PLAIN._replace(output='  File "x.py"\nEOFError: EOF when reading a line\n'),
            "nobody can answer",
        ),
    ],
)
def test_the_hint_says_what_follows_from_the_end(ending: Ending, expected: str) -> None:
    assert expected in (hint(ending) or "")


@pytest.mark.parametrize(
    "ending",
    [
        PLAIN,
        PLAIN._replace(exit_code=0),
        PLAIN._replace(exit_code=0, output="bash: line 1: nope: command not found\n"),
        PLAIN._replace(exit_code=1, output="bash: line 1: nope: command not found\n"),
        PLAIN._replace(exit_code=126, output="cat: x: Permission denied\n"),
        PLAIN._replace(exit_code=127),
        PLAIN._replace(exit_code=127, output="the text `command not found` in a sentence\n"),
        PLAIN._replace(outcome=Outcome.SIGNALED, exit_code=139, signal="SIGSEGV"),
        PLAIN._replace(outcome=Outcome.SIGNALED, exit_code=143, signal="SIGTERM"),
        PLAIN._replace(exit_code=0, output="EOFError: EOF when reading a line\n"),
    ],
)
def test_facts_that_speak_for_themselves_get_no_hint(ending: Ending) -> None:
    assert hint(ending) is None


@pytest.mark.parametrize(
    "ending",
    [
        PLAIN._replace(outcome=Outcome.TIMED_OUT, total_bytes=1),
        PLAIN._replace(outcome=Outcome.TIMED_OUT, reading="`cat` waits for input"),
    ],
)
def test_buffering_is_blamed_only_if_nothing_was_printed_and_nothing_awaited(
    ending: Ending,
) -> None:
    assert "it printed nothing" not in (hint(ending) or "")
    assert (ending.reading or "") in (hint(ending) or "")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("limpet-no-such-program", "`limpet-no-such-program` is not installed"),
        ("echo a\n./no-such-file", "there is no `./no-such-file` to run"),
        ("touch file; ./file", "`./file` is not executable"),
        ("kill -KILL $$", "SIGKILL did not come from limpet"),
        ("grep x /dev/null", "exit code 1 of grep is an answer: no match"),
        ("false | cat", "`false` in the last pipeline exited 1"),
    ],
)
def test_what_bash_really_says_is_understood(
    bash: limpet.Bash, tmp_path: Path, command: str, expected: str
) -> None:
    result = bash.run_sync(command, ctx=limpet.ToolContext(tmp_path))
    assert expected in (result.hint or "")


# Exit code 1 as an answer


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("grep x f", "exit code 1 of grep is an answer: no match"),
        ("grep -rn x .", "exit code 1 of grep is an answer: no match"),
        ("  grep x f\n", "exit code 1 of grep is an answer: no match"),
        ("/usr/bin/grep x f", "exit code 1 of grep is an answer: no match"),
        ("LC_ALL=C grep 'a b' f", "exit code 1 of grep is an answer: no match"),
        ("grep 'it; is && quoted | here' f", "exit code 1 of grep is an answer: no match"),
        ("grep x f 2>/dev/null", "exit code 1 of grep is an answer: no match"),
        ("grep x f 2>&1", "exit code 1 of grep is an answer: no match"),
        ("rg x", "exit code 1 of rg is an answer: no match"),
        ("cat f | grep x", "exit code 1 of grep is an answer: no match"),
        ("echo a; grep x f", "exit code 1 of grep is an answer: no match"),
        ("false || grep x f", "exit code 1 of grep is an answer: no match"),
        ("cd d && grep x f", "exit code 1 of grep is an answer: no match"),
        ("git grep x", "exit code 1 of git grep is an answer: no match"),
        ("git diff --exit-code", "exit code 1 of git diff is an answer: they differ"),
        ("diff a b", "exit code 1 of diff is an answer: they differ"),
        ("cmp a b", "exit code 1 of cmp is an answer: they differ"),
        ("test -f a", "exit code 1 of test is an answer: the condition is false"),
        ("[ -f a ]", "exit code 1 of [ is an answer: the condition is false"),
        ("[[ -f a ]]", "exit code 1 of [[ is an answer: the condition is false"),
        ("pgrep nobody", "exit code 1 of pgrep is an answer: no match"),
        ("which nope", "exit code 1 of which is an answer: not found"),
        ("expr 1 - 1", "exit code 1 of expr is an answer: the result is empty or zero"),
    ],
)
def test_exit_code_1_of_a_command_that_answers_with_it_is_explained(
    command: str, expected: str
) -> None:
    assert hint_of_one(command) == expected


@pytest.mark.parametrize(
    "command",
    [
        # Another command may have given the code.
        "grep x f && echo y",
        "echo y && grep x f",
        "cd d && make && grep x f",
        "grep x f; false",
        "grep x f | tee log",
        "grep x f |& tee log",
        "grep x f || false",
        "false || exit 1; grep x f",
        "test -f a || exit 1\ngrep x f",
        "! grep x f",
        "grep x f &",
        "grep x f & wait",
        "exec grep x f",
        # What runs is not plain to see.
        "(grep x f)",
        "{ grep x f; }",
        "$(grep x f)",
        "`grep x f`",
        "grep $(false) f",
        "if true; then grep x f; fi",
        "for f in a b; do grep x $f; done",
        "while read l; do grep x; done",
        "time grep x f",
        "eval grep x f",
        "f() { false; }; f; grep x f",
        "function grep { false; }; grep x f",
        # Options and traps change what the shell does about a failure.
        "set -e; false; grep x f",
        "set  -e; false; grep x f",
        "set -euo pipefail; false | grep x f",
        "set -o pipefail; false | grep x",
        "trap 'exit 1' EXIT; grep x f",
        # The word is not a command.
        "'grep x f'",
        "echo grep x f",
        "false grep x f",
        "bash -c 'grep x f'",
        "python3 -c 'import sys; sys.exit(1)' ';' grep x f",
        r"false \; grep x f",
        "false '|' grep x f",
        "false '&&' grep x f",
        "./manage.py test",
        "./manage.py \\\n  test",
        "npm run \\\n test",
        "make # ; grep x f",
        "xgrep x f",
        "grep-wrapper x f",
        "git status grep",
        # It cannot be read.
        "grep 'x f",
        "",
    ],
)
def test_exit_code_1_is_not_explained_where_it_may_be_another_commands(command: str) -> None:
    assert hint_of_one(command) is None


@pytest.mark.parametrize("exit_code", [2, 3, 124, 255])
def test_other_exit_codes_of_a_command_that_answers_are_failures(exit_code: int) -> None:
    assert hint(PLAIN._replace(command="grep x f", exit_code=exit_code)) is None


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("grep x < missing", "the redirection failed"),
        ("grep x /dev/null > missing/file", "the redirection failed"),
        ("cd missing || exit 1; grep x /dev/null", "the shell left before grep"),
        ("cd missing && grep x /dev/null", "grep never ran"),
        ("cd missing 2>/dev/null && grep x /dev/null", "grep never ran"),
        ("grep x /dev/null |& tee missing/file", "tee failed"),
        ("set  -e\nfalse\ngrep x /dev/null", "grep never ran"),
        ("find /dev/null -nmae x", "find did not understand the expression"),
        ("find /dev/null -name", "find did not understand the expression"),
        ("read -u 99 line", "there is no such descriptor"),
        ("cat missing ';' test", "test is a file"),
        ("false \\\n  test", "test is an argument"),
    ],
)
def test_exit_code_1_is_not_explained_where_it_is_another_failure(
    bash: limpet.Bash, tmp_path: Path, command: str, why: str
) -> None:
    result = bash.run_sync(command, ctx=limpet.ToolContext(tmp_path))
    assert result.exit_code == 1
    assert result.hint is None, why


# Failures that a pipeline masks


@pytest.mark.parametrize(
    ("command", "codes", "expected"),
    [
        ("false | tail", (1, 0), "`false` in the last pipeline exited 1"),
        ("/usr/bin/make all | tail -5", (2, 0), "`make` in the last pipeline exited 2"),
        ("cat f | grep x | sort", (0, 2, 0), "`grep` in the last pipeline exited 2"),
        ("cat f | sed x | sort", (1, 1, 0), "`cat` in the last pipeline exited 1"),
        ("make 'a b' | tail", (2, 0), "`make` in the last pipeline exited 2"),
        ("echo a; make | tail", (2, 0), "`make` in the last pipeline exited 2"),
        ("(exit 3) | tail", (3, 0), "command 1 of 2 in the last pipeline exited 3"),
        ("segfault | tail", (139, 0), "`segfault` in the last pipeline exited 139"),
    ],
)
def test_a_failure_masked_by_a_pipeline_is_told(
    command: str, codes: tuple[int, ...], expected: str
) -> None:
    told = hint(PLAIN._replace(command=command, exit_code=0, pipe_codes=codes))
    assert told == f"{expected}, which the exit code does not show"


@pytest.mark.parametrize(
    ("command", "codes"),
    [
        ("true | tail", (0, 0)),
        ("yes | head -1", (141, 0)),
        ("cat f | yes | head -1", (0, 141, 0)),
        ("grep x f | wc -l", (1, 0)),
        ("cat f | grep x | wc -l", (0, 1, 0)),
        ("diff a b | head", (1, 0)),
        ("grep 'x y' f | wc -l", (1, 0)),
        ('cat f | grep -v "^#" | wc -l', (0, 1, 0)),
        ("cd d && grep x f | wc -l", (1, 0)),
        ("echo a; grep x f | wc -l", (1, 0)),
        ("git grep x | wc -l", (1, 0)),
        ("true", (0,)),
        ("true", ()),
    ],
)
def test_what_is_no_failure_in_a_pipeline_is_not_told(command: str, codes: tuple[int, ...]) -> None:
    assert hint(PLAIN._replace(command=command, exit_code=0, pipe_codes=codes)) is None


def test_a_pipeline_that_failed_by_itself_gets_no_hint_about_its_stages() -> None:
    assert hint(PLAIN._replace(command="false | false", pipe_codes=(1, 1))) is None


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("yes | head -1", None),
        ("grep x /dev/null | cat", None),
        ("grep 'x y' /dev/null | cat", None),
        ("false | true; true", None),
        ("false | cat | cat", "`false` in the last pipeline exited 1"),
        ("(exit 7) | cat", "command 1 of 2 in the last pipeline exited 7"),
    ],
)
def test_the_codes_that_bash_really_reports_are_understood(
    bash: limpet.Bash, command: str, expected: str | None
) -> None:
    told = bash.run_sync(command).hint
    assert told is None if expected is None else expected in (told or "")


# What is left over


def survivors(*fates: Fate) -> tuple[Survivor, ...]:
    return tuple(Survivor(100 + n, f"server-{n}", fate) for n, fate in enumerate(fates))


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        (survivors("left"), "still running: 100 (server-0); stop with `kill 100`"),
        (
            survivors("killed", "left", "left"),
            "still running: 101 (server-1), 102 (server-2); stop with `kill 101`",
        ),
        (
            survivors("left", "left", "left", "left", "left", "left", "left"),
            "104 (server-4) and 2 more; stop with `kill 100`",
        ),
        (survivors("left", "kill_failed"), "not even SIGKILL ended 101"),
        (survivors("killed"), None),
    ],
)
def test_survivors_are_named(left: tuple[Survivor, ...], expected: str | None) -> None:
    told = hint(PLAIN._replace(exit_code=0, survivors=left))
    assert told is None if expected is None else expected in (told or "")


def test_survivors_that_write_on_come_with_the_file_they_write_to() -> None:
    ending = PLAIN._replace(
        exit_code=0,
        survivors=survivors("left"),
        task_id="bash-k3f9q2",
        log_path="/state/tasks/bash-k3f9q2/output",
    )
    told = hint(ending) or ""
    assert "as task bash-k3f9q2" in told
    assert told.endswith("; further output goes to /state/tasks/bash-k3f9q2/output")


def test_survivors_that_could_not_be_adopted_come_with_the_reason() -> None:
    error = OSError(28, "full")
    ending = PLAIN._replace(exit_code=0, survivors=survivors("left"), adopt_error=error)
    assert (hint(ending) or "").endswith(
        f"stop with `kill 100`; not a task that could be read: {error}"
    )


def test_output_that_could_not_be_saved_is_told() -> None:
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    told = hint(PLAIN._replace(exit_code=0, save_error=error))
    assert told == f"the full output could not be saved: {error}"


def test_everything_worth_telling_is_told_in_one_line() -> None:
    ending = PLAIN._replace(
        command="grep x f", survivors=survivors("left"), save_error=OSError(28, "full")
    )
    told = hint(ending) or ""
    parts = ["no match; ", "still running: ", "; the full output could not be saved"]
    assert [part in told for part in parts] == [True] * 3
    assert "\n" not in told


def test_a_cap_on_the_directory_is_not_mistaken_for_the_cap_on_one_output() -> None:
    bash = limpet.Bash(output=OutputPolicy(spill_bytes=10**9, spill_directory_bytes=50_000))
    result = bash.run_sync("yes")
    assert result.outcome is Outcome.OUTPUT_CAPPED
    assert "1000000000" not in (result.hint or "")
