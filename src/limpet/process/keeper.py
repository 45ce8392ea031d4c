"""A process that reads on from a pipe whose writers outlive their run.

Without a reader they would die of SIGPIPE; with one in this program, they would die with it.
"""

from __future__ import annotations

import os

from limpet.policy import Policy
from limpet.process import spawn

# The file size limit caps the log without touching what the survivors themselves may write. At the
# cap the first cat is killed, and the second goes on reading so that nobody else is. The outer
# shell leaves at once, so that there is no child to reap later. `<&0` is not idle: without it the
# shell would give a background job /dev/null to read.
_KEEP = '{ (ulimit -f "$1"; exec cat) 2>/dev/null; exec cat >/dev/null; } <&0 &'


def keep_draining(pipe: int, log: int | None, policy: Policy) -> None:
    """Copy from a pipe to a log, up to the policy's cap, for as long as anyone writes to it.

    Args:
        pipe: The read end; the caller may close its own descriptor afterwards.
        log: Where to append; None drops what is read.
        policy: The shell to use and the cap.
    """
    shell = spawn.find_shell(policy.shell)
    if shell is None:
        return
    os.set_blocking(pipe, True)
    blocks = str(policy.output.spill_bytes // 1024).encode()
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        pid = spawn.start(
            shell,
            [b"bash", b"-c", _KEEP.encode(), b"limpet-keeper", blocks],
            environment={b"PATH": os.fsencode(os.defpath)},
            cwd="/",
            stdin=pipe,
            stdout=null if log is None else log,
            stderr=null,
        )
        os.waitpid(pid, 0)
    except OSError:
        # Out of processes: the survivors lose their reader, as they would without limpet.
        return
    finally:
        os.close(null)
