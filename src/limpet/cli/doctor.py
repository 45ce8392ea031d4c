"""`limpet doctor`: what the sandbox can promise on this machine, and what not, and why."""

from __future__ import annotations

import argparse

from limpet.cli.screen import screen_of
from limpet.cli.sink import print_now

_EXAMPLES = """\
exit status: 0 if there is a sandbox, even if some of its promises do not hold here; else 1.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "doctor",
        help="say what the sandbox enforces on this machine",
        description="Look at the kernel and say what of each sandbox mode is enforced here, by"
        " what, and what is not and why. Nothing is changed.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(call=_doctor)


def _doctor(options: argparse.Namespace) -> int:
    from limpet.sandbox import probe

    found = probe()
    if options.json:
        import json

        text = json.dumps(found.to_dict())
    else:
        from limpet.render.doctor import doctor_lines

        screen = screen_of(1)
        is_coloured = screen is not None and screen.is_coloured
        text = "\n".join(doctor_lines(found, is_coloured=is_coloured))
    if not print_now(1, text + "\n"):
        return 1
    return 0 if found.available else 1
