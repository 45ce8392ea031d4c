"""The command line's words for a profile and the conversation it is used in."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from limpet.context import ToolContext
from limpet.policy import Policy

if TYPE_CHECKING:
    from limpet.profiles import Toolbox

NAMES = ("default", "report", "tasks", "modes", "tail", "streams")


def add_profile(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a profile and its conversation."""
    parser.add_argument("--profile", choices=NAMES, default="default",
                        help="what the model sees (default: default)")  # fmt: skip
    parser.add_argument("--cwd", metavar="D", help="where the conversation works (default: here)")
    parser.add_argument("--restricted", action="store_true",
                        help="the conversation may only look: the read-only sandbox")  # fmt: skip
    parser.add_argument("--local", action="store_true",
                        help="of the profile report: shorter, for small models")  # fmt: skip
    parser.add_argument("--output-dir", metavar="D",
                        help="of the profile tail: where long outputs are saved")  # fmt: skip


_OWN = {"local": ("local_mode", "report"), "output_dir": ("output_dir", "tail")}
"""Options of single profiles: what the profile calls them, and which it is."""


def own_options(options: argparse.Namespace) -> dict[str, object]:
    """Return the options that are the profile's own; ValueError if it has no such option."""
    own: dict[str, object] = {}
    for flag, (name, of) in _OWN.items():
        if not (value := getattr(options, flag)):
            continue
        if options.profile != of:
            shown = flag.replace("_", "-")
            raise ValueError(f"--{shown} is of the profile {of}, not of {options.profile}")
        own[name] = value
    return own


def toolbox(options: argparse.Namespace, policy: Policy) -> Toolbox:
    """Return the tools of the profile."""
    own = own_options(options)
    from limpet.profiles import profile  # pydantic, for those who want it

    return profile(options.profile, policy, **own)


def conversation(options: argparse.Namespace) -> ToolContext:
    """Return the conversation that the options describe."""
    return ToolContext(
        options.cwd,
        session_id=getattr(options, "session", None),
        restricted=options.restricted,
    )
