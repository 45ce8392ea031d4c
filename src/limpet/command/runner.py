"""What a simple command runs besides itself, and what holds after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from limpet.command.inner import Inner
from limpet.command.model import Command, Line, Redirect, Word
from limpet.command.printed import PRINTERS, from_input, printed
from limpet.command.scope import Scope
from limpet.command.unwrap import UNWRAPPERS, unwrap
from limpet.command.words import HERE, HOME, REMOTE, UNKNOWN, is_connection
from limpet.command.wrappers import KEYWORDS

if TYPE_CHECKING:
    from tree_sitter import Node

DEEPEST = 12
"""How many scripts in scripts and functions in functions are followed."""

ReadScript = Callable[[str, int | None, Word, Command, Scope, str | None], str]
"""Reads the script that a command runs, and returns what it prints."""
ReadOutput = Callable[["Node", Scope, str], None]
"""Reads a `>(…)` that a command prints to."""


class Runner:
    """Notes the commands of one script in the line that they belong to."""

    def __init__(
        self,
        line: Line,
        text: str,
        offset: int | None,
        caller: Command | None,
        read_script: ReadScript,
        read_output: ReadOutput,
    ) -> None:
        self._line = line
        self._text = text
        self._offset = offset
        self._caller = caller
        self._read_script = read_script
        self._read_output = read_output
        self.outputs: list[Node] = []
        """`>(…)` of the command at hand: read after it."""
        self.function = ""
        self.siblings: list[Command] = []
        """The commands of the function so far."""
        self.level = 0
        self.loops = 0
        """How many loops lie around."""

    def add(self, command: Command) -> None:
        """Note a command."""
        if self.function:
            command.function = self.function
            command.siblings = self.siblings
            self.siblings.append(command)
            command.is_repeated = self.loops > 0
        elif command.name in ("$0", "./$0"):
            command.siblings, command.is_repeated = self._line.commands, self.loops > 0
        if self.level:
            command.level = self.level
        if command.caller is None:
            command.caller = self._caller
        self._line.commands.append(command)

    def run(self, command: Command, scope: Scope, feed: str | None) -> str:
        """Note a command and all that it runs; return what it prints."""
        if command.redirects:
            given = given_input(command.redirects, scope)
            feed = feed if given is None else given
            _note_connections(command, scope)
        command.feed = feed
        command.cwd = scope.variables.get("PWD", HERE)
        self.add(command)
        if command.name in scope.functions and _may_be_function(command, scope):
            return self._call_function(command, scope)
        if command.name not in _ACTIVE and not self.outputs and not command.redirects:
            return from_input(command)
        prints = None
        for inner in unwrap(command):
            if prints is not None and not scope.budget.repeats(len(inner.script) + 100):
                break
            prints = self._run_inner(inner, command, scope)
        if command.name in _SETTERS:
            _SETTERS[command.name](command, scope)
        if command.name == "pwd":
            prints = scope.lookup("PWD") + "\n"
        prints = printed(command) if prints is None else prints
        while self.outputs:
            self._read_output(self.outputs.pop(), scope.child(), prints)
        return "" if command.redirects and _goes_elsewhere(command.redirects) else prints

    def _run_inner(self, inner: Inner, command: Command, scope: Scope) -> str:
        feed = command.feed if inner.reads_input else None
        if inner.words is not None:
            run = Command(inner.words, inner.words[0].start, inner.words[-1].end)
            run.caller, run.via_words = command, True
            run.redirects = tuple(r for r in command.redirects if r.operator not in ("<<", "<<<"))
            return self.run(run, scope, feed)
        own = scope if inner.is_same_shell else scope.child()
        if not inner.is_same_shell:
            own.functions = {}
        if inner.arguments is not None:
            own.variables |= {given.name: given.value for given in command.assignments}
            own.pass_arguments(inner.arguments)
        own.depth += 1
        offset = self._offset_of(inner.script, inner.origin)
        prints = self._read_script(inner.script, offset, inner.origin, command, own, feed)
        own.depth -= 1
        return prints

    def _offset_of(self, script: str, origin: Word) -> int | None:
        """Return where a script stands in the line, if it stands there as it is."""
        if self._offset is None:
            return None
        start, end = origin.start - self._offset, origin.end - self._offset
        place = self._text.find(script, start, end) if script else -1
        return None if place < 0 else self._offset + place

    def _call_function(self, command: Command, scope: Scope) -> str:
        """Read a function's body again, for the arguments of this call."""
        command.calls_function = True
        walk, body = scope.functions[command.name]
        if not scope.budget.repeats(body.end_byte - body.start_byte):
            return UNKNOWN
        inner = scope.child()
        del inner.functions[command.name]
        inner.pass_arguments([word.value for word in command.words])
        return walk.call(body, inner, command.feed)


