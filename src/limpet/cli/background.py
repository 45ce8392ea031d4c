"""`limpet run --background`: start a task and leave it to itself."""

from __future__ import annotations

import argparse

from limpet.cli.screen import screen_of, show, show_refusal
from limpet.cli.sink import print_now
from limpet.context import ToolContext
from limpet.errors import CommandRefused, SandboxUnavailable, SpawnFailed
from limpet.policy import Policy
from limpet.result import Outcome, Result
from limpet.starting import StartCall

_REFUSED, _COULD_NOT_START = 126, 125


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that make a task of a command."""
    group = parser.add_argument_group("as a background task")
    group.add_argument("--background", action="store_true",
                       help="start it, print its id, and leave it running")  # fmt: skip
    group.add_argument("--interactive", action="store_true",
                       help="it reads what `limpet send` types")  # fmt: skip
    group.add_argument("--pty", action="store_true",
                       help="it has a terminal, for `send` and `output --screen`")  # fmt: skip
    group.add_argument("--size", metavar="COLSxROWS", help="of its terminal (default: 80x24)")


def is_wanted(options: argparse.Namespace) -> bool:
    """True if the command is to become a task; ValueError if something else needs that."""
    if not options.background and (options.interactive or options.pty):
        raise ValueError("--interactive and --pty need --background")
    if options.size is not None and not options.pty:
        raise ValueError("--size needs --pty")
    return bool(options.background)


def start(
    policy: Policy, command: str, variables: dict[str, str], options: argparse.Namespace
) -> int:
    """Start the task and print its id, or why there is none."""
    from limpet.tool import Bash

    call = StartCall(
        timeout_s=options.timeout,
        env=variables,
        stdin=True if options.interactive else 0 if options.stdin else None,
        description=options.description,
        ctx=ToolContext(options.cwd),
        pty=options.pty,
    )
    if options.size is not None:
        call["size"] = _size(options.size)
    try:
        task = Bash(policy).start_sync(command, **call)
    except (CommandRefused, SpawnFailed) as error:
        return _explain(error.result, as_json=options.json)
    except SandboxUnavailable as error:
        result = Result(command=command, outcome=Outcome.FAILED_TO_START, hint=str(error))
        return _explain(result, as_json=options.json)
    record = task.to_dict()
    if options.json:
        import json

        result = Result(
            command=command,
            display=record["display"],
            description=options.description,
            outcome=Outcome.BACKGROUNDED,
            cwd=record["cwd"],
            task_id=task.id,
            spill_path=task.output_path,
            hint=f"runs as task {task.id}; its output is in {task.output_path}",
        )
        values = result.to_dict() | {"task": record}
        return 0 if print_now(1, json.dumps(values) + "\n") else 1
    if (screen := screen_of(1)) is not None:
        from limpet.render.boxes import background_started

        box = background_started(task.id, record["display"], task.output_path)
        return 0 if show(1, screen, box) else 1
    print_now(
        2,
        f"limpet: runs as {task.id} (pid {record['pid']}); output in {task.output_path}\n"
        f"limpet: read it with `limpet output {task.id}`, end it with `limpet stop {task.id}`\n",
    )
    return 0 if print_now(1, f"{task.id}\n") else 1


def _size(text: str) -> tuple[int, int]:
    columns, cross, rows = text.partition("x")
    if not cross or not columns.isdecimal() or not rows.isdecimal():
        raise ValueError(f"--size takes COLSxROWS, as in 120x40, not {text!r}")
    return int(columns), int(rows)


def _explain(result: Result, *, as_json: bool) -> int:
    if as_json:
        import json

        print_now(1, json.dumps(result.to_dict()) + "\n")
    elif not show_refusal(result):
        from limpet.render.safe import printable

        print_now(2, f"limpet: {printable(result.hint or '')}\n")
    return _REFUSED if result.outcome is Outcome.REFUSED else _COULD_NOT_START
