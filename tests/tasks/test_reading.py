"""One reader for live, finished and spilled output: by cursor, lines, search; clean and bounded."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import python

import limpet
from limpet.output.text import clean
from limpet.tasks.reader import LIMIT_BYTES, Output
from limpet.tasks.record import TaskStatus
from limpet.tasks.task import Task
from tasks.helpers import ended, finished_text, printed


def by_cursor(task: Task, limit: int = LIMIT_BYTES) -> str:
    """Read a task from its start to its end, as it is written."""
    text, cursor = "", 0
    while True:
        has_ended = task.status is not TaskStatus.RUNNING
        reading = task.output(cursor, limit=limit)
        assert reading.cursor >= cursor
        assert bool(reading.text) <= (reading.cursor > cursor)
        text, cursor = text + reading.text, reading.cursor
        if has_ended and not reading.more:
            return text


PLAIN = ["a", "word ", "\n", "é", "漢", "🐚", "\t"]
SEQUENCES = ["\x1b[31m", "\x1b[0m", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x1bP1q\x1b\\",
             "\x1b(B", "\x1b=", "\x9b1m", "\x1b[?1049h"]  # fmt: skip
PIECES = st.lists(st.sampled_from([*PLAIN, *SEQUENCES]), max_size=60).map("".join)
CUTS = st.lists(st.integers(0, 400), max_size=12)


def pieces_of(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    for start, stop in pairwise(places):
        yield data[start:stop]


def read_while_it_grows(data: bytes, cuts: list[int], limit: int) -> str:
    """Append data piece by piece, read by cursor after each, and return all that was read."""
    text, cursor = "", 0
    with tempfile.NamedTemporaryFile() as file:
        for piece in [*pieces_of(data, cuts), None]:
            file.write(piece or b"")
            file.flush()
            more = True
            while more:
                with Output(file.name) as output:
                    if piece is None:
                        output.ends(len(data))
                    reading = output.since(cursor, limit)
                assert reading.cursor >= cursor
                text, cursor, more = text + reading.text, reading.cursor, reading.more
    assert cursor == len(data)
    return text


@settings(max_examples=120, deadline=None)
@given(PIECES, CUTS, st.sampled_from([64, 1000]))
def test_read_by_cursor_as_it_grows_nothing_is_missed_and_nothing_comes_twice(
    text: str, cuts: list[int], limit: int
) -> None:
    data = text.encode()
    assert read_while_it_grows(data, cuts, limit) == clean(data)


@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.sampled_from([b"a", b"\n", "é".encode(), b"\xff", b"\xe2\x82"]), max_size=60), CUTS
)
def test_bytes_that_are_no_text_are_read_once_too(parts: list[bytes], cuts: list[int]) -> None:
    data = b"".join(parts)
    assert read_while_it_grows(data, cuts, 1000) == clean(data)


def test_a_sequence_that_holds_bytes_that_are_no_text_splits_no_character() -> None:
    data = "éa\x1b]".encode() + b"\xff" + b"\x07b\n"
    for place in range(len(data)):
        assert read_while_it_grows(data, [place], 1000) == "éab\n"


def test_a_sequence_that_never_ends_does_not_keep_the_reader(bash: limpet.Bash) -> None:
    task = bash.start_sync(r"printf 'before\033]never'; sleep 60")
    printed(task, "before")
    assert task.output(0).text == "before"
    assert not task.output(0).more
    text = by_cursor_of(b"\x1b]" + b"x" * 20_000 + b"\nafter\n")
    assert text.endswith("after\n")


def by_cursor_of(data: bytes) -> str:
    return read_while_it_grows(data, [5000, 10_000], 4000)


WRITER = """
import os, random, time
data = ("line é 漢 \\x1b[31m🐚\\x1b[0m\\n" * 400).encode()
chance = random.Random(1)
while data:
    size = chance.randint(1, 200)
    os.write(1, data[:size]); data = data[size:]
    if chance.random() < 0.05: time.sleep(0.01)
