"""No input raises, hangs, or leaves a command unread without saying so."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limpet.command.display import display, summary
from limpet.command.parse import parse
from limpet.command.source import mask

LIMIT_S = 10.0
PIECES = [
    *"abé \t\n'\"`$(){}[]<>|&;\\#!*?~=-/0",
    *("$(", "${", "$((", "))", "((", "<(", ">(", "<<", "<<-", "<<<", "&&", "||", ";;", "$'", '$"'),
    *("if", "then", "else", "fi", "for", "in", "do", "done", "while", "case", "esac", "function"),
    *("rm", "-rf", "/", "sudo ", "bash -c ", "eval ", "xargs ", "find ", "-exec ", "time ", "env "),
    *(
        "x=",
        "$x",
        "${x:-",
        "<<E\n",
        "\nE\n",
        "E",
        "\\\n",
        "f() {",
        "}\n",
        "2>&1",
        "&>",
        "<>",
        "{a,b}",
    ),
    *(
        "coproc ",
        "[[ ",
        " ]]",
        "echo ",
        "cat ",
        "$@",
        "$1",
        "set -- ",
        "read x ",
        "trap ",
        "\r",
        "\0",
    ),
]

shell_like = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
bounded = settings(max_examples=200, derandomize=True, deadline=None, database=None)


def check_sound(text: str) -> None:
    """Read a text in every way there is; all spans lie within it, in order."""
    found = parse(text)
    size = len(text.encode("utf-8", "surrogatepass"))
    for command in found.commands:
        assert 0 <= command.start <= command.end <= size
        assert all(0 <= word.start <= word.end <= size for word in command.words)
    for gap in found.gaps:
        assert 0 <= gap.start <= gap.end <= size
    assert len(mask(text).text) == len(text)
    assert len(summary(text)) <= 80
    assert display(text, "/srv")[-1:] == text[-1:]


@bounded
@given(shell_like)
def test_no_shell_like_text_raises(text: str) -> None:
    check_sound(text)


@bounded
@given(st.text(max_size=60))
def test_no_text_raises(text: str) -> None:
    check_sound(text)


@bounded
@given(st.binary(max_size=60))
def test_no_bytes_raise(raw: bytes) -> None:
    check_sound(raw.decode("ascii", "surrogateescape"))
    check_sound(raw.decode("latin-1"))


@bounded
@given(shell_like)
def test_whatever_follows_the_end_of_a_line_cannot_undo_what_stands_before_it(after: str) -> None:
    found = parse("touch one\n" + after.replace("\0", ""))
    assert "touch" in {command.name for command in found.commands}


NESTED = {
    "subshells": ("(", "a", ")"),
    "groups": ("{ ", "a", "; }"),
    "substitutions": ("$(", "a", ")"),
    "quoted substitutions": ('"$(', "a", ')"'),
    "backticks": ("`", "a", "`"),
    "expansions": ("${x:-", "a", "}"),
    "arithmetic": ("$((", "1", "))"),
    "process substitutions": ("<(", "a", ")"),
    "conditions": ("if ", "a", "; then b; fi"),
    "loops": ("while ", "a", "; do b; done"),
    "cases": ("case x in y) ", "a", ";; esac"),
    "functions": ("f() { ", "a", "; }"),
    "tests": ("[[ ( ", "a", " ) ]]"),
    "negations": ("! ", "a", ""),
    "braces": ("{", "a,b", "}"),
    "single quotes": ("'", "a", "'"),
    "wrappers": ("sudo ", "a", ""),
    "evals": ("eval ", "a", ""),
    "shells": ("bash -c '", "a", "'"),
    "xargs": ("xargs ", "a", ""),
    "heredocs": ("cat <<E\n$(", "a", ")\nE\n"),
}


@pytest.mark.parametrize("kind", NESTED)
def test_deep_nesting_comes_to_an_end(kind: str) -> None:
    opening, inside, closing = NESTED[kind]
    started = time.monotonic()
    for depth in (10, 90, 150, 3000):
        check_sound(f"echo {opening * depth}{inside}{closing * depth}; touch last")
        check_sound(opening * depth)
    assert time.monotonic() - started < LIMIT_S


@pytest.mark.parametrize("kind", ["subshells", "substitutions", "expansions", "conditions"])
def test_what_is_too_deep_to_read_is_a_gap(kind: str) -> None:
    opening, inside, closing = NESTED[kind]
    assert parse(f"{opening * 3000}{inside}{closing * 3000}").gaps


MEGABYTE = {
    "stages": "a | ",
    "quoted words": "'a b' ",
    "one word": "a",
    "open heredocs": "cat <<E\n",
    "comments": "# a\n",
    "brackets": "(",
    "newlines": "\n",
    "escapes": "\\",
    "heredoc": "a $b\n",
}
LONG = {
    "words": "a ",
    "lines": "echo $x\n",
    "background": "a & ",
    "list": "a && ",
    "sudo": "sudo ",
    "xargs": "xargs ",
    "braces": "{a,b}",
    "doubling": "x=$x$x\n",
    "appends": "x+=$x$x$x\n",
    "assignments": "x=1 ",
    "redirects": "> a ",
    "heredocs": "cat <<E\na\nE\n",
    "operators": "<<E ",
    "substitutions": "$(a) ",
    "backtick substitutions": "`a` ",
    "functions": "f() { a; }; ",
    "calls": "f() { a; }; f\n",
    "loops": "for i in 1 2 3; do a; done\n",
    "quotes": "'",
    "double quotes": '"',
    "dollars": "$",
    "backticks": "`",
    "stars": "*",
    "evals": "eval ",
    "scripts": "bash -c 'a; b'\n",
    "expansions": "${a:-${b}}",
    "conditions": "if a; then b; fi\n",
    "cases": "case a in b) c;; esac\n",
}


@pytest.mark.parametrize("kind", MEGABYTE)
def test_a_megabyte_comes_to_an_end(kind: str) -> None:
    piece = MEGABYTE[kind]
    text = "echo " + piece * (1_000_000 // len(piece)) + "a"
    if kind == "heredoc":
        text = f"cat <<E\n{text}\nE\n"
    started = time.monotonic()
    parse(text)
    assert len(summary(text)) <= 80
    assert time.monotonic() - started < LIMIT_S


@pytest.mark.parametrize("kind", LONG)
def test_long_lines_of_every_shape_come_to_an_end(kind: str) -> None:
    piece = LONG[kind]
    started = time.monotonic()
    check_sound(piece * (20_000 // len(piece)) + "a")
    assert time.monotonic() - started < LIMIT_S


def test_what_is_too_long_to_read_is_a_gap() -> None:
    assert parse("a | " * 100_000 + "a").gaps
    assert parse("a; " * 30_000).gaps


def test_a_megabyte_of_blanks_is_read() -> None:
    assert [c.name for c in parse("echo" + " " * 1_000_000 + "a").commands] == ["echo"]


def test_a_command_after_much_text_is_seen() -> None:
    heredoc = parse("cat <<E\n" + "a\n" * 400_000 + "E\nrm x")
    assert [command.name for command in heredoc.commands] == ["cat", "rm"]
    quoted = parse("echo '" + "a; " * 300_000 + "'; rm x")
    assert [command.name for command in quoted.commands] == ["echo", "rm"]
