"""A line → its simple commands, with all that runs inside others."""

from __future__ import annotations

from collections.abc import Callable

from limpet.command.model import Command, Gap, Line, Skim, Word
from limpet.command.scope import Scope
from limpet.command.unwrap import runs_others
from limpet.command.walk import Walk
from limpet.command.words import as_source, first_literal, literal_words

LONG = 50_000
"""A longer script may be skimmed."""
_NOT_PLAIN = frozenset(
    """time coproc if then elif else fi for while until do done case esac select function in export
    declare typeset local readonly unset""".split()
)
"""Words that begin something else than a simple command."""


def parse(text: str, skim: Callable[[str], Skim] | None = None) -> Line:
    """Read a command line. Never raises, and runs nothing.

    Args:
        text: The line, or a script of many.
        skim: Returns, for a long script, what tells whether a statement of it is to be read.
    """
    text = as_source(text)
    line = Line([], [], skim(text) if skim is not None and len(text) > LONG else None)
    size = len(text)
    first = first_literal(text, 0, size)
    if first is None or first in _NOT_PLAIN or "=" in first or runs_others(first):
        try:
            Walk(line, text, offset=0).script(Scope(), None)
        except RecursionError:
            line.gaps.append(Gap(0, size, text))
    else:
        # Nothing but words: a tree would show no more.
        command = Command(lambda: _words(text), 0, size, first)
        line.commands.append(command)
    return line


def _words(text: str) -> list[Word]:
    return [Word(*word) for word in literal_words(text, 0, len(text))]
