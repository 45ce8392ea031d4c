"""What limpet raises, told apart by what the caller does next.

LimpetError
├─ CommandRefused(PermissionError)   change the command
├─ SpawnFailed(OSError)              fix the working directory, the shell or the input
├─ CommandFailed                     read the result
├─ SandboxUnavailable(OSError)       change the machine, or ask for less
├─ TaskNotFound(LookupError)         take one of the ids that the message lists
└─ SettingsError(ValueError)         mend the file

The first three come from `Result.check()` only and carry the whole result: a command that fails is
a `Result`, never an exception. `SandboxUnavailable` is raised before anything runs. `SettingsError`
names a settings file, the line and the key. Values of the wrong type or range are `TypeError` and
`ValueError`, raised before anything starts. Where the task that awaits a call is cancelled, the
call raises its `asyncio.CancelledError`, once all is dead, with the result as its attribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limpet.result import Result


class LimpetError(Exception):
    """The root of what limpet raises."""


class _ResultError(LimpetError):
    def __init__(self, result: Result) -> None:
        super().__init__(result.describe())
        self.result = result

    def __reduce__(self) -> tuple[type[_ResultError], tuple[Result]]:
        # An exception is pickled by its message, and could not be made of that again.
        return type(self), (self.result,)


class CommandRefused(_ResultError, PermissionError):
    """The command was refused before anything ran."""


class SpawnFailed(_ResultError, OSError):
    """The command could not be started."""


class CommandFailed(_ResultError):
    """The command ran and did not end with exit code 0."""


class SandboxUnavailable(LimpetError, OSError):
    """The sandbox that the policy asks for cannot be had here: the message says what it needs."""


class TaskNotFound(LimpetError, LookupError):
    """There is no task of that id: the message lists those that there are."""


class SettingsError(LimpetError, ValueError):
    """A settings file is wrong: the message names the file, the line and the key."""
