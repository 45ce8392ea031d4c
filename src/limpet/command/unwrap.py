"""What a command runs besides itself: the words after `sudo`, the script of `bash -c`, and more."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from limpet.command.fanout import find, parallel, xargs
from limpet.command.inner import Inner
from limpet.command.model import Command
from limpet.command.scripts import SHELLS, evaluate, shell, source, ssh, su, trap, watch
from limpet.command.wrappers import (
    KEYWORDS,
    RUNNERS,
    WRAPPERS,
    env,
    flock,
    git,
    keyword,
    runner,
    sudo,
)


def unwrap(command: Command) -> Sequence[Inner]:
    """Return what a command runs besides itself."""
    unwrapper = UNWRAPPERS.get(command.name)
    return () if unwrapper is None else unwrapper(command)


def runs_others(name: str) -> bool:
    """Tell whether a program of this name may run others."""
    return name.rpartition("/")[2] in UNWRAPPERS


UNWRAPPERS: dict[str, Callable[[Command], list[Inner]]] = {
    **{name: wrapper.unwrap for name, wrapper in WRAPPERS.items()},
    **dict.fromkeys(SHELLS, shell),
    **dict.fromkeys(RUNNERS, runner),
    **dict.fromkeys(KEYWORDS, keyword),
    "sudo": sudo,
    "env": env,
    "eval": evaluate,
    "source": source,
    ".": source,
    "trap": trap,
    "su": su,
    "runuser": su,
    "script": su,
    "flock": flock,
    "ssh": ssh,
    "watch": watch,
    "xargs": xargs,
    "gxargs": xargs,
    "parallel": parallel,
    "find": find,
    "gfind": find,
    "git": git,
}
