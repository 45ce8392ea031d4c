"""A line → its simple commands, with all that runs inside others."""

from __future__ import annotations

from limpet.command.model import Command, Line, Word
from limpet.command.scope import Scope
from limpet.command.unwrap import runs_others
from limpet.command.walk import Walk
from limpet.command.words import as_source, literal_words

_NOT_PLAIN = frozenset(
    """time coproc if then elif else fi for while until do done case esac select function in export
    declare typeset local readonly unset""".split()
)
"""Words that begin something else than a simple command."""


def parse(text: str) -> Line:
    """Read a command line. Never raises, and runs nothing."""
    text = as_source(text)
    line = Line([], [])
    words = literal_words(text, 0, len(text))
    name = words[0][0] if words else ""
    # Nothing but words: a tree would show no more.
    is_plain = words is not None and name not in _NOT_PLAIN and "=" not in name
    if words is not None and is_plain and not runs_others(name):
        command = Command([Word(*word) for word in words], words[0][1], words[-1][2])
        line.commands.append(command)
    else:
        Walk(line, text, offset=0).script(Scope(), None)
    return line
