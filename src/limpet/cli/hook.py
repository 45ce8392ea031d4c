"""`limpet hook`: limpet's rules as a PreToolUse hook of Claude Code."""

from __future__ import annotations

import argparse
import json
import sys
from typing import get_args

from limpet.policy import Pack
from limpet.verdict import Decision, Verdict

_EXAMPLES = """\
In .claude/settings.json, or in ~/.claude/settings.json for all projects:

  {"hooks": {"PreToolUse": [{
    "matcher": "Bash",
    "hooks": [{"type": "command", "command": "limpet hook", "timeout": 10}]
  }]}}

The rules and permissions are those of limpet.toml where the session works, and of the user's own.

  a rule forbids it     {"hookSpecificOutput": {…, "permissionDecision": "deny", …}}, with what is
                        wrong and what to do instead: Claude reads it, and nothing runs
  it needs approval     "ask": the user is asked, and reads why
  all else              nothing is printed: Claude Code's own permissions decide, as without a hook
  cannot be decided     "ask", with the reason: the event is not JSON that can be read, limpet.toml
                        is wrong … Nothing is blocked by accident, and nothing slips through.

exit status: 0, since Claude Code reads the answer only then; 2, which blocks, if the answer could
not be written or an option is wrong. If limpet itself is not found, Claude Code shows that and
goes on; "onFailure": "block" beside "command" makes newer versions of it block instead.
"""
_EVENT = "PreToolUse"
_BLOCKS = 2
"""What Claude Code takes for a refusal without reading an answer."""
_LONGEST_REASON = 4000


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "hook",
        help="guard Claude Code's Bash tool with these rules",
        description="Answer a PreToolUse event of Claude Code, read from standard input, with the"
        " verdict on its command. Nothing runs.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tool", metavar="NAME", action="append", default=[],
                        help="also a tool of this name, whose input has a command;"
                        " its matcher must name it too")  # fmt: skip
    parser.add_argument("--allow", action="store_true",
                        help="answer `allow` for what no rule speaks against: then Claude Code"
                        " does not ask the user")  # fmt: skip
    parser.add_argument(
        "--rules", choices=get_args(Pack), help="the rules to use (default: limpet.toml's)"
    )
    parser.set_defaults(call=_hook)


def _hook(options: argparse.Namespace) -> int:
    try:
        answer = _answer(options)
    except Exception as error:  # a guard that fails must not let anything pass unseen
        problem = f"{error}" if isinstance(error, ValueError | OSError) else repr(error)
        answer = "ask", f"limpet hook cannot say whether this may run: {problem}"
    return 0 if answer is None else _print(*answer)


def _answer(options: argparse.Namespace) -> tuple[Decision, str] | None:
    """Return the decision and its reason; None to have no opinion."""
    event = _read_event()
    if _text(event, "hook_event_name") != _EVENT:
        return None
    if _text(event, "tool_name") not in ("Bash", *options.tool):
        return None
    command = _text(event.get("tool_input"), "command")
    where = event.get("cwd")
    verdict = _check(command, options.rules, where if isinstance(where, str) else None)
    if verdict.decision != "allow":
        return verdict.decision, verdict.describe()
    return ("allow", "no rule of limpet speaks against it") if options.allow else None


def _check(command: str, pack: Pack | None, directory: str | None) -> Verdict:
    # As `limpet check` does it, but without the modules that run commands: this is waited for
    # before each one, and to load them takes a third of the time.
    from dataclasses import replace

    from limpet import settings
    from limpet.safety.guard import Guard

    policy = settings.load(directory)
    rules = replace(policy.rules, pack=pack) if pack else policy.rules
    return Guard(rules, policy.permissions).check(command)


def _read_event() -> dict[str, object]:
    with open(0, "rb", closefd=False) as file:
        data = file.read()
    try:
        event = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the event is not JSON that can be read: {error}") from None
    if not isinstance(event, dict):
        raise ValueError("the event is not an object")  # noqa: TRY004 -- of the input, not a type
    return event


def _text(holder: object, name: str) -> str:
    value = holder.get(name) if isinstance(holder, dict) else None
    if not isinstance(value, str):
        raise ValueError(f"the event has no {name}")  # noqa: TRY004 -- of the input, not a type
    return value


def _print(decision: Decision, reason: str) -> int:
    from limpet.cli.sink import print_now
    from limpet.render.safe import printable  # the user's terminal shows it

    answer = {
        "hookSpecificOutput": {
            "hookEventName": _EVENT,
            "permissionDecision": decision,
            "permissionDecisionReason": printable(reason)[:_LONGEST_REASON],
        }
    }
    if print_now(1, json.dumps(answer) + "\n"):
        return 0
    print(f"limpet: the answer could not be written: {decision}", file=sys.stderr)
    return _BLOCKS
