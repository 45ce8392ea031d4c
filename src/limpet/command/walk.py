"""Walks a syntax tree and notes its simple commands, with all that runs inside others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from limpet.command import tree
from limpet.command.assemble import Assembler, Tail
from limpet.command.model import Command, Gap, Line, Word
from limpet.command.pieces import REDIRECTS, Pieces
from limpet.command.runner import DEEPEST, Runner, given_input
from limpet.command.scope import MOST_NAMES, Scope
from limpet.command.source import mask, split
from limpet.command.words import UNKNOWN

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_ROUNDS = 16
"""How many values of a loop's variable are tried."""
MOST_COMMANDS = 10_000
"""How many commands of one line are read; what follows is not understood."""

_MOST_PARTS = 1000
_MOST_GAPS = 50
_BACKTICK_ESCAPE = re.compile(r"\\([`\\$])")


class Walk:
    """Walks one script's tree. A script inside another has a walk of its own."""

    def __init__(
        self,
        line: Line,
        text: str,
        *,
        offset: int | None,
        span: tuple[int, int] = (0, 0),
        caller: Command | None = None,
        is_whole: bool = True,
    ) -> None:
        """Take a script, and where it stands in the whole line.

        Args:
            line: What is noted.
            text: The script.
            offset: Where it stands as it is; None if it stands there in another form.
            span: Where it stands in another form.
            caller: The command that runs it.
            is_whole: False of a part of a line that could not be read in one piece.
        """
        self._line = line
        self._text = text
        self._offset = offset
        self._caller = caller
        self._is_whole = is_whole
        self._runner = Runner(line, text, offset, caller, self._inner_script, self._output)
        self._pieces = Pieces(
            text, offset, span, self._inside, self._text_inside, self._runner.outputs
        )
        self._assembler = Assembler(text, self._pieces, self._runner)

    def script(self, scope: Scope, feed: str | None) -> str:
        """Read the whole text; return what it would print."""
        masked = mask(self._text)
        if scope.depth > DEEPEST or masked.is_too_deep:
            self._give_up(0, len(self._text))
            return UNKNOWN
        self._pieces.heredocs = masked.heredocs
        root = tree.parse(masked.text)
        self._runner.level -= 1  # the outermost statements lie in no block
        prints = self._statements(root.children, scope, feed)
        self._runner.level += 1
        if root.has_error and not (self._is_whole and self._read_in_parts(masked.text, scope)):
            self._note_errors(root)
        return prints

    def _read_in_parts(self, text: str, scope: Scope) -> bool:
        """Read each part of a line on its own: an error in one must not hide the others.

        Return False if none of them has the error.
        """
        parts, known = split(text), len(self._line.gaps)
        if not 1 < len(parts) <= _MOST_PARTS:
            return False
        for start, end in parts:
            offset = None if self._offset is None else self._offset + start
            span = self._pieces.at(start, end)
            walk = Walk(self._line, text[start:end], offset=offset, span=span, is_whole=False)
            walk.script(scope.child(), None)
        return len(self._line.gaps) > known

    def _give_up(self, start: int, end: int) -> bool:
        """Note a gap; return False once there are too many to tell apart."""
        gaps = self._line.gaps
        if len(gaps) == _MOST_GAPS:
            start, end = min(start, end), len(self._text)
        if len(gaps) <= _MOST_GAPS:
            gaps.append(Gap(*self._pieces.at(start, end), self._text[start:end]))
        return len(gaps) <= _MOST_GAPS

    def _note_errors(self, root: Node) -> None:
        """Note the lines that hold what the parser could not read."""
        nodes = [root]
        while nodes:
            node = nodes.pop()
            if node.is_error or node.is_missing:
                start = self._text.rfind("\n", 0, node.start_byte) + 1
                end = self._text.find("\n", node.end_byte)
                if not self._give_up(start, len(self._text) if end < 0 else end):
                    return
            elif node.has_error:
                nodes += reversed(node.children)

    # Statements: each visitor returns what its part would print.

    def _visit(self, node: Node, scope: Scope, feed: str | None, tail: Tail | None = None) -> str:
        visit = _VISITORS.get(node.type)
        if visit is None:
            return UNKNOWN
        if tail is None or node.type in _TAKE_TAIL:
            return visit(self, node, scope, feed, tail)
        # A block with redirects of its own.
        command = Command([], *self._pieces.at(node.start_byte, node.end_byte))
        command.redirects = tuple(tail.redirects)
        self._runner.add(command)
        given = given_input(tail.redirects, scope)
        return visit(self, node, scope, feed if given is None else given, None)

    def _statements(self, nodes: Iterable[Node], scope: Scope, feed: str | None) -> str:
        commands = self._line.commands
        self._runner.level += 1
        prints, begins, joined_by = [], len(commands), ""
        for node in nodes:
            kind = node.type
            if (visit := _VISITORS.get(kind)) is not None:
                if self._line.skim is not None and self._is_passed_over(node, kind, scope):
                    continue
                if len(commands) > MOST_COMMANDS:
                    self._give_up(node.start_byte, node.end_byte)
                    continue
                begins = len(commands)
                prints.append(visit(self, node, scope, feed, None))
                if begins < len(commands) and not commands[begins].joined_by:
                    commands[begins].joined_by = joined_by
                joined_by = ";"
            elif kind == "&":
                for command in commands[begins:]:
                    command.is_background = True
                joined_by = "&"
        self._runner.level -= 1
        return "".join(prints)

    def _is_passed_over(self, node: Node, kind: str, scope: Scope) -> bool:
        """Tell whether a statement of a long script has nothing in it that anyone looks for."""
        if kind in _ASSIGNING or self._line.skim is None:
            return False
        text = self._text[node.start_byte : node.end_byte]
        if self._line.skim(text):
            return False
        return not scope.functions or text.split(None, 1)[0] not in scope.functions

    def _block(self, node: Node, scope: Scope, feed: str | None, _tail: Tail | None) -> str:
        return self._statements(node.children, scope, feed)

    def _subshell(self, node: Node, scope: Scope, feed: str | None, _tail: Tail | None) -> str:
        return self._statements(node.children, scope.child(), feed)

    def _compound(self, node: Node, scope: Scope, feed: str | None, tail: Tail | None) -> str:
        if self._text.startswith("((", node.start_byte):
            return self._expression(node, scope, feed, tail)
        return self._statements(node.children, scope, feed)

    def _expression(self, node: Node, scope: Scope, feed: str | None, _tail: Tail | None) -> str:
        """`[[ … ]]`, `(( … ))`: nothing is run but what stands in substitutions."""
        self._pieces.substitutions(node, scope, feed)
        return ""

    def _test(self, node: Node, scope: Scope, feed: str | None, tail: Tail | None) -> str:
        self._expression(node, scope, feed, tail)
        start, end = self._pieces.at(node.start_byte, node.end_byte)
        opener = "[[" if self._text.startswith("[[", node.start_byte) else "["
        command = Command([Word(opener, start, end)], start, end)
        if tail is not None:
            command.redirects = tuple(tail.redirects)
        self._runner.add(command)
        return ""

    def _loop(self, node: Node, scope: Scope, feed: str | None, _tail: Tail | None) -> str:
        self._runner.loops += 1
        prints = self._statements(node.children, scope, feed)
        self._runner.loops -= 1
        return prints

    def _list(self, node: Node, scope: Scope, feed: str | None, tail: Tail | None) -> str:
        commands = self._line.commands
        prints, operator = [], ""
        parts = tree.list_parts(node)
        for place, child in enumerate(parts):
            if child.type not in _VISITORS:
                operator = child.type
                continue
            begins = len(commands)
            own_tail = tail if place == len(parts) - 1 else None
            prints.append(self._visit(child, scope, feed, own_tail))
            if operator and begins < len(commands):
                commands[begins].joined_by = operator
        return "".join(prints)

    def _pipeline(self, node: Node, scope: Scope, feed: str | None, tail: Tail | None) -> str:
        commands = self._line.commands
        pipeline: list[Command] = []
        prints = feed
        for stage, (child, own_tail) in enumerate(self._stages(node, scope, feed, tail)):
            begins = len(commands)
            prints = self._visit(child, scope.child(), prints, own_tail)
            for command in commands[begins:]:
                if not command.pipeline:
                    command.pipeline, command.stage = pipeline, stage
                    pipeline.append(command)
            if stage and begins < len(commands):
                commands[begins].joined_by = "|"
        return prints or ""

    def _stages(
        self, node: Node, scope: Scope, feed: str | None, tail: Tail | None
    ) -> list[tuple[Node, Tail | None]]:
        """Return a pipeline's stages; the tree hangs a redirect on all stages up to it."""
        stages: list[tuple[Node, Tail | None]] = []
        for child in node.children:
            if child.type not in _VISITORS:
                continue
            body = child.child_by_field_name("body")
            if child.type == "redirected_statement" and body and body.type == "pipeline":
                own = Tail([], [], [])
                for redirect in child.children:
                    if redirect.type in REDIRECTS:
                        self._assembler.take_redirect(redirect, scope, feed, own)
                stages += self._stages(body, scope, feed, own)
            else:
                stages.append((child, None))
        if tail is not None:
            last, own_tail = stages[-1]
            before = own_tail or Tail([], [], [])
            stages[-1] = (last, before.joined(tail))
        return stages

    def _negated(self, node: Node, scope: Scope, feed: str | None, tail: Tail | None) -> str:
        commands = self._line.commands
        begins = len(commands)
        prints = self._visit(node.children[-1], scope, feed, tail)
        for command in commands[begins:]:
            command.is_negated = True
        return prints

    def _for(self, node: Node, scope: Scope, feed: str | None, _tail: Tail | None) -> str:
        values: list[str] = []
        name, has_values = "", False
        for child in node.children:
            if child.type == "variable_name":
                name = self._text[child.start_byte : child.end_byte]
            elif child.type == "in":
                has_values = True
            elif child.is_named and child.type not in _VISITORS:
                values += [word.value for word in self._pieces.words(child, scope, feed)]
        prints = ""
        rounds = values[:MOST_ROUNDS] if has_values else [scope.lookup("@")]
        for place, value in enumerate(rounds):
            if place and not scope.budget.repeats(node.end_byte - node.start_byte):
                break
            scope.variables[name] = value
            prints += self._loop(node, scope, feed, None)
        return prints

    def _case(self, node: Node, scope: Scope, feed: str | None, _tail: Tail | None) -> str:
        for child in node.children:
            if child.is_named and child.type not in _VISITORS:
                self._pieces.substitutions(child, scope, feed)
        return self._statements(node.children, scope, feed)

    def _function_definition(
        self, node: Node, scope: Scope, _feed: str | None, tail: Tail | None
    ) -> str:
        name_node = node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        if name_node is None or body is None:
            return ""
        name = self._text[name_node.start_byte : name_node.end_byte]
        if len(scope.functions) < MOST_NAMES:
            scope.functions[name] = (self, body)
        runner = self._runner
        before = (runner.function, runner.siblings)
        runner.function, runner.siblings = name, []
        tail = tail or Tail([], [], [])
        for child in node.children:
            if child.type in REDIRECTS:
                self._assembler.take_redirect(child, scope, None, tail)
        inner = scope.child()
        inner.variables["FUNCNAME"] = name
        self._visit(body, inner, None, tail if tail.redirects else None)
        runner.function, runner.siblings = before
        return ""

    def call(self, body: Node, scope: Scope, feed: str | None) -> str:
        """Read a function's body again, for the arguments of one call."""
        return self._visit(body, scope, feed)

    def _redirected(self, node: Node, scope: Scope, feed: str | None, tail: Tail | None) -> str:
        body: Node | None = None
        tail = tail or Tail([], [], [])
        for child in node.children:
            if child.type in REDIRECTS:
                self._assembler.take_redirect(child, scope, feed, tail)
            elif body is None and child.type in _VISITORS:
                body = child
        if body is not None:
            return self._visit(body, scope, feed, tail)
        command = Command(tail.words, *self._pieces.at(node.start_byte, node.end_byte))
        command.redirects = tuple(tail.redirects)
        return self._runner.run(command, scope, feed)

    # What stands inside

    def _inner_script(
        self,
        script: str,
        offset: int | None,
        origin: Word,
        command: Command,
        scope: Scope,
        feed: str | None,
    ) -> str:
        span = (origin.start, origin.end)
        walk = Walk(self._line, script, offset=offset, span=span, caller=command)
        walk._runner.function = self._runner.function
        walk._runner.level = self._runner.level + 1
        return walk.script(scope, feed)

    def _output(self, node: Node, scope: Scope, feed: str) -> None:
        self._statements(node.children, scope, feed)

    def _inside(self, node: Node, scope: Scope, feed: str | None) -> str:
        if node.type == "arithmetic_expansion":
            for child in node.named_children:
                self._pieces.substitutions(child, scope, feed)
            return UNKNOWN
        text = self._text[node.start_byte : node.end_byte]
        if text[0] == "`" and "\\" in text:
            script = _BACKTICK_ESCAPE.sub(r"\1", text[1:-1])
            span = self._pieces.at(node.start_byte, node.end_byte)
            walk = Walk(self._line, script, offset=None, span=span, caller=self._caller)
            walk._runner.level = self._runner.level + 1
            return walk.script(scope.child(), None)
        return self._statements(node.children, scope.child(), feed)

    def _text_inside(self, script: str, place: int, scope: Scope) -> str:
        if len(self._line.commands) > MOST_COMMANDS:
            self._give_up(place, place + len(script))
            return UNKNOWN
        offset = None if self._offset is None else self._offset + place
        span = self._pieces.at(place, place + len(script))
        walk = Walk(self._line, script, offset=offset, span=span, caller=self._caller)
        walk._runner.level = self._runner.level + 1
        return walk.script(scope.child(), None)


