"""What the sandbox can promise, as lines of text."""

from __future__ import annotations

import textwrap

from limpet.sandbox.probe import Probe
from limpet.sandbox.promises import Promise

_WIDTH = 96
_GREEN, _YELLOW, _BOLD, _PLAIN = "\x1b[32m", "\x1b[33m", "\x1b[1m", "\x1b[0m"


def doctor_lines(found: Probe, *, is_coloured: bool = False) -> list[str]:
    """Return a report for people."""

    def paint(colour: str, text: str) -> str:
        return f"{colour}{text}{_PLAIN}" if is_coloured else text

    lines = [
        f"kernel            {found.system} {found.kernel}, {found.machine}",
        f"user              {found.user}",
        f"Landlock          {f'ABI {found.landlock_abi}' if found.landlock_abi else 'none'}",
        f"seccomp           {'yes' if found.seccomp else 'no'}",
        f"mount namespace   {'yes' if found.mount_namespace else 'no: needs CAP_SYS_ADMIN'}",
    ]
    if found.needs is not None:
        lines += ["", paint(_YELLOW, f"There is no sandbox here: it needs {found.needs}.")]
        lines += ["Commands run unconfined only with sandbox='off'; the rules still apply."]
    for mode, promises in found.modes.items():
        lines += ["", paint(_BOLD, mode)]
        for promise in promises:
            mark = paint(_GREEN, "  ✓ ") if promise.enforced else paint(_YELLOW, "  ✗ ")
            first, *rest = _wrapped(promise)
            lines += [mark + first, *(f"    {line}" for line in rest)]
    return lines


def _wrapped(promise: Promise) -> list[str]:
    return textwrap.wrap(f"{promise.name}: {promise.by}", _WIDTH)
