"""`limpet check`: what the rules say of a command, without running it."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace

from limpet.cli.argv import hide
from limpet.cli.screen import screen_of, show
from limpet.cli.sink import print_now
from limpet.policy import Policy
from limpet.tool import Bash
from limpet.verdict import Verdict

_EXAMPLES = """\
examples:
  limpet check 'git add -A && git push -f'     what is wrong with it, and what to do instead
  limpet check --json 'rm -rf build'           {"decision": "allow", "findings": []}
  limpet check --jsonl < commands.jsonl        a line {"command": …} each, a line of answer each
  limpet check --rules strict 'ls; pwd'        with another set of rules
  limpet check - < script.sh                   read the command from standard input

exit status: 0 allowed, 1 refused, 3 needs approval; with --json and --jsonl 0, the answer says it.
"""
_STATUS = {"allow": 0, "deny": 1, "ask": 3}
PACKS = ("default", "strict", "none")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "check",
        help="say whether a command would be refused, and why",
        description="Check a shell command against the rules and permissions. Nothing runs.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="one quoted argument, or -")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the verdict as JSON")
    form.add_argument("--jsonl", action="store_true", help="answer lines of JSON, one by one")
    parser.add_argument("--rules", choices=PACKS, help="the rules to use (default: limpet.toml's)")
    parser.set_defaults(call=_check)


def _check(options: argparse.Namespace) -> int:
    bash = Bash(policy_of(options))
    if options.jsonl:
        if options.command:
            raise ValueError("--jsonl reads commands from standard input, and takes none")
        return _answer_lines(bash)
    verdict = bash.check(_command(options.command))
    if options.json:
        import json

        return 0 if print_now(1, json.dumps(verdict.to_dict()) + "\n") else 1
    return _show(verdict)


def policy_of(options: argparse.Namespace, directory: str | None = None) -> Policy:
    """Return the settings' policy, with the rules that the command line names."""
    from limpet import settings

    policy = settings.load(directory)
    if options.rules:
        policy = replace(policy, rules=replace(policy.rules, pack=options.rules))
    return policy


def _command(words: list[str]) -> str:
    if not words:
        raise ValueError("no command: limpet check 'git status'")
    if len(words) > 1:
        raise ValueError(f"the command is one argument: quote it: limpet check '{' '.join(words)}'")
    if words == ["-"]:
        with open(0, "rb", closefd=False) as file:
            return os.fsdecode(file.read())
    hide(words[0])
    return words[0]


def _show(verdict: Verdict) -> int:
    from limpet.render.verdict import verdict_lines, verdict_view

    screen = screen_of(1)
    if screen is not None:
        is_seen = show(1, screen, verdict_view(verdict))
    else:
        is_seen = print_now(1, "\n".join(verdict_lines(verdict)) + "\n")
    return _STATUS[verdict.decision] if is_seen else 1


def _answer_lines(bash: Bash) -> int:
    """Answer each line as it comes; one that cannot be read is answered with an error."""
    import json

    status = 0
    with open(0, "rb", closefd=False) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                answer = bash.check(_command_in(json.loads(line))).to_dict()
            except ValueError as error:
                answer = {"error": f"line {number}: {error}"}
                print(f"limpet: line {number}: {error}", file=sys.stderr)
                status = 2
            if not print_now(1, json.dumps(answer) + "\n"):
                return 1
    return status


def _command_in(row: object) -> str:
    command = row.get("command") if isinstance(row, dict) else None
    if not isinstance(command, str):
        raise ValueError('not of the form {"command": "…"}')  # noqa: TRY004 -- of the line, not a type
    return command
