"""`limpet run`: one command, streamed to the terminal or the pipe, with its exit status."""

from __future__ import annotations

import argparse
import os
import signal
from dataclasses import replace
from typing import Literal

from limpet.attempt import Call
from limpet.cli import background, confine
from limpet.cli.argv import hide
from limpet.cli.check import PACKS, policy_of
from limpet.cli.door import Door
from limpet.cli.profiled import NAMES
from limpet.cli.screen import screen_of, show, show_refusal
from limpet.cli.sink import print_now
from limpet.context import ToolContext
from limpet.errors import SandboxUnavailable
from limpet.policy import Policy
from limpet.result import Outcome, Result
from limpet.tool import Bash

_STATUS = {
    Outcome.BACKGROUNDED: 0,
    Outcome.TIMED_OUT: 124,
    Outcome.FAILED_TO_START: 125,
    Outcome.REFUSED: 126,
    Outcome.CANCELLED: 130,
}
_BROKEN_PIPE = 128 + signal.SIGPIPE

_EXAMPLES = """\
examples:
  limpet run 'make test'                     stream it, exit with its status
  limpet run --timeout 5 'sleep 60'          killed after 5 s with all it started: status 124
  limpet run --json 'pytest -q' | jq .hint   the whole result as JSON
  limpet run --cwd /repo --env CI=1 'npm ci'
  limpet run --sandbox workspace 'make'      writes here and in /tmp only, and has no network
  limpet run --background 'npm run dev'      prints the id of a task that goes on: `limpet tasks`
  limpet run - < script.sh                   read the command from standard input

exit status: the command's own; 124 timed out, 125 could not start, 126 refused, 130 cancelled,
128+n ended by signal n.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "run",
        help="run a command and exit with its status",
        description="Run a shell command. It has no terminal and an empty standard input; what it"
        " leaves running is named.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="one quoted argument, or -")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--timeout", type=float, metavar="S", help="seconds (default: 120)")
    parser.add_argument("--cwd", metavar="D", help="where to start (default: here)")
    parser.add_argument("--env", action="append", default=[], metavar="K=V", help="set a variable")
    parser.add_argument(
        "--stdin", action="store_true", help="pass standard input on to the command"
    )
    parser.add_argument("--separate", action="store_true", help="with --json, keep stderr apart")
    parser.add_argument("--rules", choices=PACKS,
                        help="which commands to refuse (default: limpet.toml's)")  # fmt: skip
    parser.add_argument("--survivors", choices=["adopt", "wait", "kill"],
                        help="what to do with what it leaves running (default: adopt)")  # fmt: skip
    parser.add_argument("--on-timeout", choices=["kill", "background"], default="kill",
                        help="at the time limit: dead, or a task that goes on")  # fmt: skip
    background.add_arguments(parser)
    confine.add_arguments(parser)
    parser.add_argument("--profile", choices=NAMES,
                        help="run it as this profile's tool, and show what that shows")  # fmt: skip
    parser.add_argument("--description", metavar="T", help="what the command is for")
    parser.add_argument("--summary", action="store_true", help="say on stderr how it ended")
    parser.set_defaults(call=_run)


def _run(options: argparse.Namespace) -> int:
    command = _command(options)
    if background.is_wanted(options):
        if options.profile is not None:
            raise ValueError("--background and --profile do not go together: see limpet call")
        policy = confine.confined(policy_of(options, options.cwd), options)
        return background.start(policy, command, _variables(options.env), options)
    call = Call(
        timeout_s=options.timeout,
        env=_variables(options.env),
        stdin=0 if options.stdin else None,
        description=options.description,
        ctx=ToolContext(options.cwd),
        on_timeout=options.on_timeout,
    )
    if options.profile is not None:
        policy = confine.confined(policy_of(options, options.cwd), options)
        return _as_tool(command, call, policy, options)
    on_terminal = not options.json and os.isatty(1)
    # Where both streams end up in the same place, their order matters more than their names.
    together = not options.separate if options.json else on_terminal or _are_one(1, 2)
    streams: Literal["merged", "separate"] = "merged" if together else "separate"
    policy = confine.confined(policy_of(options, options.cwd), options)
    policy = replace(
        policy,
        survivors=options.survivors or policy.survivors,
        output=replace(policy.output, streams=streams),
    )
    bash = Bash(policy)
    description = options.description or command
    door = Door(on_terminal=on_terminal, quiet=options.json, description=description)
    result = _result(door, bash, command, call, is_told=options.json)
    if options.json:
        import json

        if not print_now(1, json.dumps(result.to_dict()) + "\n"):
            return _BROKEN_PIPE
    elif door.error is not None:
        if isinstance(door.error, BrokenPipeError):
            return _BROKEN_PIPE
        print_now(2, f"limpet: the output could not be written: {door.error.strerror}\n")
        return 1
    else:
        _explain(result, full=options.summary or (on_terminal and os.isatty(2)))
    return _status(result)


def _result(door: Door, bash: Bash, command: str, call: Call, *, is_told: bool) -> Result:
    try:
        return door.run(bash, command, call)
    except SandboxUnavailable as error:
        if not is_told:
            raise
        return Result(command=command, outcome=Outcome.FAILED_TO_START, hint=str(error))


def _status(result: Result) -> int:
    return _STATUS.get(result.outcome, 125 if result.exit_code is None else result.exit_code)


def _as_tool(command: str, call: Call, policy: Policy, options: argparse.Namespace) -> int:
    """Run a command as the tool of a profile would, and show it as that profile does."""
    from limpet.cli.viewed import View

    view = View(options.profile, policy, command)
    call["timeout_s"] = options.timeout or view.timeout_s
    screen = None if options.json else screen_of(1)
    door = Door(
        on_terminal=screen is not None,
        quiet=screen is None,
        description=options.description or command,
        prints=False,
    )
    result = _result(door, view.bash, command, call, is_told=options.json)
    if options.json:
        import json

        return _status(result) if print_now(1, json.dumps(result.to_dict()) + "\n") else 1
    if screen is None:
        is_seen = print_now(1, f"{view.text(result)}\n")
    else:
        is_seen = show_refusal(result) or show(1, screen, view.panel(result, call["timeout_s"]))
    return _status(result) if is_seen else _BROKEN_PIPE


def _are_one(first: int, second: int) -> bool:
    return os.path.sameopenfile(first, second)


def _command(options: argparse.Namespace) -> str:
    words: list[str] = options.command
    if len(words) > 1:
        raise ValueError(f"the command is one argument: quote it: limpet run '{' '.join(words)}'")
    if words == ["-"]:
        if options.stdin:
            raise ValueError("standard input cannot be both the command and its input")
        with open(0, "rb", closefd=False) as file:
            return os.fsdecode(file.read())
    hide(words[0])
    return words[0]


def _variables(assignments: list[str]) -> dict[str, str]:
    for assignment in assignments:
        if not assignment.partition("=")[1]:
            raise ValueError(f"--env takes NAME=VALUE, not {assignment!r}")
    return dict(assignment.split("=", 1) for assignment in assignments)


def _explain(result: Result, *, full: bool) -> None:
    if show_refusal(result):
        return
    lines, screen = [], screen_of(2)
    if full:
        from limpet.render.summary import summary

        line = summary(result)
        if screen is not None and screen.is_coloured:
            line = f"\x1b[{32 if result.ok else 31}m{line}\x1b[0m"
        lines.append(line)
    sandbox = result.sandbox
    has_news = sandbox is not None and (sandbox.denials or sandbox.changed)
    goes_on = result.task_id is not None
    if result.hint and (full or result.is_error or result.survivors or goes_on or has_news):
        from limpet.render.safe import printable

        lines.append(f"limpet: {printable(result.hint)}")
    if lines:
        print_now(2, "\n".join(lines) + "\n")
