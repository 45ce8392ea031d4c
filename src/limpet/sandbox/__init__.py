"""The kernel keeps a command from what its policy does not allow.

ground ─► plan ─► jail (mounts, landlock, capabilities, seccomp) ─► confine, one run's own
   └─► promises ─► probe: what holds here, and by which means
"""

from limpet.sandbox.probe import Probe, probe

__all__ = ["Probe", "probe"]
