"""One call of `start`: its arguments checked, its command put to the rules, its task begun."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypedDict, cast

from limpet.attempt import Attempt, Call
from limpet.context import ToolContext
from limpet.errors import CommandRefused, SpawnFailed
from limpet.policy import Policy, check_timeout
from limpet.result import Outcome, Result

if TYPE_CHECKING:
    from limpet.tasks.start import Starting

_SIZE = (80, 24)
_ERRORS = {Outcome.REFUSED: CommandRefused}
"""What is raised for a command that never starts: else, if it was cancelled before, SpawnFailed."""


class StartCall(TypedDict, total=False):
    """What `start` takes beside the command."""

    timeout_s: float | None
    """When it is killed; None is never."""
    env: Mapping[str, str] | None
    """Added to the environment, over everything else."""
    stdin: str | bytes | int | None
    """What it reads; True lets `Task.send` type into it; None is the empty /dev/null."""
    description: str | None
    """What it is for, kept in its record."""
    ctx: ToolContext | None
    """The conversation that it belongs to."""
    pty: bool
    """Give it a terminal, which `Task.send` types into and `Task.screen` shows."""
    size: tuple[int, int]
    """The terminal's columns and rows."""


def prepare(
    policy: Policy, command: str, call: StartCall
) -> tuple[Attempt, Callable[[], Starting]]:
    """Return the attempt, to be put to the rules, and what then starts the task.

    Raises:
        TypeError: An argument is of the wrong type.
        ValueError: An argument is out of range.
    """
    from limpet.tasks.input import check_size
    from limpet.tasks.start import Starting  # slow to import, for a start only

    if unknown := call.keys() - StartCall.__annotations__.keys():
        raise TypeError(f"no such argument: {', '.join(sorted(unknown))}")
    given = dict(call)
    pty, size = given.pop("pty", False), check_size(given.pop("size", _SIZE))
    has_input = given.get("stdin") is True
    if has_input or pty:
        if given.get("stdin") not in (None, True):
            raise ValueError("a task with a terminal reads from that: send() what it is to read")
        given["stdin"] = None
    limit_s = given.pop("timeout_s", None)
    timeout_s = None if limit_s is None else check_timeout(limit_s)  # type: ignore[arg-type]
    attempt = Attempt(policy, command, cast("Call", given))

    def begin() -> Starting:
        request = attempt.for_task()
        if isinstance(request, Result):
            raise _ERRORS.get(request.outcome, SpawnFailed)(request)
        return Starting(
            request,
            timeout_s=timeout_s,
            session_id=attempt.session_id,
            has_input=has_input,
            terminal=size if pty else None,
        )

    return attempt, begin
