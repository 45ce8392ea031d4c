"""What panels say, apart from how they look."""

from __future__ import annotations

from dataclasses import replace

import pytest

import limpet
from limpet.render import boxes
from limpet.render.paint import paint
from limpet.render.report import report_panel, status
from limpet.render.tasks import Row, TaskTable, task_lines
from limpet.render.verdict import excerpt, verdict_lines, verdict_view
from limpet.render.viewport import excerpt as lines_of
from limpet.render.width import cells
from limpet.result import Outcome, Result
from limpet.verdict import Finding, Verdict
from render.examples import FAILED, refusal, rows

ENDS = {
    Outcome.EXITED: "exit 3",
    Outcome.SIGNALED: "killed by SIGKILL",
    Outcome.TIMED_OUT: "timed out",
    Outcome.CANCELLED: "cancelled",
    Outcome.BACKGROUNDED: "background",
    Outcome.REFUSED: "refused",
    Outcome.FAILED_TO_START: "failed to start",
    Outcome.OUTPUT_CAPPED: "output capped",
}


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_has_its_words(outcome: Outcome) -> None:
    result = Result(command="x", outcome=outcome, exit_code=3, signal="SIGKILL")
    assert status(result).words == ENDS[outcome]
    assert f"$ x   {ENDS[outcome]}" in paint(report_panel(result, timeout_s=1), width=80)


def test_a_real_result_makes_a_panel(bash: limpet.Bash) -> None:
    apart = limpet.Bash(output=limpet.OutputPolicy(streams="separate"))
    result = apart.run_sync("echo out; echo err >&2; exit 3")
    text = paint(report_panel(result, timeout_s=120), width=80)
    assert "exit 3" in text
    assert "stdout: 1 lines stderr: 1 lines" in text
    assert text.index("│ out ") < text.index("│ stderr:") < text.index("│ err ")


def test_the_command_is_cut_to_50_characters() -> None:
    text = paint(report_panel(FAILED, timeout_s=1), width=120)
    assert f"$ {FAILED.command[:49]}…   exit 1" in text


def test_what_does_not_fit_is_counted() -> None:
    long = lines_of("".join(f"{number}\n" for number in range(100)), 10)
    assert (len(long.head), long.left_out, len(long.tail)) == (3, 90, 7)
    assert (long.head[0], long.tail[-1]) == ("0", "99")
    assert lines_of("a\nb", 10) == (["a", "b"], 0, [])
    (line,) = lines_of("x" * 1_000_000, 10).head
    assert "999,500 characters left out" in line


def test_a_panel_of_much_output_is_small() -> None:
    huge = replace(FAILED, stdout="x" * 5_000_000 + "\n" + "y\n" * 500_000, stderr="z\n" * 100_000)
    text = paint(report_panel(huge, timeout_s=1), width=80)
    assert text.count("\n") < 80
    assert "stdout: 500001 lines stderr: 100000 lines" in text


COMMANDS = {
    "ascii": ("cd x && rm -rf / && ls", "rm -rf /"),
    "wide": ("echo 日本語 && rm -rf /", "rm -rf /"),
    "tabs": ("a\tb\t\trm\t-rf /", "rm\t-rf /"),
    "joined": ("echo 👩\u200d💻 ❤\ufe0f; rm -rf /", "rm -rf /"),
    "controls": ("echo \x1b[2J\u202e; rm -rf /", "rm -rf /"),
    "combining": ("echo e\u0301e\u0301; rm -rf /", "rm -rf /"),
    "second line": ("echo 日本\n  ü\trm -rf / x\nls", "rm -rf /"),
    "at the end": ("x" * 500 + " rm -rf /", "rm -rf /"),
    "at the start": ("rm -rf / " + "x" * 500, "rm -rf /"),
    "wide itself": ("echo 日本語 x", "日本語"),
}


@pytest.mark.parametrize("width", [160, 80, 30])
@pytest.mark.parametrize(("command", "part"), COMMANDS.values(), ids=COMMANDS)
def test_marks_stand_below_what_they_mark(command: str, part: str, width: int) -> None:
    (finding,) = refusal(command, part).findings
    shown = excerpt(command, finding, width)
    line = "".join(shown)
    assert cells(line) <= width
    assert cells(shown.before) == len(shown.indent)
    assert cells(shown.part) == len(shown.marks)
    assert shown.part.split() == part.split()
    assert "\t" not in line


def test_the_marks_are_where_they_are_on_a_terminal_and_in_a_pipe() -> None:
    verdict = refusal("echo 日本\trm -rf / && ls", "rm -rf /")
    expected = ["  echo 日本       rm -rf / && ls", "                  ^^^^^^^^"]
    assert verdict_lines(verdict)[2:4] == expected
    assert paint(verdict_view(verdict), width=80).split("\n")[2:4] == expected


def test_a_part_that_is_too_long_or_nothing_is_marked_all_the_same() -> None:
    long = excerpt("rm " + "x" * 500, Finding("", "", "", 0, 503), 20)
    assert (cells("".join(long)), long.marks) == (20, "^" * 20)
    assert excerpt("ls", Finding("", "", "", 2, 2), 20).marks == "^"
    several = excerpt("cat <<x\nx\nrm", Finding("", "", "", 0, 12), 20)
    assert several == ("", "cat <<x", "")


def test_every_finding_is_told() -> None:
    verdict = limpet.check("git add -A && git push -f")
    text = paint(boxes.blocked(verdict), width=100)
    assert text.count("This command matches a blocked pattern:") == 2
    assert text.count("^^") == 2
    assert "[git-add-blind]" in text
    assert "[git-push-force]" in text
    assert "`git push --force-with-lease`" in text


def test_an_allowed_command_may_have_a_note() -> None:
    verdict = Verdict("ls", "allow", (Finding("note", "fine", "nothing", 0, 2),))
    assert "note: fine" in paint(verdict_view(verdict), width=80)


@pytest.mark.parametrize("width", [200, 100, 72, 71, 56, 55, 36, 35, 28, 27, 11])
def test_the_table_never_cuts_an_id_and_fits(width: int) -> None:
    lines = paint(TaskTable(rows()), width=width).split("\n")
    assert all(cells(line) <= width for line in lines)
    for row in rows():
        assert any(line.startswith(row.id) and (width < 28 or row.state in line) for line in lines)


def test_a_table_of_thousands_shows_the_latest_and_all_that_run() -> None:
    many = [Row(f"bash-{n:06}", "exited", 0, n, "x", "") for n in range(3000)]
    many[2500] = many[2500]._replace(status="running", exit_code=None)
    text = paint(TaskTable(many), width=80)
    assert "bash-000499" in text
    assert "bash-000500" not in text
    assert "bash-002500" in text
    assert "and 2,499 older that have ended" in text
    assert sum("bash-" in line for line in task_lines(many)) == 3000


def test_plain_columns_are_aligned_and_nothing_is_cut() -> None:
    lines = list(task_lines(rows()))
    assert [line.split()[0] for line in lines[1:]] == [row.id for row in rows()]
    assert lines[2].endswith("漢字の長い最後の行がここにあります。とても長いです")
    shown = [(line, row.last_line) for line, row in zip(lines[1:], rows(), strict=True)]
    places = {cells(line[: line.index(last)]) for line, last in shown if len(last) > 1}
    assert places == {lines[0].index("LAST LINE")}
