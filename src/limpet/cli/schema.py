"""`limpet schema`: the definitions of a profile's tools, as models' interfaces take them."""

from __future__ import annotations

import argparse

from limpet.cli import confine
from limpet.cli.check import PACKS, policy_of
from limpet.cli.profiled import add_profile, conversation, toolbox
from limpet.cli.sink import print_now

_EXAMPLES = """\
examples:
  limpet schema                                       the default profile's tools, a list
  limpet schema --tool bash                           one of them, an object
  limpet schema --profile modes --format openai       in OpenAI's strict form
  limpet schema --profile modes --restricted          with what the sandbox keeps it from

A profile of one tool prints an object, of several a list.

exit status: 0; 2 if there is no such profile or tool.
"""
_FORMATS = ("anthropic", "openai", "mcp")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "schema",
        help="print the tool definitions of a profile",
        description="Print the definitions of a profile's tools as JSON.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_profile(parser)
    parser.add_argument("--format", choices=_FORMATS, default="anthropic",
                        help="whose form (default: anthropic)")  # fmt: skip
    parser.add_argument("--tool", metavar="NAME", help="only this tool")
    parser.add_argument("--rules", choices=PACKS, help=argparse.SUPPRESS)
    confine.add_arguments(parser)
    parser.set_defaults(call=_schema)


def _schema(options: argparse.Namespace) -> int:
    import json

    from limpet.profiles.schema import definition

    box = toolbox(options, confine.confined(policy_of(options, options.cwd), options))
    tools = box.definitions(conversation(options))
    names = [tool.name for tool in tools]
    if options.tool is not None and options.tool not in names:
        raise ValueError(
            f"the profile {options.profile} has no tool {options.tool!r}: {', '.join(names)}"
        )
    found = [
        definition(tool, options.format) for tool in tools if options.tool in (None, tool.name)
    ]
    shown = found[0] if len(found) == 1 else found
    return 0 if print_now(1, json.dumps(shown, indent=2, ensure_ascii=False) + "\n") else 1
