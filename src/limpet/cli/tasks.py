"""`limpet tasks`: the background tasks of this user, and how to be rid of those that have ended."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from limpet.cli.screen import screen_of, show
from limpet.cli.sink import print_now

if TYPE_CHECKING:
    from limpet.tasks.shelf import Shelf

_EXAMPLES = """\
examples:
  limpet tasks                        all, the latest first
  limpet tasks --status running
  limpet tasks --json | jq '.[].id'
  limpet tasks --prune                remove all that have ended
  limpet tasks --prune --days 1       only those that ended longer ago

exit status: 0.
"""
_STATUSES = ("running", "exited", "signaled", "stopped", "timed_out", "lost")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "tasks",
        help="list background tasks",
        description="List background tasks, with age, status and last line. Those that have ended"
        " are kept for a week, 5000 at most; limpet.toml can say otherwise.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print a list of records as JSON")
    parser.add_argument("--status", choices=_STATUSES, help="only those of this status")
    parser.add_argument("--prune", action="store_true", help="remove those that have ended")
    parser.add_argument("--days", type=float, metavar="N",
                        help="with --prune: only those that ended longer ago")  # fmt: skip
    parser.add_argument("--keep", type=int, metavar="N",
                        help="with --prune: but for the latest so many")  # fmt: skip
    parser.set_defaults(call=_tasks)


def _tasks(options: argparse.Namespace) -> int:
    from limpet.tasks.shelf import Shelf

    shelf = Shelf.of_this_user()
    if options.prune:
        return _prune(shelf, options)
    if options.days is not None or options.keep is not None:
        raise ValueError("--days and --keep need --prune")
    from limpet.tasks import reader, record

    found = [one for one in shelf.states() if options.status in (None, one.status)]
    paths = [f"{shelf.path}/{one.record.id}/{record.OUTPUT}" for one in found]
    lines = [
        one.record.end.last_line if one.record.end else reader.last_line(path)
        for one, path in zip(found, paths, strict=True)
    ]
    if options.json:
        import json

        rows = [
            record.to_dict(one, path) | {"last_line": line}
            for one, path, line in zip(found, paths, lines, strict=True)
        ]
        return 0 if print_now(1, json.dumps(rows) + "\n") else 1
    from limpet.render.tasks import TaskTable, row_of, task_lines

    now_s = time.time()
    shown = [row_of(one, line, now_s) for one, line in zip(found, lines, strict=True)]
    if not shown:
        return 0 if print_now(2, "limpet: there are no tasks\n") else 1
    if (screen := screen_of(1)) is not None:
        return 0 if show(1, screen, TaskTable(shown)) else 1
    return 0 if print_now(1, "\n".join(task_lines(shown)) + "\n") else 1


def _prune(shelf: Shelf, options: argparse.Namespace) -> int:
    days = 0.0 if options.days is None else options.days
    keep = (0 if options.days is None else 1 << 62) if options.keep is None else options.keep
    if days < 0 or keep < 0:
        raise ValueError("--days and --keep take 0 or more")
    if options.days is None and options.keep is not None:
        days = 1e6  # by number alone
    removed = shelf.prune(days, keep)
    if options.json:
        import json

        return 0 if print_now(1, json.dumps({"removed": removed}) + "\n") else 1
    what = "1 task" if len(removed) == 1 else f"{len(removed)} tasks"
    return 0 if print_now(1, f"removed {what}\n") else 1
