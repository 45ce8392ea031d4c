"""What a line has set so far: variables, functions, and descriptors that are connections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from limpet.command.words import HERE, HOME, UNKNOWN, join

if TYPE_CHECKING:
    from tree_sitter import Node

    from limpet.command.walk import Walk

_ENVIRONMENT = {"HOME": HOME, "PWD": HERE, "SHELL": "/bin/bash", "IFS": " ", "0": "$0"}


_LEAST = 200
"""What reading anything again costs at least."""
_MOST_ARGUMENTS = 256
MOST_NAMES = 500
"""How many functions and variables of a line are known: each subshell has a copy of them."""


class Budget:
    """What may still be spent on a line, so that none takes for ever."""

    __slots__ = ("expanded", "repeated")

    def __init__(self) -> None:
        self.expanded = 1_000_000
        """Characters of variables' values."""
        self.repeated = 200_000
        """Characters that are read again: rounds of loops, calls of functions, what xargs runs."""

    def repeats(self, size: int) -> bool:
        """Tell whether text of a size may be read once more, and count it."""
        self.repeated -= max(size, _LEAST)
        return self.repeated >= 0


class Scope:
    """The names that a shell knows at one place in the line."""

    __slots__ = ("budget", "connections", "depth", "functions", "variables")

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = budget or Budget()
        self.variables: dict[str, str] = {}
        self.functions: dict[str, tuple[Walk, Node]] = {}
        """Their bodies, and whose they are."""
        self.connections: set[str] = set()
        """Numbers of descriptors that were opened on /dev/tcp."""
        self.depth = 0
        """How many scripts, functions and subshells lie around this place."""

    def child(self) -> Scope:
        """Return a copy for a subshell, whose assignments are its own."""
        scope = Scope(self.budget)
        scope.variables = self.variables.copy()
        scope.functions = self.functions.copy()
        scope.connections = self.connections.copy()
        scope.depth = self.depth + 1
        return scope

    def lookup(self, name: str) -> str:
        """Return a variable's value. Where it may have several, it is the one given last."""
        value = self.variables.get(name)
        if value is None:
            return _ENVIRONMENT.get(name, UNKNOWN)
        self.budget.expanded -= len(value)
        return value if self.budget.expanded >= 0 else UNKNOWN

    def assign(self, name: str, value: str) -> None:
        """Give a variable a value."""
        if len(self.variables) < MOST_NAMES or name in self.variables:
            self.variables[name] = value

    def pass_arguments(self, values: Sequence[str]) -> None:
        """Set `$0`, `$1`, `$2` … and `$@`."""
        values = values[:_MOST_ARGUMENTS]
        for place, value in enumerate(values):
            self.variables[str(place)] = value
        self.variables["@"] = self.variables["*"] = join(values[1:])
