"""A process that reads on from a pipe whose writers outlive their run.

Without a reader they would die of SIGPIPE; with one in this program, they would die with it.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress

from limpet.policy import Policy
from limpet.process import spawn
from limpet.process.prelude import AnonymousFile
from limpet.process.reap import reap_orphans
from limpet.process.table import look_up

# The file size limit caps the log without touching what the survivors themselves may write. At the
# cap the first cat is killed, and the second goes on reading so that nobody else is. The outer
# shell leaves at once, so that there is no child to reap later, and says who stays. `<&0` is not
# idle: without it the shell would give a background job /dev/null to read.
_KEEP = '{ (ulimit -f "$1"; exec cat) 2>/dev/null; exec cat >/dev/null; } <&0 & echo $! >&2'


def keep_draining(pipe: int, log: int | None, policy: Policy) -> None:
    """Copy from a pipe to a log, up to the policy's cap, for as long as anyone writes to it.

    Args:
        pipe: The read end; the caller may close its own descriptor afterwards.
        log: Where to append; None drops what is read.
        policy: The shell to use and the cap.
    """
    shell = spawn.find_program(policy.shell)
    # Out of processes or descriptors: the survivors lose their reader, as without limpet.
    with ExitStack() as opened, suppress(OSError):
        os.set_blocking(pipe, True)
        null = os.open(os.devnull, os.O_WRONLY)
        opened.callback(os.close, null)
        said = AnonymousFile()
        opened.callback(said.close)
        blocks = b"%d" % (policy.output.spill_bytes // 1024)
        pid = spawn.start(
            shell or policy.shell,
            [b"bash", b"-c", _KEEP.encode(), b"limpet-keeper", blocks],
            environment=[b"PATH=" + os.fsencode(os.defpath)],
            cwd="/",
            stdin=pipe,
            stdout=null if log is None else log,
            stderr=said.fd,
        )
        os.waitpid(pid, 0)
        keeper = look_up(int(said.read() or 0))
        if keeper is not None:
            reap_orphans(pid, [keeper])
