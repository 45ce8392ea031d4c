"""Keep the command out of this program's own argument list."""

from __future__ import annotations

import os
from contextlib import suppress

_ARG_START_FIELD = 47
"""Of /proc/<pid>/stat, counted from 0: where in memory the arguments lie."""


def hide(argument: str) -> None:
    """Blank an argument as other programs see it.

    A command such as `pkill -f server` looks through all argument lists for its pattern, and would
    find it in ours. Where there is no /proc nothing is hidden.
    """
    with suppress(OSError):
        with open("/proc/self/cmdline", "rb") as file:
            arguments = file.read()
        with open("/proc/self/stat", "rb") as file:
            start = int(file.read().rpartition(b")")[2].split()[_ARG_START_FIELD - 2])
        wanted = b"\0" + os.fsencode(argument) + b"\0"
        place = arguments.rfind(wanted)
        if place >= 0 and argument:
            with open("/proc/self/mem", "r+b", buffering=0) as memory:
                memory.seek(start + place + 1)
                memory.write(b" " * (len(wanted) - 2))
