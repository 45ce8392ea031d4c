"""`limpet call`: what a model's call of a tool returns."""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from limpet.cli import confine
from limpet.cli.argv import hide
from limpet.cli.check import PACKS, policy_of
from limpet.cli.profiled import add_profile, conversation, toolbox
from limpet.cli.sink import print_now

_EXAMPLES = """\
examples:
  limpet call '{"command": "ls"}'
  limpet call --profile modes '{"command": "make", "mode": "slow"}'
  limpet call --profile default --tool bash_output '{"task": "bash-k3f9q2"}'
  limpet call --profile modes --restricted '{"command": "touch x"}'
  limpet call - < arguments.json

It prints {"text": …, "is_error": …, "data": …}: `text` is what the model reads. Wrong arguments
are an answer too, with is_error.

exit status: 0 when there is an answer; 2 if there is no such profile or tool; 130 interrupted.
"""
_INTERRUPTED = 130


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "call",
        help="call a tool of a profile as a model would",
        description="Call a tool as a model would, and print what it would read.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("arguments", metavar="JSON", help="the tool's arguments, or -")
    add_profile(parser)
    parser.add_argument("--tool", metavar="NAME", help="which tool (default: the one that runs)")
    parser.add_argument("--session", metavar="ID",
                        help="the conversation: it sees its own tasks")  # fmt: skip
    parser.add_argument("--text", action="store_true", help="print only what the model reads")
    parser.add_argument("--rules", choices=PACKS,
                        help="which commands to refuse (default: limpet.toml's)")  # fmt: skip
    confine.add_arguments(parser)
    parser.set_defaults(call=_call)


def _call(options: argparse.Namespace) -> int:
    import json

    arguments = _arguments(options.arguments)
    box = toolbox(options, confine.confined(policy_of(options, options.cwd), options))
    try:
        with _ending_signals():
            answer = box.call_sync(arguments, conversation(options), tool=options.tool)
    except LookupError as error:
        raise ValueError(error.args[0]) from None
    except KeyboardInterrupt:
        return _INTERRUPTED
    finally:
        box.keep()  # whoever reads the answer may want to read the file that it names
    text = f"{answer.text}\n" if options.text else json.dumps(answer.to_dict()) + "\n"
    return 0 if print_now(1, text) else 1


@contextmanager
def _ending_signals() -> Iterator[None]:
    """End like on Ctrl-C when told to end: what runs must not be left behind."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    # What is ignored stays ignored: nohup wants it so.
    numbers = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _arguments(given: str) -> str:
    if given != "-":
        hide(given)
        return given
    with open(0, "rb", closefd=False) as file:
        return os.fsdecode(file.read())
