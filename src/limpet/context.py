"""What belongs to one conversation and is given to each of its calls."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    import threading
    from pathlib import Path


class _Position:
    """Where the conversation is, once a call has moved it away from `working_dir`."""

    cwd: str | None = None


@dataclass(frozen=True, slots=True)
class ToolContext:
    """One conversation: where it works, how it is cancelled, what it is called."""

    working_dir: str | Path | None = None
    """Where commands start; None is the host's own working directory."""
    cancel: asyncio.Event | threading.Event | None = None
    """Set it to cancel the running calls; a call made while it is set never starts."""
    session_id: str | None = None
    restricted: bool = False
    """It may only look: every command runs read-only and without network, enforced by the kernel,
    whatever the policy says."""
    _position: _Position = field(default_factory=_Position, init=False, repr=False, compare=False)

    @property
    def cwd(self) -> str | None:
        """Where the next call starts: the last call's end if the policy persists it."""
        if self._position.cwd is not None:
            return self._position.cwd
        return None if self.working_dir is None else str(self.working_dir)

    def at(self, directory: str | None) -> ToolContext:
        """Return the same conversation for one call that starts elsewhere.

        Only the start is another: a sandbox's workspace is still where the conversation began.
        """
        if directory is None:
            return self
        here = replace(self)
        path = os.path.expanduser(directory)  # noqa: PTH111 -- a string
        here._position.cwd = os.path.join(self.cwd or "", path)
        return here

    def move(self, start: str | None, end: str | None) -> None:
        """Go to `end`, unless another call has moved the conversation since `start`.

        So two calls at once cannot take the conversation away from each other; `end` None
        leads back to `working_dir`.
        """
        if self.cwd == start:
            self._position.cwd = end
