"""Which background tasks a conversation may see, and which it may touch."""

from __future__ import annotations

from collections.abc import Iterator

from limpet.attempt import workspace_of
from limpet.context import ToolContext
from limpet.errors import TaskNotFound
from limpet.tasks.record import State
from limpet.tasks.task import Task
from limpet.tool import Bash

_MOST_NAMED = 20


class OutOfReach(ValueError):
    """A conversation may not touch a task: the message says why."""


def visible(bash: Bash, ctx: ToolContext) -> Iterator[tuple[Task, State]]:
    """Yield the tasks that a conversation may see, the latest first: its own, if it has a name."""
    for task in bash.tasks():
        try:
            state = task.state()
        except OSError:  # removed by another program at this moment
            continue
        if _is_visible(state, ctx):
            yield task, state


def find(bash: Bash, ctx: ToolContext, task_id: str) -> Task:
    """Return a task that a conversation may see.

    Raises:
        TaskNotFound: There is none; the message lists those that it may see.
    """
    try:
        task = bash.task(task_id)
        if _is_visible(task.state(), ctx):
            return task
    except (TaskNotFound, OSError):
        pass  # the message below names no task of others
    ids = [task.id for task, _ in visible(bash, ctx)]
    named = ", ".join(ids[:_MOST_NAMED]) + (" …" if len(ids) > _MOST_NAMED else "")
    raise TaskNotFound(f"no task {task_id!r}; there {f'are: {named}' if ids else 'are none'}")


def find_to_touch(bash: Bash, ctx: ToolContext, task_id: str) -> Task:
    """Return a task that a conversation may type into and stop.

    What can reach more than the conversation itself would be a way out of its sandbox.

    Raises:
        OutOfReach: It is confined otherwise.
        TaskNotFound: There is none that it may see.
    """
    task = find(bash, ctx, task_id)
    policy = bash.policy.restricted() if ctx.restricted else bash.policy
    own = policy.confinement_id(workspace_of(ctx))
    if own not in ("", task.state().record.confinement_id):
        raise OutOfReach(
            f"{task_id} was not started in the {policy.sandbox.mode} sandbox of this conversation:"
            " it can be read and waited for, not typed into or stopped"
        )
    return task


def _is_visible(state: State, ctx: ToolContext) -> bool:
    return ctx.session_id is None or state.record.session_id == str(ctx.session_id)