_Visitor = Callable[[Walk, "Node", Scope, str | None, Tail | None], str]
_VISITORS: dict[str, _Visitor] = {
    "command": lambda walk, *given: walk._assembler.simple(*given),
    "redirected_statement": Walk._redirected,
    "pipeline": Walk._pipeline,
    "list": Walk._list,
    "negated_command": Walk._negated,
    "subshell": Walk._subshell,
    "compound_statement": Walk._compound,
    "if_statement": Walk._block,
    "elif_clause": Walk._block,
    "else_clause": Walk._block,
    "while_statement": Walk._loop,
    "for_statement": Walk._for,
    "c_style_for_statement": Walk._loop,
    "do_group": Walk._block,
    "case_statement": Walk._case,
    "case_item": Walk._case,
    "function_definition": Walk._function_definition,
    "test_command": Walk._test,
    "variable_assignment": lambda walk, *given: walk._assembler.assignments(*given),
    "variable_assignments": lambda walk, *given: walk._assembler.assignments(*given),
    "declaration_command": lambda walk, *given: walk._assembler.declaration(*given),
    "unset_command": lambda walk, *given: walk._assembler.declaration(*given),
    "ERROR": Walk._block,
}
_ASSIGNING = frozenset(["variable_assignment", "variable_assignments", "declaration_command"])
_TAKE_TAIL = frozenset(
    """command redirected_statement pipeline list negated_command test_command variable_assignment
    variable_assignments declaration_command unset_command""".split()
)
