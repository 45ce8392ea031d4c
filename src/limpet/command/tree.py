"""tree-sitter, loaded at the first line that needs it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_local = threading.local()


def parse(text: str) -> Node:
    """Return the root of the syntax tree; each character of the text is one byte of it."""
    try:
        parser: Parser = _local.parser
    except AttributeError:
        import tree_sitter
        import tree_sitter_bash

        parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
        _local.parser = parser
    return parser.parse(text.encode("latin-1")).root_node
