"""`limpet output`: what a background task has printed, and what it prints from now on."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from limpet.cli.sink import print_now

if TYPE_CHECKING:
    from limpet.tasks.task import Task

_EXAMPLES = """\
examples:
  limpet output bash-k3f9q2                     all of it
  limpet output bash-k3f9q2 -f                  and what follows, until it ends
  limpet output bash-k3f9q2 --last 20
  limpet output bash-k3f9q2 --lines 10:40
  limpet output bash-k3f9q2 --search 'error|warn' --context 2
  limpet output bash-k3f9q2 --since 4096 --json a part, and the cursor of the next
  limpet output bash-k3f9q2 --screen            what its terminal shows

exit status: 0; 1 if there is no such task; 130 when following was interrupted: the task goes on.
"""
_FOLLOW_S = 1.0
_AT_ONCE = 1 << 20
"""So much is shown before Ctrl-C is listened to again."""
_INTERRUPTED = 130
_BROKEN_PIPE = 128 + 13


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "output",
        help="show what a background task has printed",
        description="Show what a background task has printed: clean, while it runs and after.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("id", metavar="ID")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until it ends")
    parser.add_argument("--since", type=int, metavar="CURSOR", help="from here on")
    parser.add_argument("--last", type=int, metavar="N", help="so many lines from the end")
    parser.add_argument("--lines", metavar="A:B", help="from line A to line B, counted from 1")
    parser.add_argument("--search", metavar="REGEX", help="the lines that match, numbered")
    parser.add_argument("--context", type=int, default=0, metavar="N", help="lines around each")
    parser.add_argument("--limit", type=int, metavar="BYTES",
                        help="at most so much (default: all; with --json 30000)")  # fmt: skip
    parser.add_argument("--screen", action="store_true", help="what its terminal shows now")
    parser.add_argument("--json", action="store_true", help="print text, cursor and status as JSON")
    parser.set_defaults(call=_output)


def _output(options: argparse.Namespace) -> int:
    from limpet.tasks.shelf import Shelf
    from limpet.tasks.task import Task

    task = Task(Shelf.of_this_user(), options.id)
    if options.screen:
        return _screen(task, as_json=options.json)
    if options.follow:
        if options.json or options.lines is not None or options.search is not None:
            raise ValueError("--follow takes --since or --last, and no --json")
        return _follow(task, options)
    parts = (options.last, options.lines, options.search, options.limit)
    if options.json or any(part is not None for part in parts):
        return _part(task, options)
    # As much as there is now: more may come faster than it can be shown.
    end = Path(task.output_path).stat().st_size
    return 0 if _print_from(task, options.since or 0, end) is not None else 1


def _part(task: Task, options: argparse.Namespace) -> int:
    from limpet.tasks.reader import LIMIT_BYTES

    cursor = options.since
    parts = (options.last, options.lines, options.search)
    if cursor is None and all(part is None for part in parts):
        cursor = 0
    reading = task.output(
        cursor,
        last=options.last,
        lines=None if options.lines is None else _range(options.lines),
        search=options.search,
        context=options.context,
        limit=LIMIT_BYTES if options.limit is None else options.limit,
    )
    if not options.json:
        return 0 if print_now(1, reading.text) else 1
    import json

    state = task.state()
    end = state.record.end
    values = {
        "id": task.id,
        "text": reading.text,
        "cursor": reading.cursor,
        "more": reading.more,
        "matches": reading.matches,
        "status": state.status.value,
        "exit_code": None if end is None else end.exit_code,
        "output_path": task.output_path,
    }
    return 0 if print_now(1, json.dumps(values) + "\n") else 1


def _range(text: str) -> tuple[int, int]:
    first, colon, last = text.partition(":")
    if not colon or not first.isdecimal() or not (last.isdecimal() or not last):
        raise ValueError(f"--lines takes A:B, as in 10:40, not {text!r}")
    return int(first), int(last) if last else 1 << 62


def _screen(task: Task, *, as_json: bool) -> int:
    screen = task.screen()
    if not as_json:
        return 0 if print_now(1, screen.text) else 1
    import json

    return 0 if print_now(1, json.dumps({"id": task.id, **screen._asdict()}) + "\n") else 1


def _print_from(task: Task, cursor: int, end: int) -> int | None:
    """Print all up to somewhere, and return the next cursor; None if nobody reads it."""
    while True:
        reading = task.output(cursor)
        if not print_now(1, reading.text):
            return None
        cursor = reading.cursor
        if not reading.more or cursor >= end:
            return cursor


def _follow(task: Task, options: argparse.Namespace) -> int:
    from limpet.loop import SelectorLoop
    from limpet.tasks.record import TaskStatus, note_of
    from limpet.tasks.watch import Watch

    loop = SelectorLoop()
    cursor = options.since or 0
    if options.last is not None:
        reading = task.output(last=options.last)
        print_now(1, reading.text)
        cursor = reading.cursor
    is_done = False
    has_ended = False

    def look() -> None:
        nonlocal cursor, has_ended, is_done
        has_ended = task.status is not TaskStatus.RUNNING
        following = _print_from(task, cursor, cursor + _AT_ONCE if not has_ended else 1 << 62)
        is_done = has_ended or following is None
        cursor = following or cursor

    def look_again() -> None:
        look()
        loop.call_later(_FOLLOW_S, look_again)  # of a supervisor that was killed nobody tells

    watch = Watch(loop, [task.directory], look)
    loop.call_later(_FOLLOW_S, look_again)
    try:
        loop.run_until(lambda: is_done)
    except KeyboardInterrupt:
        return _INTERRUPTED
    finally:
        watch.close()
    if not has_ended:
        return _BROKEN_PIPE
    state = task.state()
    with suppress(OSError):
        said = note_of(state.record.end) if state.record.end else f"[limpet: {state.reason}]\n"
        print_now(2, said)
    return 0
