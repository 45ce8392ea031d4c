"""`limpet send`: type into a background task."""

from __future__ import annotations

import argparse
import os

from limpet.cli.sink import print_now

_EXAMPLES = """\
examples:
  limpet send bash-k3f9q2 yes               a line: the newline is added
  limpet send bash-k3f9q2 -n 'half a '      without it
  limpet send bash-k3f9q2 --key ctrl-c      a key: ctrl-a to ctrl-z, enter, tab, esc, up, down …
  limpet send bash-k3f9q2 --eof             the end of its input
  limpet send bash-k3f9q2 - < answers.txt   what standard input has

The task must have been started with --interactive or --pty.

exit status: 0; 1 if there is no such task, or it takes no input.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "send",
        help="type into a background task",
        description="Type text, a key, or the end of the input into a background task.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("id", metavar="ID")
    parser.add_argument("text", nargs="?", metavar="TEXT", help="or - for standard input")
    parser.add_argument("-n", "--no-newline", metavar="TEXT", help="text as it is")
    parser.add_argument("--key", metavar="NAME", help="after the text")
    parser.add_argument("--eof", action="store_true", help="after all of that")
    parser.add_argument("--json", action="store_true", help="print what was sent as JSON")
    parser.set_defaults(call=_send)


def _send(options: argparse.Namespace) -> int:
    from limpet.tasks.shelf import Shelf
    from limpet.tasks.task import Task

    task = Task(Shelf.of_this_user(), options.id)
    texts = [text for text in (options.text, options.no_newline) if text is not None]
    if len(texts) > 1:
        raise ValueError("give the text once: after -n, or without it")
    if not texts and options.key is None and not options.eof:
        raise ValueError("nothing to send: give TEXT, --key or --eof")
    text = _text(options)
    try:
        task.send_sync(text, key=options.key, eof=options.eof)
    except ValueError as error:
        if "no such key" in str(error):
            raise
        print_now(2, f"limpet: {error}\n")
        return 1
    if options.json:
        import json

        sent = {"id": task.id, "bytes": len(text), "key": options.key, "eof": options.eof}
        print_now(1, json.dumps(sent) + "\n")
    return 0


def _text(options: argparse.Namespace) -> bytes:
    if options.no_newline is not None:
        return os.fsencode(options.no_newline)
    if options.text is None:
        return b""
    if options.text == "-":
        with open(0, "rb", closefd=False) as file:
            return file.read()
    text = os.fsencode(options.text)
    return text if text.endswith(b"\n") else text + b"\n"
