"""A word's value is known as far as the shell's own rules tell it, and marked where they do not."""

from __future__ import annotations

import pytest

from limpet.command import words
from limpet.command.parse import parse
from limpet.command.scope import Scope
from limpet.command.words import ANY, HERE, HOME, STAR, UNKNOWN, expand, expand_body, unescape

VARIABLES = {"name": "value", "two": "a b", "star": "*", "empty": "", "path": "/srv/"}


def lookup(name: str) -> str:
    """Return a variable's value as a line that has set some would."""
    return VARIABLES[name] if name in VARIABLES else Scope().lookup(name)


def values(word: str) -> list[str]:
    """Return what a word comes to."""
    return expand(word, 0, len(word), lookup)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("plain", "plain"),
        ("a/b.c:d=e,f@g%h+i-j", "a/b.c:d=e,f@g%h+i-j"),
        ("'single'", "single"),
        ('"double"', "double"),
        ("''", ""),
        ('""', ""),
        ("'a b'", "a b"),
        ("a'b'\"c\"d", "abcd"),
        ("'$HOME `x` \\'", "$HOME `x` \\"),
        (r"\r\m", "rm"),
        (r"a\ b", "a b"),
        (r"\$HOME", "$HOME"),
        ("a\\\nb", "ab"),
        (r'"\$HOME \" \\ \x"', r'$HOME " \ \x'),
        ('"a\\\nb"', "ab"),
        ('"it\'s"', "it's"),
        ("'say \"x\"'", 'say "x"'),
        (r"$'a\tb\n'", "a\tb\n"),
        (r"$'\x72\x6d'", "rm"),
        (r"$'\162\155'", "rm"),
        (r"$'it\'s'", "it's"),
        (r"$'\u0072m'", "rm"),
        ('$"text"', "text"),
        ("r''m", "rm"),
        ('r""m', "rm"),
        ("a$", "a$"),
        ("'a'$", "a$"),
    ],
)
def test_quotes_and_escapes_are_taken_off(word: str, value: str) -> None:
    assert values(word) == [value]


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("~", HOME),
        ("~/x", HOME + "/x"),
        ("~root", "/root"),
        ("~ann/x", "/home/ann/x"),
        ("~+", HERE),
        ("~-", UNKNOWN),
        ("'~'", "~"),
        ('"~/x"', "~/x"),
        (r"\~", "~"),
        ("a~", "a~"),
        ("./~", "./~"),
        ("$HOME", HOME),
        ("${HOME}", HOME),
        ('"$HOME"', HOME),
        ('"${HOME}/x"', HOME + "/x"),
        ("${HOME:-x}", HOME),
        ("${HOME:?}", HOME),
        ("${HOME%/}", HOME),
        ("'$HOME'", "$HOME"),
        ("$PWD/x", HERE + "/x"),
        ("$SHELL", "/bin/bash"),
    ],
)
def test_homes_and_the_working_directory_are_known_by_a_mark(word: str, value: str) -> None:
    assert values(word) == [value]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("$name", ["value"]),
        ("${name}s", ["values"]),
        ("'$name'", ["$name"]),
        ("$two", ["a", "b"]),
        ('"$two"', ["a b"]),
        ("x$two", ["xa", "b"]),
        ("$star", [STAR]),
        ('"$star"', ["*"]),
        ('"$empty"', [""]),
        ("${empty:-x}", ["x"]),
        ("${name:-x}", ["value"]),
        ("${name-x}", ["value"]),
        ("${name:+x}", ["x"]),
        ("${name:=x}", ["value"]),
        ("${path%/}", ["/srv"]),
        ("${unset:-/}", ["/"]),
        ("${unset:=/}", ["/"]),
        ("${unset:-$name}", ["value"]),
        ('"${unset:-a b}"', ["a b"]),
    ],
)
def test_variables_are_expanded(word: str, expected: list[str]) -> None:
    assert values(word) == expected


@pytest.mark.parametrize(
    "word",
    [
        "$unset",
        "${unset}",
        '"$unset"',
        "$1",
        "$@",
        '"$@"',
        "$?",
        "$$",
        "${#name}",
        "${!name}",
        "${name//a/b}",
        "${name#v}",
        "${name:1:2}",
        "${name^^}",
        "$(command)",
        "`command`",
        '"$(command)"',
        "$((1 + 2))",
        "<(command)",
        ">(command)",
    ],
)
def test_what_cannot_be_known_is_marked(word: str) -> None:
    assert values(word) == [UNKNOWN]


