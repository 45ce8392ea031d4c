"""A line → its simple commands, with all that runs inside others."""

from __future__ import annotations

import re

from limpet.command.model import Command, Line, Word
from limpet.command.scope import Scope
from limpet.command.walk import Walk
from limpet.command.words import as_source, literal_words

_NOT_PLAIN = frozenset(
    """time coproc if then elif else fi for while until do done case esac select function in export
    declare typeset local readonly unset""".split()
)
"""Words that begin something else than a simple command."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")


def parse(text: str) -> Line:
    """Read a command line. Never raises, and runs nothing."""
    text = as_source(text)
    line = Line([], [])
    walk = Walk(line, text, offset=0)
    words = literal_words(text, 0, len(text))
    if words is None or words[0][0] in _NOT_PLAIN or _ASSIGNMENT.match(text):
        walk.script(Scope(), None)
    else:
        # Nothing but words: a tree would show no more.
        command = Command([Word(*word) for word in words], words[0][1], words[-1][2])
        walk.run(command, Scope(), None)
    return line
