"""tree-sitter, loaded at the first line that needs it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser

_local = threading.local()


def parse(text: str) -> Node:
    """Return the root of the syntax tree; each character of the text is one byte of it."""
    try:
        parser: Parser = _local.parser
    except AttributeError:
        import tree_sitter

        parser = _local.parser = tree_sitter.Parser(_language())
    source = text.encode("latin-1")
    if not text.isascii():
        source = source.translate(_AS_ASCII)
    return parser.parse(source).root_node


_AS_ASCII = bytes(range(128)) + b"x" * 128
"""To the grammar all other bytes are letters; its scanner reads beyond its tables for some."""


def list_parts(node: Node) -> list[Node]:
    """Return the parts and operators of a list; the tree nests all that stands left of each."""
    parts: list[Node] = []
    while node.type == "list":
        node, *rest = node.children
        parts += reversed(rest)
    return [node, *reversed(parts)]


def _language() -> Language:
    """Return the grammar from the package's extension module.

    The package itself imports importlib.resources, for files that we have no use for: half of the
    time that all of this takes.
    """
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    import tree_sitter

    package = PathFinder.find_spec("tree_sitter_bash")
    extension = package and PathFinder.find_spec("_binding", package.submodule_search_locations)
    if not extension or not extension.loader:
        import tree_sitter_bash

        return tree_sitter.Language(tree_sitter_bash.language())
    binding = module_from_spec(extension)
    extension.loader.exec_module(binding)
    return tree_sitter.Language(binding.language())
