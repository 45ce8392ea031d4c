"""`limpet run`: one command, streamed to the terminal or the pipe, with its exit status."""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from limpet.attempt import Call
from limpet.cli import background, confine
from limpet.cli.argv import hide
from limpet.cli.check import PACKS, policy_of
from limpet.cli.sink import Sink, print_now
from limpet.context import ToolContext
from limpet.errors import SandboxUnavailable
from limpet.events import RawEvent, Written
from limpet.loop import SelectorLoop
from limpet.result import Outcome, Result
from limpet.run import Run
from limpet.tool import Bash

if TYPE_CHECKING:
    from limpet.cli.terminal import Terminal

_STATUS = {
    Outcome.BACKGROUNDED: 0,
    Outcome.TIMED_OUT: 124,
    Outcome.FAILED_TO_START: 125,
    Outcome.REFUSED: 126,
    Outcome.CANCELLED: 130,
}
_BROKEN_PIPE = 128 + signal.SIGPIPE
_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

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
    parser.add_argument("--description", metavar="T", help="what the command is for")
    parser.add_argument("--summary", action="store_true", help="say on stderr how it ended")
    parser.set_defaults(call=_run)


def _run(options: argparse.Namespace) -> int:
    command = _command(options)
    if background.is_wanted(options):
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
    door = _Door(on_terminal=on_terminal, quiet=options.json, description=options.description)
    try:
        result = door.run(bash, command, call)
    except SandboxUnavailable as error:
        if not options.json:
            raise
        result = Result(command=command, outcome=Outcome.FAILED_TO_START, hint=str(error))
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
    return _STATUS.get(result.outcome, 125 if result.exit_code is None else result.exit_code)


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
    lines = []
    if full:
        from limpet.render.summary import summary

        line = summary(result)
        if os.isatty(2) and not os.getenv("NO_COLOR"):
            line = f"\x1b[{32 if result.ok else 31}m{line}\x1b[0m"
        lines.append(line)
    sandbox = result.sandbox
    has_news = sandbox is not None and (sandbox.denials or sandbox.changed)
    goes_on = result.task_id is not None
    if result.hint and (full or result.is_error or result.survivors or goes_on or has_news):
        lines.append(f"limpet: {result.hint}")
    if lines:
        print_now(2, "\n".join(lines) + "\n")


class _Door:
    """Drives one run on a loop of its own, between signals, the command and our own streams."""

    def __init__(self, *, on_terminal: bool, quiet: bool, description: str | None) -> None:
        self._loop = SelectorLoop()
        self._results: list[Result] = []
        self._errors: list[Exception] = []
        self._active: Run | None = None
        self._sinks: dict[str, Sink] = {}
        self._terminal: Terminal | None = None
        self._show: Callable[[RawEvent], None] = self._pass_on
        if quiet:
            self._show = lambda _: None
        elif on_terminal:
            from limpet.cli.terminal import Terminal

            self._terminal = Terminal(self._loop, description)
            self._show = self._terminal.show
        else:
            self._sinks = {"stdout": self._sink(1), "stderr": self._sink(2)}

    @property
    def error(self) -> OSError | None:
        """What kept us from writing: whoever read our output is gone, or the disk is full."""
        return next((sink.error for sink in self._sinks.values() if sink.error), None)

    def _sink(self, fd: int) -> Sink:
        return Sink(
            self._loop,
            fd,
            on_full=self._pause,
            on_room=self._resume,
            on_broken=self._cancel,
        )

    def _pause(self) -> None:
        if self._active is not None:
            self._active.pause()

    def _resume(self) -> None:
        if self._active is not None:
            self._active.resume()

    def run(self, bash: Bash, command: str, call: Call) -> Result:
        """Run the command to its end; a signal to this program ends it early."""
        restore = self._on_signals()
        try:
            self._active = bash.launch(
                command, self._loop, self._results.append, self._errors.append, self._show, **call
            )
            self._loop.run_until(self._is_done)
        finally:
            restore()
            if self._terminal is not None:
                self._terminal.close()
        if self._errors:
            raise self._errors[0]
        return self._results[0]

    def _is_done(self) -> bool:
        if self._errors:
            return True
        return bool(self._results) and all(sink.is_idle for sink in self._sinks.values())

    def _cancel(self) -> None:
        if self._active is not None:
            self._active.cancel()

    def _pass_on(self, event: RawEvent) -> None:
        if isinstance(event, Written):
            self._sinks[event.stream].write(event.data)

    def _on_signals(self) -> Callable[[], None]:
        """Cancel the run on a signal, from the loop and not from a handler."""
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        os.set_blocking(read_end, False)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        # What is ignored stays ignored: nohup wants it so.
        numbers = [n for n in _ENDING_SIGNALS if signal.getsignal(n) is not signal.SIG_IGN]
        before = {number: signal.signal(number, lambda *_: None) for number in numbers}

        def wake() -> None:
            with suppress(BlockingIOError):
                os.read(read_end, 64)
            self._cancel()
            # A reader that takes nothing must not keep us from leaving.
            for sink in self._sinks.values():
                sink.give_up()

        self._loop.add_reader(read_end, wake)

        def restore() -> None:
            self._loop.remove_reader(read_end)
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(read_end)
            os.close(write_end)

        return restore
