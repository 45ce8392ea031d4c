"""The command line: thin doors that parse arguments, call the library and show what came of it."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from limpet import __version__
from limpet.errors import SandboxUnavailable, TaskNotFound

_COMMANDS = (
    "run", "tasks", "output", "wait", "send", "stop",
    "check", "call", "schema", "hook", "mcp", "doctor",
)  # fmt: skip
_COULD_NOT_START = 125


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="limpet",
        description="The bash tool for LLM agents: runs shell commands, comes back every time,"
        " loses nothing.",
    )
    parser.add_argument("--version", action="version", version=f"limpet {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    given = sys.argv[1:] if arguments is None else arguments
    # To load and describe all of them takes as long as to run a short command.
    for name in given[:1] if given and given[0] in _COMMANDS else _COMMANDS:
        importlib.import_module(f"limpet.cli.{name}").add_parser(commands)
    _open_standard_streams()
    options = parser.parse_args(arguments)
    try:
        status: int = options.call(options)
    except (TypeError, ValueError) as error:
        return _failed(error, 2)
    except SandboxUnavailable as error:
        return _failed(error, _COULD_NOT_START)
    except (TaskNotFound, OSError) as error:
        return _failed(error, 1)
    return status


def _failed(error: Exception, status: int) -> int:
    from limpet.render.safe import printable  # a path or an argument may hold anything

    print(f"limpet: {printable(str(error))}", file=sys.stderr)
    return status


def _open_standard_streams() -> None:
    """Open what the caller closed (`>&-`), so that no other descriptor takes its number."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
