"""A tree's words, assignments and redirects → simple commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from limpet.command.model import Command, Redirect, Word
from limpet.command.pieces import REDIRECTS, Pieces, is_same_line
from limpet.command.runner import Runner
from limpet.command.scope import Scope
from limpet.command.words import first_literal, literal_words

if TYPE_CHECKING:
    from tree_sitter import Node


class Tail(NamedTuple):
    """Redirects behind a list or pipeline: its last command's; and the words after them."""

    redirects: list[Redirect]
    words: list[Word]
    further: list[list[Word]]
    """Commands of the lines after it, which the tree hangs on the redirect."""

    def joined(self, other: Tail) -> Tail:
        """Return this and what stands behind it."""
        return Tail(
            self.redirects + other.redirects,
            self.words + other.words,
            self.further + other.further,
        )


class Assembler:
    """Puts the simple commands of one script together, and runs them."""

    def __init__(self, text: str, pieces: Pieces, runner: Runner) -> None:
        self._text = text
        self._pieces = pieces
        self._runner = runner

    def assignments(self, node: Node, scope: Scope, feed: str | None, tail: Tail | None) -> str:
        """`name=value` alone."""
        nodes = node.named_children if node.type == "variable_assignments" else [node]
        command = Command([], *self._pieces.at(node.start_byte, node.end_byte))
        command.assignments = tuple(self._pieces.assignment(c, scope, feed) for c in nodes)
        if tail is not None and tail.words:  # the tree loses a command after `name=value >file`
            following = Command(tail.words, *self._pieces.at(node.start_byte, node.end_byte))
            following.assignments, following.redirects = command.assignments, tuple(tail.redirects)
            return self._runner.run(following, scope, feed) + self._run_further(tail, scope)
        command.redirects = tuple(tail.redirects) if tail else ()
        for assignment in command.assignments:
            scope.assign(assignment.name, assignment.value)
        self._runner.add(command)
        return self._run_further(tail, scope) if tail else ""

    def declaration(self, node: Node, scope: Scope, feed: str | None, tail: Tail | None) -> str:
        """`export name=value` and its like."""
        words, assignments = [], []
        for child in node.children:
            if child.type == "variable_assignment":
                assignment = self._pieces.assignment(child, scope, feed)
                assignments.append(assignment)
                scope.assign(assignment.name, assignment.value)
                value = f"{assignment.name}={assignment.value}"
                words.append(Word(value, *self._pieces.at(child.start_byte, child.end_byte)))
            else:
                words += self._pieces.words(child, scope, feed)
        if words and words[0].value == "unset":
            for word in words[1:]:
                scope.assign(word.value, "")
        command = Command(words, *self._pieces.at(node.start_byte, node.end_byte))
        command.assignments = tuple(assignments)
        command.redirects = tuple(tail.redirects) if tail else ()
        self._runner.add(command)
        return ""

    def take_redirect(self, node: Node, scope: Scope, feed: str | None, tail: Tail) -> None:
        """Add a redirect, and the words after it, to what belongs to a command."""
        found = self._pieces.redirect(node, scope, feed)
        if found is not None:
            redirect, (words, *further) = found
            tail.redirects.append(redirect)
            tail.words.extend(words)
            tail.further.extend(line for line in further if line)

    def simple(self, node: Node, scope: Scope, feed: str | None, tail: Tail | None) -> str:
        """`words`, with assignments before and redirects among them."""
        start, end = node.start_byte, node.end_byte
        if self._text[end : end + 1] in ("<", ">"):
            end = _without_descriptor(self._text, start, end)
        first = first_literal(self._text, start, end)
        if first is None or not _is_name(first):
            return self._spelled_out(node, scope, feed, tail or Tail([], [], []))
        more = [] if tail is None else tail.words
        command = Command(
            lambda: self._literal(start, end) + more, *self._pieces.at(start, end), first
        )
        if tail is None:
            return self._runner.run(command, scope, feed)
        command.redirects = tuple(tail.redirects)
        return self._runner.run(command, scope, feed) + self._run_further(tail, scope)

    def _run_further(self, tail: Tail, scope: Scope) -> str:
        further = [Command(words, words[0].start, words[-1].end) for words in tail.further]
        return "".join(self._runner.run(command, scope, None) for command in further)

    def _literal(self, start: int, end: int) -> list[Word]:
        at = self._pieces.at
        words = literal_words(self._text, start, end)
        return [Word(value, *at(begin, stop)) for value, begin, stop in words]

    def _spelled_out(self, node: Node, scope: Scope, feed: str | None, tail: Tail) -> str:
        words: list[Word] = []
        assignments = []
        prints, end = "", node.start_byte
        start = end
        is_one_line = "\n" not in self._text[start : node.end_byte]
        for child in node.children:
            if not (is_one_line or not words or is_same_line(self._text, end, child.start_byte)):
                # The tree runs on over the end of a line: what follows is a command of its own.
                command = Command(words, *self._pieces.at(start, end))
                prints += self._runner.run(command, scope, feed)
                words, start, feed = [], child.start_byte, None
            kind = child.type
            if words and self._text[end : child.start_byte] == "\\\n":
                # A line broken within a word.
                rest = self._pieces.words(child, scope, feed)
                words[-1] = words[-1]._replace(value=words[-1].value + rest[0].value)
                words += rest[1:]
            elif kind == "variable_assignment" and not words:
                assignments.append(self._pieces.assignment(child, scope, feed))
            elif kind in REDIRECTS:
                self.take_redirect(child, scope, feed, tail)
            elif not self._pieces.is_descriptor(child):
                words += self._pieces.words(child, scope, feed)
            end = child.end_byte
        command = Command([*words, *tail.words], *self._pieces.at(start, end))
        command.assignments = tuple(assignments)
        command.redirects = tuple(tail.redirects)
        return prints + self._runner.run(command, scope, feed) + self._run_further(tail, scope)


def _without_descriptor(text: str, start: int, end: int) -> int:
    """Return where a command ends whose last word is the number before a redirect."""
    digits = end
    while digits > start and text[digits - 1].isdigit():
        digits -= 1
    if digits == end or not text[digits - 1 : digits].isspace():
        return end
    return len(text[:digits].rstrip())


def _is_name(value: str) -> bool:
    """Tell whether a first word is certainly a name: no assignment, no descriptor's number."""
    return "=" not in value and not value.isdigit()
