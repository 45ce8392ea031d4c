"""Options are read as getopt reads them."""

from __future__ import annotations

import pytest

from limpet.command import options
from limpet.command.model import Word


def words(text: str) -> list[Word]:
    """Return the words of a text, with their places in it."""
    found, place = [], 0
    for value in text.split():
        place = text.index(value, place)
        found.append(Word(value, place, place + len(value)))
        place += len(value)
    return found


def read(text: str, *, is_permuted: bool = True) -> tuple[dict[str, str | None], list[str]]:
    """Read a text; `-o`, `-p` and `--output` take a value."""
    given = options.read(words(text), "op", ("output",), is_permuted=is_permuted)
    return {o.name: o.value for o in given.options}, [word.value for word in given.operands]


@pytest.mark.parametrize(
    ("text", "expected", "operands"),
    [
        ("", {}, []),
        ("a b", {}, ["a", "b"]),
        ("-r a", {"r": None}, ["a"]),
        ("-rf a", {"r": None, "f": None}, ["a"]),
        ("a -r b -f", {"r": None, "f": None}, ["a", "b"]),
        ("-o x a", {"o": "x"}, ["a"]),
        ("-ox a", {"o": "x"}, ["a"]),
        ("-rox a", {"r": None, "o": "x"}, ["a"]),
        ("-ro x a", {"r": None, "o": "x"}, ["a"]),
        ("-o", {"o": None}, []),
        ("-o -r a", {"o": "-r"}, ["a"]),
        ("--force a", {"force": None}, ["a"]),
        ("--output x a", {"output": "x"}, ["a"]),
        ("--output=x a", {"output": "x"}, ["a"]),
        ("--output= a", {"output": ""}, ["a"]),
        ("--other=x a", {"other": "x"}, ["a"]),
        ("--output", {"output": None}, []),
        ("-r -- -f a", {"r": None}, ["-f", "a"]),
        ("a -- -f --", {}, ["a", "-f", "--"]),
        ("- a", {}, ["-", "a"]),
        ("-o x -o y", {"o": "y"}, []),
    ],
)
def test_words_are_sorted_into_options_and_operands(
    text: str, expected: dict[str, str | None], operands: list[str]
) -> None:
    assert read(text) == (expected, operands)


@pytest.mark.parametrize(
    ("text", "expected", "operands"),
    [
        ("-r 5 rm -f x", {"r": None}, ["5", "rm", "-f", "x"]),
        ("-o x rm -f", {"o": "x"}, ["rm", "-f"]),
        ("-r -- -f x", {"r": None}, ["-f", "x"]),
        ("rm -- -f", {}, ["rm", "--", "-f"]),
    ],
)
def test_the_first_operand_of_a_wrapper_ends_its_options(
    text: str, expected: dict[str, str | None], operands: list[str]
) -> None:
    assert read(text, is_permuted=False) == (expected, operands)


def test_a_long_option_may_be_given_by_its_beginning() -> None:
    given = options.read(words("--recurs -f"))
    assert given.has("recursive")
    assert given.has("f")
    assert given.has("x", "f")
    assert not given.has("force")
    assert not given.has("recur")
    assert not options.read(words("-r")).has("recursive")


def test_of_several_values_the_last_counts() -> None:
    given = options.read(words("-o x --output y"), "o", ("output",))
    assert given.value("o", "output") == "y"
    assert given.value("o") == "x"
    assert given.value("z") is None


def test_an_option_knows_the_word_that_gave_it() -> None:
    text = "add -vA file"
    given = options.read(words(text)[1:])
    assert [text[o.word.start : o.word.end] for o in given.options] == ["-vA", "-vA"]
    assert [text[word.start : word.end] for word in given.operands] == ["file"]
