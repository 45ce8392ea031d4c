from __future__ import annotations

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from limpet.profiles import cut

ALLOWANCE = 200
"""Markers may come on top: each says how much is missing."""
LINES = st.lists(
    st.text(max_size=30) | st.sampled_from(["error: x", "FAIL", "x" * 500, "", "é€😀" * 30]),
    max_size=80,
)
TEXTS = st.builds(
    lambda lines, end: "\n".join(line.replace("\n", " ") for line in lines) + end,
    LINES,
    st.sampled_from(["", "\n"]),
)


@settings(max_examples=40)
@given(st.text(), st.integers(0, 20), st.integers(0, 20))
def test_the_middle_goes_and_the_ends_are_exact(text: str, head: int, tail: int) -> None:
    made = cut.middle(text, head, tail, "|")
    assert made == text[:head] + "|" + text[len(text) - min(tail, len(text)) :]


CLEAN = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40)


@settings(max_examples=40)
@given(CLEAN, st.integers(0, 20), st.integers(0, 20))
def test_ends_of_a_whole_text_are_exact_and_never_overlap(text: str, head: int, tail: int) -> None:
    found = cut.ends(text, head, tail)
    assert len(found.head) + found.omitted + len(found.tail) == len(text)
    assert text.startswith(found.head)
    assert text.endswith(found.tail)
    if len(text) > head + tail:
        assert (len(found.head), len(found.tail)) == (head, tail)
    else:
        assert (found.head + found.tail, found.omitted) == (text, 0)


@settings(max_examples=40)
@given(CLEAN, CLEAN, st.integers(0, 20), st.integers(0, 20))
def test_ends_of_a_text_that_was_cut_before_lie_on_their_sides(
    start: str, end: str, head: int, tail: int
) -> None:
    found = cut.ends(start + cut.JOIN + end, head, tail)
    assert found.head == start[:head]
    assert found.tail == end[len(end) - min(tail, len(end)) :]
    assert found.omitted == len(start) + len(end) - len(found.head) - len(found.tail)


@settings(max_examples=40)
@given(CLEAN, CLEAN, st.integers(0, 20), st.integers(0, 20))
def test_ends_in_bytes_split_no_character(start: str, end: str, head: int, tail: int) -> None:
    first, last = cut.ends_in_bytes(start + cut.JOIN + end, head, tail)
    assert start.startswith(first)
    assert end.endswith(last)
    assert len(first.encode()) <= head
    assert len(last.encode()) <= tail
    assert first == start or len(first.encode()) > head - 4
    assert last == end or len(last.encode()) > tail - 4


def by_newlines(text: str, count: int) -> str:
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    return "".join(lines[-count:])


@settings(max_examples=40)
@given(st.text(st.sampled_from("ab\n\r\x0c\u2028")), st.integers(1, 5))
@example("a\rb\nc\rd\n", 1)
def test_the_last_lines_are_told_by_newlines_only(text: str, count: int) -> None:
    last = cut.last_lines(text, count)
    assert last == by_newlines(text, count)
    assert cut.count_lines(last) == min(count, cut.count_lines(text))


@settings(max_examples=40)
@given(TEXTS)
def test_lines_are_counted(text: str) -> None:
    assert cut.count_lines(text) == len(re.findall(r"[^\n]*\n|[^\n]+", text))


@settings(max_examples=40)
@given(TEXTS, st.integers(300, 3000))
def test_what_fits_a_budget_is_not_longer(text: str, budget: int) -> None:
    fitted = cut.by_lines(text, budget)
    assert len(fitted.text) <= budget + ALLOWANCE
    assert fitted.is_cut is (fitted.text != text)
    if len(text) <= budget:
        assert fitted == cut.Fitted(text)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 10**9).map(str), max_size=300), st.integers(300, 1500))
def test_lines_left_out_are_counted_exactly(lines: list[str], budget: int) -> None:
    text = "".join(f"{line}\n" for line in lines)
    fitted = cut.by_lines(text, budget)
    shown = [line for line in fitted.text.splitlines() if not line.startswith("[…")]
    told = re.findall(r"\[… ([\d,]+) lines? left out …\]", fitted.text)
    assert fitted.omitted_lines == sum(int(one.replace(",", "")) for one in told)
    assert len(shown) + fitted.omitted_lines == len(lines)
    assert fitted.omitted_chars == len(text) - sum(len(line) + 1 for line in shown)
    if fitted.is_cut:
        assert shown[0] == lines[0]
        assert shown[-1] == lines[-1]


def test_lines_that_tell_of_trouble_are_kept() -> None:
    lines = [f"line {number}\n" for number in range(10_000)]
    lines[5000] = "src/x.c:5: error: expected ';'\n"
    lines[6000] = "E   AssertionError: 1 != 2\n"
    fitted = cut.by_lines("".join(lines), 5000)
    assert lines[5000] in fitted.text
    assert lines[6000] in fitted.text
    assert fitted.text.startswith("line 0\nline 1\n")
    assert fitted.text.endswith("line 9998\nline 9999\n")
    assert fitted.text.index(lines[5000]) < fitted.text.index(lines[6000])


def test_trouble_everywhere_keeps_head_and_tail() -> None:
    text = "".join(f"error {number}\n" for number in range(10_000))
    fitted = cut.by_lines(text, 5000)
    assert len(fitted.text) <= 5000 + ALLOWANCE
    assert fitted.text.startswith("error 0\n")
    assert fitted.text.endswith("error 9999\n")


@settings(max_examples=40)
@given(st.integers(1, 400), st.integers(1, 5000))
@example(160, 1000)
@example(50, 1000)
def test_a_small_budget_is_kept_too(budget: int, size: int) -> None:
    for text in ("x" * size, "xy\n" * size):
        fitted = cut.by_lines(text, budget)
        assert len(fitted.text) <= budget + ALLOWANCE


@settings(max_examples=40)
@given(st.integers(2100, 40_000))
def test_of_one_long_line_both_ends_are_shown(size: int) -> None:
    text = f"begin{'x' * size}end\n"
    fitted = cut.by_lines(text, 2000)
    assert fitted.text.startswith("begin")
    assert fitted.text.endswith("end\n")
    assert fitted.is_cut
    told = re.search(r"\[… ([\d,]+) characters …\]", fitted.text)
    assert told is not None
    missing = int(told[1].replace(",", ""))
    assert len(fitted.text) - len(told[0]) + missing == len(text)
