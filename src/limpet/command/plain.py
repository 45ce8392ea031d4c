"""Lines that need no parser: words, quotes, pipes and lists. Anything else is not understood."""

from __future__ import annotations

import re
from typing import NamedTuple


class Stage(NamedTuple):
    """One simple command."""

    words: tuple[str, ...]
    """Without leading assignments; never empty."""
    is_silenced: bool
    """True if some of its output goes to /dev/null."""


class Step(NamedTuple):
    """One pipeline of a list."""

    joined_by: str
    """What stands before it: `;`, `&&` or `||`; for the first, `;`."""
    stages: tuple[Stage, ...]


_TOKEN = re.compile(
    r"""[ \t]+
    |(?P<operator>&&|\|\||\||[;\n][ \t;\n]*)(?![&|;])
    |(?P<null>[12&]?>{1,2}[ \t]*/dev/null(?![^\s;&|])|2>&1)
    |(?P<word>(?:
        [^\s'"|&;<>()`\\{}#$!]+
        |\$(?!\()
        |'[^']*'
        |"(?:[^"`\\$]|\$(?!\())*"
    )+)""",
    re.X,
)
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_ASSIGNMENT = re.compile(r"\w+=")
# What changes how the rest of the line is read or run.
_STRUCTURE = frozenset(
    [
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "for",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "select",
        "function",
        "time",
        "coproc",
        "in",
        "exec",
        "eval",
        "source",
        ".",
        "exit",
        "return",
        "set",
        "shopt",
        "trap",
        "alias",
        "unalias",
        "break",
        "continue",
        "wait",
        "kill",
    ]
)


def parse(line: str) -> list[Step] | None:
    """Return the steps of a line, or None if it has anything in it that is not plain."""
    steps: list[Step] = []
    stages: list[Stage] = []
    words: list[str] = []
    joined_by, is_silenced, place = ";", False, 0
    line = line.strip() + "\n"
    while place < len(line):
        token = _TOKEN.match(line, place)
        if token is None:
            return None
        place = token.end()
        if token["word"]:
            words.append(_QUOTED.sub(lambda m: m[1] or m[2] or "", token["word"]))
        elif token["null"]:
            is_silenced = True
        elif operator := token["operator"]:
            stage = _stage(words, is_silenced)
            if stage is None:
                return None
            stages.append(stage)
            words, is_silenced = [], False
            if operator != "|":
                steps.append(Step(joined_by, tuple(stages)))
                stages, joined_by = [], operator if operator in ("&&", "||") else ";"
    return None if stages or words else steps


def _stage(words: list[str], is_silenced: bool) -> Stage | None:
    while words and _ASSIGNMENT.match(words[0]):
        words = words[1:]
    if not words or words[0] in _STRUCTURE or "$" in words[0]:
        return None
    if words[0] == "[[" and words[-1] != "]]":
        return None
    return Stage(tuple(words), is_silenced)