"""


@pytest.mark.parametrize("limit", [50, LIMIT_BYTES])
def test_a_task_read_by_cursor_while_it_writes(bash: limpet.Bash, limit: int) -> None:
    text = by_cursor(bash.start_sync(python(WRITER)), limit)
    assert text == "line é 漢 🐚\n" * 400


def test_the_note_of_the_end_is_never_output(bash: limpet.Bash) -> None:
    """Also not to who reads at the very moment of the end."""
    for _ in range(15):
        assert by_cursor(bash.start_sync("echo hi")) == "hi\n"
    task = bash.start_sync("printf 'no newline'")
    assert by_cursor(task) == "no newline"
    finished_text(task)
    assert task.output().text == "no newline"
    assert task.output(last=5).text == "no newline"
    assert task.output(lines=(1, 9)).text == "no newline"
    assert task.output(search="limpet").matches == 0
    assert task.output(3).text == "newline"


def test_a_line_that_looks_like_the_note_is_output(bash: limpet.Bash) -> None:
    line = "[limpet: exit 0 after 1.0 s]\n"
    task = bash.start_sync(f"printf {line!r}; exit 1")
    assert ended(task).text == line
    assert task.output(last=3).text == line


def numbered(bash: limpet.Bash, count: int = 100) -> Task:
    task = bash.start_sync(f"for i in $(seq {count}); do echo line $i; done")
    ended(task)
    return task


def lines(first: int, last: int) -> str:
    return "".join(f"line {number}\n" for number in range(first, last + 1))


def test_the_last_lines(bash: limpet.Bash) -> None:
    task = numbered(bash)
    assert task.output(last=1).text == lines(100, 100)
    assert task.output(last=3).text == lines(98, 100)
    assert task.output(last=1000).text == lines(1, 100)
    half = bash.start_sync("printf 'a\\nb\\nhalf'")
    ended(half)
    assert half.output(last=2).text == "b\nhalf"
    nothing = bash.start_sync("true")
    ended(nothing)
    assert nothing.output(last=2).text == ""


def test_a_range_of_lines(bash: limpet.Bash) -> None:
    task = numbered(bash)
    assert task.output(lines=(1, 1)).text == lines(1, 1)
    reading = task.output(lines=(10, 12))
    assert (reading.text, reading.more) == (lines(10, 12), True)
    assert task.output(reading.cursor).text == lines(13, 100)
    assert task.output(lines=(99, 1000)).text == lines(99, 100)
    assert task.output(lines=(101, 200)).text == ""


def test_a_search_with_what_is_around(bash: limpet.Bash) -> None:
    task = numbered(bash, 30)
    found = task.output(search=r"line 1[01]$")
    assert (found.text, found.matches, found.more) == ("10:line 10\n11:line 11\n", 2, False)
    around = task.output(search=r" (10|12|20)$", context=1)
    assert around.text == (
        "9-line 9\n10:line 10\n11-line 11\n12:line 12\n13-line 13\n--\n"
        "19-line 19\n20:line 20\n21-line 21\n"
    )
    assert task.output(search=re.compile("LINE 7", re.IGNORECASE)).text == "7:line 7\n"
    assert task.output(search="no such thing").text == ""


def test_a_search_goes_on_from_a_cursor(bash: limpet.Bash) -> None:
    task = numbered(bash, 30)
    cursor = task.output(lines=(1, 15)).cursor
    assert task.output(cursor, search="[12]0$").text == "20:line 20\n"


def test_a_search_that_finds_much_can_be_gone_on_with(bash: limpet.Bash) -> None:
    task = numbered(bash, 1000)
    found, cursor, more = "", 0, True
    while more:
        reading = task.output(cursor, search="line", limit=500)
        assert len(reading.text) <= 500
        found, cursor, more = found + reading.text, reading.cursor, reading.more
    assert found == "".join(f"{n}:line {n}\n" for n in range(1, 1001))


def test_what_is_searched_is_what_is_read(bash: limpet.Bash) -> None:
    task = bash.start_sync(r"printf 'a \033[31mred\033[0m word\n\033]0;title\007b\n'")
    ended(task)
    assert task.output(search="a red word").matches == 1
    assert task.output(search="title").matches == 0


def test_every_reading_is_bounded(bash: limpet.Bash) -> None:
    task = bash.start_sync("seq 500000")
    ended(task)
    whole = task.output()
    assert len(whole.text) < LIMIT_BYTES + 500
    assert whole.text.startswith("1\n2\n")
    assert whole.text.endswith("499999\n500000\n")
    assert f"full: {task.output_path}" in whole.text
    assert len(task.output(0).text) <= LIMIT_BYTES
    assert task.output(0).more
    assert len(task.output(last=10**6).text) <= LIMIT_BYTES
    assert len(task.output(lines=(1, 10**6)).text) <= LIMIT_BYTES
    assert len(task.output(search="1").text) <= LIMIT_BYTES
    assert task.output(lines=(400_000, 400_001)).text == "400000\n400001\n"
    assert task.output(search="^499999$").text == "499999:499999\n"


@pytest.mark.parametrize("size", [100_000, 1_000_000])
def test_a_long_line_is_one_line(bash: limpet.Bash, size: int) -> None:
    task = bash.start_sync(f"echo first; head -c {size} /dev/zero | tr '\\0' x; echo; echo last")
    ended(task)
    assert by_cursor(task) == f"first\n{'x' * size}\nlast\n"
    assert task.output(last=1).text == "last\n"
    assert len(task.output(last=2).text) <= LIMIT_BYTES
    assert task.output(search="^last$").text == "3:last\n"
    assert task.output(lines=(3, 3)).text == "last\n"


def test_binary_output_is_named_and_not_shown(bash: limpet.Bash) -> None:
    task = bash.start_sync("head -c 5000 /dev/zero")
    ended(task)
    assert task.output().text == "[binary data: 5000 bytes]\n"
    assert "\0" not in by_cursor(task)
    assert task.output(last=1).text.startswith("[binary data")


def test_a_character_that_is_half_written_is_not_torn(bash: limpet.Bash, tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    task = bash.start_sync(f"printf 'first\\n\\303'; read < {go}; printf '\\251\\n'")
    printed(task, "first")
    task.wait_sync("quiet:0.2", timeout_s=5)
    readings = [task.output(0), task.output(last=1), task.output(), task.output(limit=7)]
    assert all("\N{REPLACEMENT CHARACTER}" not in reading.text for reading in readings)
    go.write_text("\n")
    ended(task)
    for reading in readings:
        assert task.output(reading.cursor).text == "é\n"


def test_a_redrawn_line_is_shown_as_it_ended(bash: limpet.Bash) -> None:
    task = bash.start_sync(r"printf '10%%\r50%%\r100%%\ndone\n'")
    ended(task)
    assert task.output().text == "100%\ndone\n"
    assert task.output(last=2).text == "100%\ndone\n"


def test_a_cursor_beyond_the_end_reads_nothing(bash: limpet.Bash) -> None:
    task = numbered(bash, 3)
    reading = task.output(10**9)
    assert (reading.text, reading.more) == ("", False)


WRONG = {
    "two ways": {"last": 1, "lines": (1, 2)},
    "cursor and last": {"cursor": 1, "last": 1},
    "cursor and lines": {"cursor": 1, "lines": (1, 2)},
    "search and last": {"search": "x", "last": 1},
    "no lines": {"last": 0},
    "negative cursor": {"cursor": -1},
    "line 0": {"lines": (0, 2)},
    "backwards": {"lines": (3, 2)},
    "limit": {"limit": 0},
    "context": {"search": "x", "context": -1},
    "expression": {"search": "("},
}


def test_wrong_arguments_are_told(bash: limpet.Bash) -> None:
    task = numbered(bash, 3)
    for name, asked in WRONG.items():
        with pytest.raises(ValueError, match=r"\w"):
            pytest.fail(f"{name}: {task.output(**asked)}")  # type: ignore[arg-type]  # the point


def test_what_was_spilled_before_and_what_came_after_is_one_output(bash: limpet.Bash) -> None:
    result = bash.run_sync(
        "seq 20000; sleep 0.3; seq 20001 40000", timeout_s=0.2, on_timeout="background"
    )
    assert result.truncated
    task = bash.task(result.task_id or "")
    assert by_cursor(task) == "".join(f"{number}\n" for number in range(1, 40001))
    assert task.output(lines=(20000, 20001)).text == "20000\n20001\n"


def test_what_a_call_has_saved_is_read_the_same_way(bash: limpet.Bash) -> None:
    result = bash.run_sync("seq 100000")
    assert result.spill_path is not None
    assert bash.read(result, last=2).text == "99999\n100000\n"
    assert bash.read(result.spill_path, lines=(10, 11)).text == "10\n11\n"
    first = bash.read(result, cursor=0, limit=10)
    assert (
        first.text + bash.read(result, cursor=first.cursor, limit=10).text
        == "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
    )
    assert bash.read(result, search="^9999.$").matches == 10
    with pytest.raises(ValueError, match="nothing was saved"):
        bash.read(bash.run_sync("echo hi"))
