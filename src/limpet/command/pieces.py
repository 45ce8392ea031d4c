"""What simple commands are made of: words, assignments and redirects, read off the tree."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from limpet.command.model import Assignment, Redirect, Word
from limpet.command.scanner import Heredoc
from limpet.command.scope import Scope
from limpet.command.words import UNKNOWN, Substitutions, expand, expand_body, join

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST_VALUE = 50_000
"""A variable's longer value is not followed."""
REDIRECTS = frozenset(["file_redirect", "herestring_redirect", "heredoc_redirect"])

_PLAIN = re.compile(r"[A-Za-z0-9_./:=,@%+-]+\Z")
_OPERATOR = re.compile(r"(\d*|\{\w+\})(&>>|&>|>>|>\||[<>]&-|>&|<&|<>|<<<|<<-?|<|>)")
_NAMED_DESCRIPTOR = re.compile(r"\{\w+\}\Z")
_HAS_SUBSTITUTION = re.compile(r"\$\(|`|[<>]\(|\$\[|\$\{[\s|]")
_SUBSTITUTIONS = frozenset(["command_substitution", "process_substitution", "arithmetic_expansion"])

RunInside = Callable[["Node", Scope, str | None], str]
"""Reads what a substitution runs, and returns what it prints."""
RunText = Callable[[str, int, Scope], str]
"""Reads a script that begins at a place of the text, and returns what it prints."""


