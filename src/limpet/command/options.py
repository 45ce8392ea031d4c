"""A command's options and operands, read as GNU getopt reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from limpet.command.model import Word


class Option(NamedTuple):
    """One option, with its value if it takes one."""

    name: str
    """A letter, or a long name without its dashes."""
    value: str | None
    word: Word


class Options(NamedTuple):
    """What a command was given."""

    options: list[Option]
    operands: list[Word]

    def has(self, *names: str) -> bool:
        """Tell whether one of the options was given; a long one also by the beginning of it."""
        return any(_is(option.name, name) for option in self.options for name in names)

    def value(self, *names: str) -> str | None:
        """Return the value that the last of the options was given."""
        values = [o.value for o in self.options if any(_is(o.name, name) for name in names)]
        return values[-1] if values else None


def _is(given: str, name: str) -> bool:
    return given == name or (len(name) > 1 and len(given) > 1 and name.startswith(given))


def read(
    words: Iterable[Word],
    short: str = "",
    long: Collection[str] = (),
    *,
    is_permuted: bool = True,
) -> Options:
    """Sort words into options and operands.

    Args:
        words: What follows the command's name.
        short: The letters that take a value, in the same word or the next.
        long: The long names that take a value, after `=` or in the next word.
        is_permuted: False if the first operand ends the options, as in `timeout 5 rm -f x`.
    """
    options: list[Option] = []
    operands: list[Word] = []
    rest = iter(words)
    for word in rest:
        value = word.value
        if len(value) < 2 or value[0] != "-":
            operands.append(word)
            if not is_permuted:
                break
        elif value == "--":
            break
        elif value.startswith("--"):
            name, has_value, argument = value[2:].partition("=")
            if not has_value and name in long:
                following = next(rest, None)
                options.append(Option(name, following and following.value, word))
            else:
                options.append(Option(name, argument if has_value else None, word))
        else:
            options += _cluster(value, word, short, rest)
    operands += rest
    return Options(options, operands)


def _cluster(value: str, word: Word, short: str, rest: Iterable[Word]) -> list[Option]:
    """Read `-abc`: letters, of which the first that takes a value takes the rest."""
    options = []
    for place, letter in enumerate(value[1:], start=1):
        if letter in short:
            attached = value[place + 1 :]
            following = None if attached else next(iter(rest), None)
            options.append(Option(letter, attached or (following and following.value), word))
            break
        options.append(Option(letter, None, word))
    return options
