"""`limpet stop`: end a background task, with all that it has started."""

from __future__ import annotations

import argparse

from limpet.cli.sink import print_now

_EXAMPLES = """\
examples:
  limpet stop bash-k3f9q2
  limpet stop bash-k3f9q2 bash-a81hhc --json

To stop a task that has ended does nothing, and says so.

exit status: 0; 1 if there is no such task, or it could not be ended.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "stop",
        help="end a background task",
        description="End background tasks: SIGTERM to all that each has started, a moment to clean"
        " up, then SIGKILL.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("id", nargs="+", metavar="ID")
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")
    parser.set_defaults(call=_stop)


def _stop(options: argparse.Namespace) -> int:
    from limpet.tasks.record import TaskStatus
    from limpet.tasks.shelf import Shelf
    from limpet.tasks.task import Task, stop_all_sync

    shelf = Shelf.of_this_user()
    tasks = [Task(shelf, task_id) for task_id in options.id]
    stopped = stop_all_sync(tasks)
    if options.json:
        import json

        rows = [one._asdict() for one in stopped]
        print_now(1, json.dumps(rows[0] if len(rows) == 1 else rows) + "\n")
    else:
        print_now(1, "".join(f"{one.task_id}: {one.status}: {one.what}\n" for one in stopped))
    return 1 if any(one.status is TaskStatus.RUNNING for one in stopped) else 0
