"""What a model sees: each profile is tools as data, and pure functions over results.

input ─► ask (a value) ─► engine ─► tell ─► Answer        `Toolbox` puts the four together
"""

from __future__ import annotations

import importlib
from typing import Any

from limpet.policy import Policy
from limpet.profiles.answer import Answer
from limpet.profiles.asks import List, Read, Run, Send, Start, Stop, TaskFacts, Wait
from limpet.profiles.input import Input
from limpet.profiles.toolbox import Definition, Profile, Tool, Toolbox

NAMES = ("default", "report", "tasks", "modes", "tail", "streams")

__all__ = [
    "NAMES",
    "Answer",
    "Definition",
    "Input",
    "List",
    "Profile",
    "Read",
    "Run",
    "Send",
    "Start",
    "Stop",
    "TaskFacts",
    "Tool",
    "Toolbox",
    "Wait",
    "profile",
]


def profile(
    which: str | Profile = "default",
    policy: Policy | None = None,
    **options: Any,  # noqa: ANN401 -- each profile has its own
) -> Toolbox:
    """Return the tools of a profile, ready to be offered to a model and called.

    Args:
        which: The name of one, or one of your own.
        policy: What the host decides; the profile sets what it needs on top of it.
        **options: Of the profile: see its module's `build`.

    Raises:
        LookupError: There is no such profile.
        TypeError: It has no such option.
    """
    if isinstance(which, Profile):
        if options:
            raise TypeError(f"a profile of one's own takes no options: {', '.join(options)}")
        return Toolbox(which, policy)
    if which not in NAMES:
        raise LookupError(f"no profile {which!r}; there are: {', '.join(NAMES)}")
    module = importlib.import_module(f"limpet.profiles.{which}")
    return Toolbox(module.build(**options), policy)