class Pieces:
    """Reads the pieces of one script's commands."""

    def __init__(
        self,
        text: str,
        offset: int | None,
        span: tuple[int, int],
        run_inside: RunInside,
        run_text: RunText,
        outputs: list[Node],
    ) -> None:
        self.text = text
        self.heredocs: dict[int, Heredoc] = {}
        self._outputs = outputs
        self._offset = offset
        self._span = span
        self._run_inside = run_inside
        self._run_text = run_text

    def at(self, start: int, end: int) -> tuple[int, int]:
        """Return where a part of the text stands in the whole line."""
        if self._offset is None:
            return self._span
        return self._offset + start, self._offset + end

    def words(self, node: Node, scope: Scope, feed: str | None) -> list[Word]:
        """Read a word: several if it falls apart, or may be one of several."""
        start, end = node.start_byte, node.end_byte
        place = self.at(start, end)
        if _PLAIN.match(self.text, start, end):
            return [Word(self.text[start:end], *place)]
        if not _HAS_SUBSTITUTION.search(self.text, start, end):
            values = expand(self.text, start, end, scope.lookup)
            return [Word(value, *place) for value in values]
        if node.type == "process_substitution" and self.text[start] == ">":
            self._outputs.append(node)
            return [Word(UNKNOWN, *place)]
        substitutions = self.substitutions(node, scope, feed)
        if node.type == "process_substitution":
            return [Word(UNKNOWN, *place, prints=substitutions[start][1])]
        values = expand(self.text, start, end, scope.lookup, substitutions, self._reader(scope))
        return [Word(value, *place) for value in values]

    def _reader(self, scope: Scope) -> Callable[[str, int], str]:
        return lambda script, place: self._run_text(script, place, scope)

    def substitutions(self, node: Node, scope: Scope, feed: str | None) -> Substitutions:
        """Read all that is run inside a node."""
        found: Substitutions = {}
        nodes = [node]
        while nodes:
            inner = nodes.pop()
            if inner.type in _SUBSTITUTIONS:
                found[inner.start_byte] = (inner.end_byte, self._run_inside(inner, scope, feed))
            else:
                nodes += reversed(inner.named_children)
        return found

    def assignment(self, node: Node, scope: Scope, feed: str | None) -> Assignment:
        """Read `name=value`, without assigning it."""
        name_node, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        name = ""
        if name_node is not None:
            name = self.text[name_node.start_byte : name_node.end_byte].partition("[")[0]
            if name_node.type == "subscript":
                self.substitutions(name_node, scope, feed)
        text = "" if value is None else self._value(value, scope, feed)
        if value is not None and self.text[value.start_byte - 2 : value.start_byte] == "+=":
            text = scope.lookup(name) + text
        return Assignment(name, text if len(text) <= LONGEST_VALUE else UNKNOWN)

    def _value(self, node: Node, scope: Scope, feed: str | None) -> str:
        """Return what is assigned: a value is not split, an array is."""
        if node.type == "array":
            elements = [self.words(child, scope, feed) for child in node.named_children]
            return join(word.value for words in elements for word in words)
        return " ".join(word.value for word in self.words(node, scope, feed))

    def redirect(
        self, node: Node, scope: Scope, feed: str | None
    ) -> tuple[Redirect, list[list[Word]]] | None:
        """Read a redirect, and the words after it, which the tree takes for its targets.

        Those of further lines, which it takes for the same too, are commands of their own.
        """
        operator = _OPERATOR.match(self.text, node.start_byte)
        if operator is None:
            return None
        descriptor, sign = operator.groups()
        if not descriptor:  # the tree takes it for a word where another redirect stands before
            descriptor = _digits_before(self.text, node.start_byte)
        targets = _targets(node)
        if sign.endswith("&-"):
            closed = Word("-", *self.at(*operator.span()))
            lines = self._lines(targets[1:], operator.end(), scope, feed)
            return Redirect(sign[:2], descriptor, closed), lines
        if not targets:
            return None
        if sign in ("<<", "<<-"):
            target, sign = self._heredoc(operator.start(2), scope), "<<"
        else:
            target = self._target(targets[0], scope, feed)
        lines = self._lines(targets[1:], targets[0].end_byte, scope, feed)
        return Redirect(sign, descriptor, target), lines

    def _target(self, node: Node, scope: Scope, feed: str | None) -> Word:
        """Read a file's name, or the text of a here-string, which is not split."""
        words = self.words(node, scope, feed)
        if len(words) == 1:
            return words[0]
        value = " ".join(word.value for word in words)
        return Word(value, *self.at(node.start_byte, node.end_byte))

    def _heredoc(self, place: int, scope: Scope) -> Word:
        heredoc = self.heredocs.get(place)
        if heredoc is None:
            return Word("", *self.at(place, place))
        return Word(self._body(heredoc, scope), *self.at(heredoc.body_start, heredoc.body_end))

    def _lines(
        self, nodes: list[Node], end: int, scope: Scope, feed: str | None
    ) -> list[list[Word]]:
        """Read words line by line; the first line is that of what ends at a place."""
        lines: list[list[Word]] = [[]]
        for node in nodes:
            if not is_same_line(self.text, end, node.start_byte):
                lines.append([])
            if not self.is_descriptor(node):
                lines[-1] += self.words(node, scope, feed)
            end = node.end_byte
        return lines

    def is_descriptor(self, node: Node) -> bool:
        """Tell whether the tree took the number before a redirect for a word."""
        if self.text[node.end_byte : node.end_byte + 1] not in ("<", ">"):
            return False
        text = self.text[node.start_byte : node.end_byte]
        return text.isdigit() or bool(_NAMED_DESCRIPTOR.match(text))

    def _body(self, heredoc: Heredoc, scope: Scope) -> str:
        """Return a here-document's text, and read what is run inside it."""
        start, end = heredoc.body_start, heredoc.body_end
        if heredoc.is_literal:
            body = self.text[start:end]
        else:
            body = expand_body(self.text, start, end, scope.lookup, self._reader(scope))
        return re.sub(r"^\t+", "", body, flags=re.M) if heredoc.strips_tabs else body


def is_same_line(text: str, start: int, end: int) -> bool:
    """Tell whether no newline that ends a command stands between two places."""
    return "\n" not in text[start:end].replace("\\\n", "")


def _targets(node: Node) -> list[Node]:
    return [child for child in node.named_children if child.type != "file_descriptor"]


def _digits_before(text: str, place: int) -> str:
    start = place
    while start and text[start - 1].isdigit():
        start -= 1
    return text[start:place] if start and text[start - 1].isspace() else ""
