"""Landlock: which files may be changed or read, and which TCP ports connected to.

Rules only allow, each for everything beneath a directory; what is handled and not allowed fails.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Iterable
from typing import NamedTuple

from limpet.process import kernel
from limpet.process.steps import Step

EXECUTE = 1 << 0
WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_DIR = 1 << 3
REFER = 1 << 13
TRUNCATE = 1 << 14
IOCTL_DEV = 1 << 15
READ = EXECUTE | READ_FILE | READ_DIR
_REMOVE_AND_MAKE = sum(1 << bit for bit in range(4, 13))
_SINCE = {REFER: 2, TRUNCATE: 3, IOCTL_DEV: 5}
"""The version of the ABI that brought a right; the others have always been there."""
_OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
"""Rights that make sense for a file; the kernel refuses the others in a rule for one."""
TRUNCATE_ABI = 3
NET_ABI = 4
_BIND_TCP, _CONNECT_TCP = 1 << 0, 1 << 1
SCOPE_ABI = 6
_SCOPES = 0b11
"""Abstract unix sockets and signals: neither reaches beyond the domain."""

_VERSION = 1
_RULE_PATH, _RULE_PORT = 1, 2


def abi() -> int:
    """Return the version of the kernel's Landlock; 0 if it has none, or it is switched off."""
    if kernel.machine() is None:
        return 0
    try:
        return kernel.call("landlock_create_ruleset", None, 0, _VERSION)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM):
            return 0
        raise


def write_rights(version: int) -> int:
    """Return all rights to change files that a version of the ABI can handle."""
    newer = sum(right for right, since in _SINCE.items() if version >= since)
    return WRITE_FILE | _REMOVE_AND_MAKE | newer


class Rule(NamedTuple):
    """What is allowed of a file, or of everything beneath a directory."""

    path: str
    rights: int
    identity: tuple[int, int] | None = None
    """The device and inode that the path must lead to, without a link on the way."""


class Ruleset:
    """Rules, ready to be put on any number of processes."""

    def __init__(
        self, version: int, rules: Iterable[Rule], *, reads: bool, ports: Iterable[int] | None
    ) -> None:
        """Make the rules of one policy.

        Args:
            version: The kernel's ABI.
            rules: What is allowed. Files that there are not are left out.
            reads: Whether reading needs a rule too.
            ports: TCP ports that may be connected to; None leaves TCP alone.
        """
        self._handled = write_rights(version) | (READ if reads else 0)
        handles_ports = version >= NET_ABI and ports is not None
        fields = [self._handled]
        if version >= NET_ABI:
            fields.append(_BIND_TCP | _CONNECT_TCP if handles_ports else 0)
        if version >= SCOPE_ABI:
            fields.append(_SCOPES)
        attributes = struct.pack(f"={len(fields)}Q", *fields)
        self._fd = kernel.call("landlock_create_ruleset", attributes, len(attributes), 0)
        try:
            for rule in rules:
                self._allow(rule)
            for port in (ports or ()) if handles_ports else ():
                rule_for_port = struct.pack("=QQ", _CONNECT_TCP, port)
                kernel.call("landlock_add_rule", self._fd, _RULE_PORT, rule_for_port, 0)
        except BaseException:
            self.close()
            raise

    def _allow(self, rule: Rule) -> None:
        if rule.identity is not None:
            fd = kernel.open_path(rule.path, rule.identity)
        else:
            try:
                fd = os.open(rule.path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                return  # gone, or in a directory of somebody else's: out of reach anyway
        try:
            is_directory = stat.S_ISDIR(os.fstat(fd).st_mode)
            rights = rule.rights & self._handled & (-1 if is_directory else _OF_A_FILE)
            if rights:
                packed = struct.pack("=Qi", rights, fd)
                kernel.call("landlock_add_rule", self._fd, _RULE_PATH, packed, 0)
        except OSError as error:
            if error.errno != errno.EBADFD:  # a file of the kernel's own, where no rule can be
                raise
        finally:
            os.close(fd)

    def steps(self) -> list[Step]:
        """Return what a child does to put the rules on itself, for ever, and on all it starts."""
        return [("landlock_restrict_self", (self._fd, 0))]

    def close(self) -> None:
        """Give the rules up; who is restricted stays so."""
        os.close(self._fd)