def _may_be_function(command: Command, scope: Scope) -> bool:
    """Tell whether a name that a function has is looked up among functions."""
    is_direct = command.caller is None or command.caller.name in KEYWORDS or not command.via_words
    return is_direct and "/" not in command.words[0].value and scope.depth < DEEPEST


def given_input(redirects: Iterable[Redirect], scope: Scope) -> str | None:
    """Return what redirects put on standard input; None if they leave it alone."""
    feed = None
    for redirect in redirects:
        if redirect.descriptor not in ("", "0"):
            continue
        target = redirect.target
        match redirect.operator:
            case "<<" | "<<<":
                feed = target.value
            case "<" | "<>" | "<&":
                is_remote = is_connection(target.value) or target.value in scope.connections
                feed = REMOTE if is_remote else target.prints or UNKNOWN
    return feed


def _goes_elsewhere(redirects: Iterable[Redirect]) -> bool:
    """Tell whether redirects leave nothing of what is printed on standard output."""
    signs = [r for r in redirects if r.descriptor in ("", "1") or r.operator in ("&>", "&>>")]
    return any(">" in r.operator and r.operator != "<>" for r in signs)


def _note_connections(command: Command, scope: Scope) -> None:
    if command.name == "exec" and len(command.words) == 1:
        for redirect in command.redirects:
            if is_connection(redirect.target.value):
                default = "0" if "<" in redirect.operator else "1"
                scope.connections.add(redirect.descriptor or default)
    named = {r.target.value for r in command.redirects if r.operator in ("<&", ">&")}
    command.is_connected = not named.isdisjoint(scope.connections)


def _read(command: Command, scope: Scope) -> None:
    """`read name`: what is fed."""
    value = UNKNOWN if command.feed is None else command.feed.rstrip("\n")
    for word in command.arguments:
        if word.value.isidentifier():
            scope.assign(word.value, value)


def _set(command: Command, scope: Scope) -> None:
    """`set -- values`: the arguments."""
    values = [word.value for word in command.arguments]
    if "--" in values:
        scope.pass_arguments(values[values.index("--") :])


def _shift(_command: Command, scope: Scope) -> None:
    values: list[str] = []
    while (value := scope.variables.pop(str(len(values) + 1), None)) is not None:
        values.append(value)
    scope.pass_arguments([scope.lookup("0"), *values[1:]])
    if not values:
        scope.variables["@"] = scope.variables["*"] = UNKNOWN


def _printf(command: Command, scope: Scope) -> None:
    """`printf -v name format values`."""
    words = command.arguments
    if len(words) > 2 and words[0].value == "-v":
        scope.assign(words[1].value, printed(Command([command.words[0], *words[2:]], 0, 0)))


def _change_directory(command: Command, scope: Scope) -> None:
    """`cd path`: where it leads, if that is an absolute path."""
    values = [word.value for word in command.arguments if not word.value.startswith("-")]
    target = values[0] if values else HOME
    scope.assign("PWD", target if target[:1] in ("/", HOME) else UNKNOWN)


_SETTERS: dict[str, Callable[[Command, Scope], None]] = {
    "read": _read,
    "set": _set,
    "shift": _shift,
    "printf": _printf,
    "cd": _change_directory,
    "pushd": _change_directory,
    "popd": lambda command, scope: scope.assign("PWD", UNKNOWN),
}
_ACTIVE = PRINTERS.keys() | UNWRAPPERS.keys() | _SETTERS.keys() | {"pwd"}
"""Of all other commands nothing is known that matters to the rest of the line."""
