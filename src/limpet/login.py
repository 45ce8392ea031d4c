"""The environment of the user's login profile: read once per process, bounded, out of band."""

from __future__ import annotations

import shlex
import threading
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

from limpet.attempt import Attempt, Call
from limpet.context import ToolContext
from limpet.loop import SelectorLoop
from limpet.policy import Policy
from limpet.process import env
from limpet.process.prelude import AnonymousFile
from limpet.process.table import MARKER
from limpet.result import Result

if TYPE_CHECKING:
    import asyncio

LOGIN_TIMEOUT_S = 10.0
"""A profile that takes longer is done without."""
_AT_MOST_BYTES = 4 << 20

_OF_THE_PROFILE_ITSELF = (MARKER, b"PWD", b"OLDPWD", b"SHLVL", b"_")

_known: dict[str, Mapping[bytes, bytes]] = {}
"""By the shell that read it."""
_reading: dict[tuple[int, str], asyncio.Task[None]] = {}
"""By loop and shell: calls that come while the profile is read share the reading."""
_lock = threading.Lock()


async def read(loop: asyncio.AbstractEventLoop, policy: Policy) -> Mapping[bytes, bytes]:
    """Return the profile's environment; the first call of a process reads it."""
    import asyncio

    if policy.shell not in _known:
        key = (id(loop), policy.shell)
        task = _reading.get(key)
        if task is None:
            task = _reading[key] = loop.create_task(_read_on_asyncio(loop, policy))
            task.add_done_callback(lambda _: _reading.pop(key, None))
        # Whoever asked first may be cancelled; the others still want to know.
        await asyncio.shield(task)
    return _known[policy.shell]


async def _read_on_asyncio(loop: asyncio.AbstractEventLoop, policy: Policy) -> None:
    file = AnonymousFile()
    try:
        _keep(policy, await _attempt(policy, file).on_asyncio(loop), file)
    finally:
        file.close()


def read_sync(policy: Policy) -> Mapping[bytes, bytes]:
    """Do the same as `read` without an event loop."""
    with _lock:
        if policy.shell not in _known:
            file = AnonymousFile()
            try:
                _keep(policy, _attempt(policy, file).on_selector(SelectorLoop()), file)
            finally:
                file.close()
    return _known[policy.shell]


def _attempt(policy: Policy, file: AnonymousFile) -> Attempt:
    return Attempt(
        Policy(shell=policy.shell, survivors="kill", timeout_s=LOGIN_TIMEOUT_S),
        f"exec {shlex.quote(policy.shell)} -l -c 'env -0 >|{file.path}'",
        Call(ctx=ToolContext("/")),
    )


def _keep(policy: Policy, result: Result, file: AnonymousFile) -> None:
    entries = file.read(_AT_MOST_BYTES).split(b"\0")
    found = dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)
    if not found:
        warnings.warn(
            f"the login profile could not be read ({result.describe()}):"
            " commands inherit the host's own environment",
            RuntimeWarning,
            stacklevel=2,
        )
        found = dict(env.host_environment())
    for name in _OF_THE_PROFILE_ITSELF:
        found.pop(name, None)
    _known[policy.shell] = found
