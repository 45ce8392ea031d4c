"""What a run leaves behind when its call is over, for a background task to take up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

from limpet.launch import Launched, Request
from limpet.process.table import Process

if TYPE_CHECKING:
    from limpet.output.capture import Pipe
    from limpet.output.spill import CappedFile

Origin = Literal["started", "promoted", "survivors"]
"""How a task began: as one, as a call that reached its time limit, or as what a call left."""


class Handover(NamedTuple):
    """Everything that has to go on."""

    origin: Origin
    request: Request
    launched: Launched
    processes: tuple[Process, ...]
    """Those that are alive; of a promoted run its shell is the first."""
    pipes: tuple[Pipe, ...]
    """What they write to, as far as it was not read; the caller closes its own descriptors."""
    log: CappedFile
    """Holds all that was read."""


Adopt = Callable[[Handover], str]
"""Makes a task of it and returns its id; OSError if it cannot, and then nothing has changed."""
