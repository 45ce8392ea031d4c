"""What a host asks of its nursery: to start a task, or to take one over."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from limpet.command.display import display
from limpet.handover import Origin
from limpet.launch import Request
from limpet.output.mask import Mask
from limpet.policy import Policy, RulePolicy
from limpet.process.reap import Child
from limpet.process.table import MARKER, NOBODY
from limpet.tasks.input import Size
from limpet.tasks.record import Mark, Record, boot_id

if TYPE_CHECKING:
    from limpet.sandbox.broker import Estate


HELD = b"k"
"""What a supervisor says when it has all that was handed over."""
WITHDRAWN = b"w"
"""What a host says that does not want a task any more."""


class Adopted(NamedTuple):
    """What goes on, for a supervisor that has not started it."""

    task_id: str
    child: Child
    started_at: float
    processes: tuple[Mark, ...]
    told: Mark | None
    """The one whose exit code is that of the task: the shell, or the only survivor."""
    sent: tuple[str, ...]
    """What each descriptor is."""
    masks: tuple[Mask | None, ...]
    """Of each pipe, with what they hold back."""
    estate: Estate | None = None
    """What the host does for a jail, to be done by the supervisor when the host has ended."""
    temp: str | None = None
    """The jail's own temporary directory, to be removed by the last who uses it."""


class Order(NamedTuple):
    """One order. Descriptors travel beside it."""

    shelf: str
    environment: Mapping[bytes, bytes]
    """The host's own."""
    request: Request
    timeout_s: float | None
    origin: Origin
    session_id: str | None
    host: Mark
    has_input: bool = False
    terminal: Size | None = None
    adopted: Adopted | None = None


def describe(order: Order, task_id: str, started_at: float, supervisor: Mark) -> Record:
    """Return the record of a task that begins; its shell is to be added."""
    request = order.request
    columns, rows = order.terminal or (0, 0)
    shown = display(request.command, request.cwd)
    return Record(
        id=task_id,
        command=request.command,
        display=shown if shown != request.command else "",
        description=request.description,
        session_id=order.session_id,
        cwd=request.cwd,
        origin=order.origin,
        run_id="",
        shell=Mark(NOBODY, 0),
        since_ticks=0,
        processes=order.adopted.processes if order.adopted else (),
        supervisor=supervisor,
        boot_id=boot_id(),
        started_at=started_at,
        timeout_s=order.timeout_s,
        kill_grace_s=request.policy.kill_grace_s,
        input="terminal" if order.terminal else "pipe" if order.has_input else "none",
        columns=columns,
        rows=rows,
        sandbox=request.policy.sandbox.mode,
        confinement_id=request.policy.confinement_id(request.workspace),
        host=order.host,
    )


def pack(order: Order, known: Mapping[bytes, bytes]) -> bytes:
    """Return an order as bytes, less what only the host itself can use.

    Args:
        order: To be sent.
        known: The environment that a supervisor has already, which need not be sent again.
    """
    request = order.request
    request = request._replace(
        policy=_plain(request.policy),
        inherited=_unknown(request.inherited, known),
        env=None if request.env is None else dict(request.env),
        verdict=None,
    )
    return pickle.dumps(
        order._replace(request=request, environment=_unknown(order.environment, known))
    )


def _unknown(
    environment: Mapping[bytes, bytes], known: Mapping[bytes, bytes]
) -> dict[bytes, bytes]:
    """Return an environment as it is sent: empty if it is known."""
    unmarked = _unmarked(environment)
    return {} if unmarked == known else unmarked


def pack_environment(environment: Mapping[bytes, bytes]) -> tuple[dict[bytes, bytes], bytes]:
    """Return the environment that supervisors are to know, and the same as bytes."""
    known = _unmarked(environment)
    return known, pickle.dumps(known)


def unpack_environment(data: bytes) -> dict[bytes, bytes]:
    """Return the environment of a host."""
    environment = pickle.loads(data)  # noqa: S301 -- see `unpack`
    assert isinstance(environment, dict)  # noqa: S101 -- for the type checker
    return environment


def _unmarked(environment: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return an environment for a task: it is not a part of whatever run the host belongs to."""
    return {name: value for name, value in environment.items() if name != MARKER}


def unpack(data: bytes, known: Mapping[bytes, bytes]) -> Order:
    """Return the order of a host, which has started us, and is as trusted as we are."""
    order = pickle.loads(data)  # noqa: S301 -- see above
    assert isinstance(order, Order)  # noqa: S101 -- for the type checker
    request = order.request
    if not request.inherited:
        request = request._replace(inherited=known)
    return order._replace(request=request, environment=order.environment or known)


def _plain(policy: Policy) -> Policy:
    """Return a policy without what has been asked already, and what cannot be sent."""
    environment = replace(policy.environment, set=dict(policy.environment.set))
    rules = RulePolicy(pack="none")
    return replace(policy, environment=environment, rules=rules, approve=None)