def test_an_unknown_part_leaves_the_rest_known() -> None:
    assert values('"/srv/$unset/x"') == [f"/srv/{UNKNOWN}/x"]


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("*", STAR),
        ("'*'", "*"),
        (r"\*", "*"),
        ('"*"', "*"),
        ("*.pyc", STAR + ".pyc"),
        ("/*", "/" + STAR),
        ("a?b", f"a{ANY}b"),
        ("[!a]", ANY),
        ("[", "["),
    ],
)
def test_a_pattern_is_told_from_the_character(word: str, value: str) -> None:
    assert values(word) == [value]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("{a,b}", ["a", "b"]),
        ("x{a,b}y", ["xay", "xby"]),
        ("{a,b}{c,d}", ["ac", "ad", "bc", "bd"]),
        ("/{,usr/}bin", ["/bin", "/usr/bin"]),
        ("{1..3}", ["1", "2", "3"]),
        ("{3..1}", ["3", "2", "1"]),
        ("{a..c}", ["a", "b", "c"]),
        ("{a}", ["{a}"]),
        ("{}", ["{}"]),
        ("'{a,b}'", ["{a,b}"]),
        ('"{a,b}"', ["{a,b}"]),
        (r"\{a,b}", ["{a,b}"]),
        ("{~,/}", [HOME, "/"]),
        ("{rm,-rf,/}", ["rm", "-rf", "/"]),
    ],
)
def test_braces_fall_apart_into_words(word: str, expected: list[str]) -> None:
    assert values(word) == expected


def test_the_alternatives_of_a_word_are_bounded() -> None:
    assert len(values("{1..1000000000}")) <= 64
    assert len(values("{a,b}" * 40)) <= 128


def test_a_substitution_has_the_value_of_what_it_prints() -> None:
    word = "x$(a)y"
    assert expand(word, 0, len(word), lookup, {1: (5, "out\n")}) == ["xouty"]
    assert expand(word, 0, len(word), lookup, {1: (5, "a b\n")}) == ["xa", "by"]
    quoted = '"$(a)"'
    assert expand(quoted, 0, len(quoted), lookup, {1: (5, "a b\n")}) == ["a b"]


def test_a_body_is_expanded_but_its_quotes_are_characters() -> None:
    ran: list[str] = []

    def run(script: str, _place: int) -> str:
        ran.append(script)
        return "out\n"

    text = "\"$name\" '$two' $(a) `b` \\$name $((1)) *\n"
    body = expand_body(text, 0, len(text), lookup, run)
    assert body == f"\"value\" 'a b' out out $name {UNKNOWN} *\n"
    assert ran == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"a\nb", "a\nb"),
        (r"\x41\102", "AB"),
        (r"\\n", "\\n"),
        ("plain", "plain"),
        (r"\x01", "?"),
        (r"\q", r"\q"),
    ],
)
def test_backslash_escapes_are_replaced(text: str, plain: str) -> None:
    assert unescape(text) == plain


def test_no_text_can_bring_a_mark_of_its_own() -> None:
    for mark in words.MARKS:
        assert mark not in words.as_source(f"rm {mark}")
        assert [word.value for word in parse(f"rm 'a{mark}b'").commands[0].words] == ["rm", "a?b"]


def test_source_text_can_be_shown_again() -> None:
    text = "echo é 漢 \N{PILE OF POO}"
    assert words.shown(words.as_source(text)) == text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('D=/; rm -rf "$D"', ["rm", "-rf", "/"]),
        ("D=/ && rm -rf $D", ["rm", "-rf", "/"]),
        ("D=~\nrm -rf $D", ["rm", "-rf", HOME]),
        ("A=/; B=$A; rm $B", ["rm", "/"]),
        ("A=/s; A+=rv; rm $A", ["rm", "/srv"]),
        ("export D=/; rm $D", ["rm", "/"]),
        ("local D=/; rm $D", ["rm", "/"]),
        ("A=(-rf /); rm ${A[@]}", ["rm", "-rf", "/"]),
        ("C='rm -rf /'; $C", ["rm", "-rf", "/"]),
        ("C=r; ${C}m x", ["rm", "x"]),
        ("D=$(echo /); rm $D", ["rm", "/"]),
        ("D=$(printf '%s' /); rm $D", ["rm", "/"]),
        ("D=`pwd`; rm $D", ["rm", HERE]),
        ("(D=/); rm $D", ["rm", UNKNOWN]),
        ("set -- -rf /; rm $1 $2", ["rm", "-rf", "/"]),
        ("read D <<< /; rm $D", ["rm", "/"]),
        ("D=/; D=x; rm $D", ["rm", "x"]),
        ("r\\m x", ["rm", "x"]),
        ("'rm' x", ["rm", "x"]),
        ("$'\\x72m' x", ["rm", "x"]),
        ("{rm,-rf,x}", ["rm", "-rf", "x"]),
        ("rm \\\n  -rf \\\n  x", ["rm", "-rf", "x"]),
        ("r\\\nm x", ["rm", "x"]),
    ],
)
def test_a_line_knows_what_it_has_set(line: str, expected: list[str]) -> None:
    assert [word.value for word in parse(line).commands[-1].words] == expected


def test_a_path_that_bash_takes_for_a_connection_is_known() -> None:
    assert words.is_connection("/dev/tcp/host/1")
    assert words.is_connection("/dev/udp/host/1")
    assert not words.is_connection("/dev/tcp")
    assert not words.is_connection("./dev/tcp/host/1")
