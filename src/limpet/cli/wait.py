"""`limpet wait`: until a background task ends, prints a line, is quiet, or listens on a port."""

from __future__ import annotations

import argparse

from limpet.cli.sink import print_now

_EXAMPLES = """\
examples:
  limpet wait bash-k3f9q2                              until it ends
  limpet wait bash-k3f9q2 --until '/listening on/'     until it prints that
  limpet wait bash-k3f9q2 --until port:8000            until it listens there
  limpet wait bash-k3f9q2 --until quiet:2              until it has printed nothing for 2 s
  limpet wait bash-k3f9q2 bash-a81hhc --timeout 60     until one of them ends

It prints what is new, and says on stderr what it came to.

exit status: 0 if what was waited for has happened, 3 if the task has ended before, 124 if the time
was up, 1 if there is no such task.
"""
_ENDED_BEFORE, _TIMED_OUT, _INTERRUPTED = 3, 124, 130


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "wait",
        help="wait for a background task",
        description="Wait until a background task, or the first of several, does something.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("id", nargs="+", metavar="ID")
    parser.add_argument("--until", action="append", default=[], metavar="WHAT",
                        help="exit, quiet:S, /REGEX/ or port:N; the first of several")  # fmt: skip
    parser.add_argument("--timeout", type=float, metavar="S", help="seconds (default: 600)")
    parser.add_argument("--since", type=int, metavar="CURSOR",
                        help="what was printed before is not new")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print what it came to as JSON")
    parser.set_defaults(call=_wait)


def _wait(options: argparse.Namespace) -> int:
    from limpet.tasks.shelf import Shelf
    from limpet.tasks.task import Task, wait_for_sync

    shelf = Shelf.of_this_user()
    tasks = [(Task(shelf, task_id), options.since) for task_id in options.id]
    until = options.until or ["exit"]
    try:
        waited = wait_for_sync(tasks, until, options.timeout)
    except KeyboardInterrupt:
        return _INTERRUPTED
    if options.json:
        import json

        is_read = print_now(1, json.dumps(waited._asdict()) + "\n")
    else:
        is_read = print_now(1, waited.text)
        code = "" if waited.exit_code is None else f", exit {waited.exit_code}"
        match = f" {waited.match!r}" if waited.match else ""
        print_now(2, f"limpet: {waited.task_id}: {waited.matched}{match}: {waited.status}{code}\n")
    if not is_read:
        return 1
    if waited.matched == "timeout":
        return _TIMED_OUT
    return _ENDED_BEFORE if waited.matched == "exit" and "exit" not in until else 0
