"""A command as a person should see it: without a `cd` to where it ran anyway, and on one line."""

from __future__ import annotations

import os
import re

from limpet.command import tree
from limpet.command.scope import Scope
from limpet.command.source import mask
from limpet.command.words import HERE, HOME, UNKNOWN, as_source, expand, shown

_BEGINS_WITH_CD = re.compile(r"\s*cd\s")
_OPERATORS = frozenset(["&&", ";", "\n"])
_LONGEST = 100_000
"""A longer command is shown as it is."""


def display(command: str, cwd: str) -> str:
    """Return the command without leading `cd`s to the directory that it starts in.

    What ran elsewhere, or only if the `cd` failed, is shown in full.
    """
    if len(command) > _LONGEST:
        return command
    text = as_source(command)
    while _BEGINS_WITH_CD.match(text):
        rest = _after_cd(text, cwd)
        if rest is None:
            break
        text = rest
    return command if len(text) == len(as_source(command)) else shown(text)


def _after_cd(text: str, cwd: str) -> str | None:
    """Return what follows a `cd` to the working directory and an operator that goes on."""
    root = tree.parse(mask(text).text)
    first = next((child for child in root.children if child.type != "comment"), None)
    if root.has_error or first is None:
        return None
    while first.type in ("list", "redirected_statement", "pipeline"):
        first = first.children[0]
    words = [child for child in first.children if child.is_named]
    if first.type != "command" or len(words) != 2:
        return None
    values = expand(text, words[1].start_byte, words[1].end_byte, Scope().lookup)
    if len(values) != 1 or not _is_same(values[0], cwd):
        return None
    gap = re.compile(r"[ \t]*(&&|;(?!;)|\n)\s*").match(text, first.end_byte)
    if gap is None or gap[1] not in _OPERATORS or gap.end() == len(text):
        return None
    return text[gap.end() :]


def _is_same(value: str, cwd: str) -> bool:
    """Tell whether a word names the working directory, by whatever path."""
    if value.startswith(HERE):
        value = cwd + value[1:]
    elif value.startswith(HOME):
        value = os.path.expanduser("~") + value[1:]  # noqa: PTH111 -- a string is wanted
    if UNKNOWN in value or not cwd:
        return False
    path = os.path.join(cwd, shown(value))
    return os.path.realpath(path) == os.path.realpath(cwd)


_HEREDOC_MARK = as_source(" …")


def summary(command: str, cwd: str = "", width: int = 80) -> str:
    """Return the command on one line, no longer than a width: bodies left out, lines joined."""
    text = as_source(display(command, cwd))
    if len(text) <= _LONGEST:
        text = _without_bodies(text)
    line = _on_one_line(shown(text).strip())
    line = "".join(c if c.isprintable() else "?" for c in line)
    return line if len(line) <= width else line[: max(width - 1, 0)].rstrip() + "…"


def _on_one_line(text: str) -> str:
    """Join lines, with a mark where a command ends; squeeze blanks."""
    lines = [" ".join(line.split()) for line in text.split("\n")]
    joined = " ⏎ ".join(line for line in lines if line)
    return joined.replace("\\ ⏎ ", "")


def _without_bodies(text: str) -> str:
    """Cut the bodies of here-documents out."""
    bodies = sorted(mask(text).heredocs.values(), key=lambda heredoc: heredoc.body_start)
    for heredoc in reversed(bodies):
        end = text.find("\n", heredoc.body_end)
        end = len(text) if end < 0 else end
        text = text[: heredoc.body_start].rstrip("\n") + _HEREDOC_MARK + text[end:]
    return text
