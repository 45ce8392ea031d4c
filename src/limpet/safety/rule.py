"""What a rule is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from limpet.command.model import Command, Word

Watched = Literal["redirects", "functions", "marked"]
Find = Callable[[Command], Word | None]


class Rule(NamedTuple):
    """One thing that is refused."""

    id: str
    message: str
    """What is refused, and why."""
    advice: str
    """What to do instead."""
    find: Find
    """Returns the offending part of a command, or None."""
    names: tuple[str, ...] = ()
    """The programs that it is about; with neither these nor `watches`, it is about all."""
    watches: tuple[Watched, ...] = ()
    """What else it is about: commands with redirects, commands inside functions, and commands whose
    name is not literal."""
    triggers: tuple[str, ...] = ()
    """Beginnings of words, or signs, of which one occurs in every command that it can match: where
    all are missing nothing needs to be read. Without any, every command is."""
    mention: str = ""
    """What names them in text that could not be read as shell syntax (a regular expression)."""
    refuses: tuple[str, ...] = ()
    permits: tuple[str, ...] = ()
    """Examples, which the tests check."""


def whole(command: Command) -> Word:
    """Return the whole of a command as its own offending part."""
    return Word("", command.start, command.end)
