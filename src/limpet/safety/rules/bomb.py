"""The fork bomb, by its shape."""

from __future__ import annotations

import re

from limpet.command.model import Command, Word
from limpet.safety.rule import Rule, whole

_FORKS = re.compile(
    r"(?:^|[;{])\s*+fork(?:\(\))?\s*+while\b|\bwhile\s*+\(?(?:1|fork)\)?\s*+\{?\s*+fork"
)


def _multiplies(command: Command) -> Word | None:
    """A function, or a script, that starts itself beside itself.

    One that passes arguments on divides its work, and ends.
    """
    if command.name == "perl":
        return next((word for word in command.arguments if _FORKS.search(word.value)), None)
    is_itself = command.name in ("$0", "./$0") or command.name == command.function
    if not is_itself or command.via_words or command.arguments:
        return None
    twins = [other for other in command.siblings if other.name == command.name]
    is_beside = command.is_background or any(
        other.name == command.name and other.stage != command.stage for other in command.pipeline
    )
    if is_beside and (len(twins) > 1 or command.is_repeated):
        return whole(command)
    return None


FORK_BOMB = Rule(
    id="fork-bomb",
    message="a function that starts itself twice over fills the machine with processes",
    advice="use a loop with an end, or call it without `&` and `|`",
    find=_multiplies,
    names=("perl", "$0", "./$0"),
    watches=("functions",),
    triggers=("()", "( )", "function ", "$0", "fork"),
    mention=r"\(\)\s{0,9}\{[^\n{}]{0,40}\|[^\n{}]{0,40}&",
    refuses=(":(){ :|:& };:", "b() { b | b & }; b", "f() { f & f & }; f"),
    permits=("f() { f2 | f3 & }; f", "a & b & wait", "f() { [ $1 -gt 0 ] && f $(($1-1)); }; f 3"),
)
