"""The command line's words for the sandbox and the limits."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from limpet.confinement import LimitPolicy
from limpet.policy import Policy

_LIMITS = {
    "memory": "memory_bytes",
    "cpu": "cpu_s",
    "processes": "processes",
    "file-size": "file_bytes",
    "open-files": "open_files",
}
_UNITS = {"K": 10, "M": 20, "G": 30, "T": 40}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that confine a command."""
    group = parser.add_argument_group("what the kernel keeps it from (Linux)")
    group.add_argument("--sandbox", choices=["off", "read-only", "workspace"],
                       help="write nothing, or only here and in /tmp (default: off)")  # fmt: skip
    group.add_argument("--network", choices=["on", "off"],
                       help="in a sandbox (default: off)")  # fmt: skip
    group.add_argument("--port", type=int, action="append", default=[], metavar="N",
                       help="open TCP connections to this port only")  # fmt: skip
    group.add_argument("--writable", action="append", default=[], metavar="D",
                       help="another directory that a workspace may write to")  # fmt: skip
    group.add_argument("--hide", action="append", default=[], metavar="PATH",
                       help="what it cannot read; `credentials`: the usual places")  # fmt: skip
    group.add_argument("--degrade", action="store_true",
                       help="run with what the kernel has, if it lacks some of this")  # fmt: skip
    group.add_argument("--limit", action="append", default=[], metavar="NAME=VALUE",
                       help=f"{', '.join(_LIMITS)}: memory=2G, cpu=60, processes=none")  # fmt: skip


def confined(policy: Policy, options: argparse.Namespace) -> Policy:
    """Return a policy with what the command line says of the sandbox and the limits."""
    given: dict[str, Any] = {}
    if options.sandbox:
        given["mode"] = options.sandbox
    if options.network:
        given["network"] = options.network == "on"
    if options.port:
        given["ports"] = tuple(options.port)
    if options.writable:
        given["writable"] = (*policy.sandbox.writable, *options.writable)
    if options.hide:
        given["hide"] = (*policy.sandbox.hide, *options.hide)
    if options.degrade:
        given["degrade"] = True
    if given:
        policy = replace(policy, sandbox=replace(policy.sandbox, **given))
        if given.keys() != {"mode"} and policy.sandbox.mode == "off":
            raise ValueError("this needs a sandbox: --sandbox read-only or --sandbox workspace")
    if options.limit:
        limits = policy.effective_limits or LimitPolicy(
            memory_bytes=None, cpu_s=None, processes=None, file_bytes=None, open_files=None
        )
        policy = replace(policy, limits=replace(limits, **dict(map(_limit, options.limit))))
    return policy


def _limit(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or name not in _LIMITS:
        raise ValueError(f"--limit takes NAME=VALUE, of {', '.join(_LIMITS)}, not {text!r}")
    if value == "none":
        return _LIMITS[name], None
    number, shift = value, 0
    if value[-1:].upper() in _UNITS:
        number, shift = value[:-1], _UNITS[value[-1:].upper()]
    if not number.isdigit():
        raise ValueError(
            f"--limit {name} takes a whole number (2G, 512M, 60) or none, not {value!r}"
        )
    return _LIMITS[name], int(number) << shift
