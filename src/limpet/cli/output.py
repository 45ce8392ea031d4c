"""`limpet output`: what a background task has printed, and what it prints from now on."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from limpet.cli.screen import Screen, screen_of, show
from limpet.cli.sink import print_now
from limpet.render.safe import printable

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
    page = _Page(task, None if options.json else screen_of(1))
    if options.screen:
        return _screen(page, as_json=options.json)
    if options.follow:
        if options.json or options.lines is not None or options.search is not None:
            raise ValueError("--follow takes --since or --last, and no --json")
        return _follow(page, options)
    parts = (options.last, options.lines, options.search, options.limit)
    if options.json or any(part is not None for part in parts):
        return _part(page, options)
    # As much as there is now: more may come faster than it can be shown.
    end = Path(task.output_path).stat().st_size
    page.begin()
    if page.print_from(options.since or 0, end) is None:
        return 1
    return page.end()


class _Page:
    """What is shown of a task: on a terminal with a line above and below, else as it is."""

    def __init__(self, task: Task, screen: Screen | None) -> None:
        self.task = task
        self.screen = screen
        self._ends_a_line = True

    def begin(self) -> None:
        """Say which task it is."""
        if self.screen is not None:
            from limpet.render.tasks import output_header

            show(1, self.screen, output_header(self.task.state()))

    def print(self, text: str) -> bool:
        """Print some of its output; False if nobody reads it."""
        if self.screen is not None and text:
            text = printable(text)
            self._ends_a_line = text.endswith("\n")
        return print_now(1, text)

    def print_from(self, cursor: int, end: int) -> int | None:
        """Print all up to somewhere, and return the next cursor; None if nobody reads it."""
        while True:
            reading = self.task.output(cursor)
            if not self.print(reading.text):
                return None
            cursor = reading.cursor
            if not reading.more or cursor >= end:
                return cursor

    def whole(self, text: str) -> int:
        """Print all there is to print, and return the status of the program."""
        self.begin()
        return self.end() if self.print(text) else 1

    def end(self) -> int:
        """Say what the task is doing, and return the status of the program."""
        if self.screen is not None:
            from limpet.render.tasks import output_footer

            print_now(1, "" if self._ends_a_line else "\n")
            show(1, self.screen, output_footer(self.task.state()))
        return 0


def _part(page: _Page, options: argparse.Namespace) -> int:
    from limpet.tasks.reader import LIMIT_BYTES

    task = page.task
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
        return page.whole(reading.text)
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


def _screen(page: _Page, *, as_json: bool) -> int:
    screen = page.task.screen()
    if not as_json:
        return page.whole(screen.text)
    import json

    return 0 if print_now(1, json.dumps({"id": page.task.id, **screen._asdict()}) + "\n") else 1


def _follow(page: _Page, options: argparse.Namespace) -> int:
    from limpet.loop import SelectorLoop
    from limpet.tasks.record import TaskStatus, note_of
    from limpet.tasks.watch import Watch

    loop, task = SelectorLoop(), page.task
    cursor = options.since or 0
    page.begin()
    if options.last is not None:
        reading = task.output(last=options.last)
        page.print(reading.text)
        cursor = reading.cursor
    is_done = False
    has_ended = False

    def look() -> None:
        nonlocal cursor, has_ended, is_done
        has_ended = task.status is not TaskStatus.RUNNING
        following = page.print_from(cursor, cursor + _AT_ONCE if not has_ended else 1 << 62)
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
    if page.screen is not None:
        return page.end()
    state = task.state()
    with suppress(OSError):
        said = note_of(state.record.end) if state.record.end else f"[limpet: {state.reason}]\n"
        print_now(2, said)
    return 0
