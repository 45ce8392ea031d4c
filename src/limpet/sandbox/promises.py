"""What a sandbox promises, and for each promise what keeps it here, or why nothing does."""

from __future__ import annotations

import functools
from typing import NamedTuple

from limpet.confinement import LimitPolicy, SandboxPolicy
from limpet.process import kernel, steps
from limpet.sandbox import ground as facts
from limpet.sandbox import landlock
from limpet.sandbox.ground import Ground
from limpet.sandbox.limited import size

_SCOPE_NEEDS = f"needs Landlock ABI {landlock.SCOPE_ABI} (Linux 6.12)"


class Promise(NamedTuple):
    """One thing that a sandbox keeps a command from."""

    name: str
    enforced: bool
    by: str
    """The means; or, where it is not enforced, the reason."""

    def __str__(self) -> str:
        return f"{self.name}: {self.by}"


def missing(sandbox: SandboxPolicy, ground: Ground) -> str | None:
    """Return what keeps a sandbox from being had at all; None if it can be."""
    if kernel.machine() is None:
        return "a 64-bit x86_64 or aarch64 machine, whose system calls are known here"
    if not steps.can_be_made():
        return "executable memory of an anonymous file (vm.memfd_noexec below 2)"
    if not ground.abi:
        return (
            "Landlock, which needs Linux 5.13 or newer, built with CONFIG_SECURITY_LANDLOCK, and"
            " `landlock` in the kernel's list of security modules (boot parameter lsm=)"
        )
    if not ground.has_seccomp:
        return "seccomp filters (CONFIG_SECCOMP_FILTER), on x86_64 or aarch64"
    if sandbox.ports and ground.abi < landlock.NET_ABI:
        return f"Landlock ABI {landlock.NET_ABI} (Linux 6.7) to open single ports"
    return None


@functools.lru_cache(maxsize=64)
def promises(
    sandbox: SandboxPolicy, limits: LimitPolicy | None, ground: Ground
) -> tuple[Promise, ...]:
    """Return what holds of a policy on a kernel."""
    return (
        *_files(sandbox, ground),
        *_network(sandbox, ground),
        *_processes(ground),
        *_limits(limits, ground),
    )


def _files(sandbox: SandboxPolicy, ground: Ground) -> list[Promise]:
    where = "anywhere" if sandbox.mode == "read-only" else "outside the workspace"
    view = " and a mount namespace" if ground.can_mount else ""
    truncation = "" if ground.abi >= 3 else " and seccomp"
    found = [
        Promise(f"files {where} are not written, made, renamed or removed", True,
                f"Landlock{view}{truncation}")
        if ground.abi else
        Promise(f"files {where} are not written, made, renamed or removed", ground.can_mount,
                "a mount namespace" if ground.can_mount else "needs Landlock (Linux 5.13)")
    ]  # fmt: skip
    found.append(_metadata(sandbox, ground))
    if sandbox.mode == "workspace":
        found.append(
            Promise("protected files inside the workspace are not changed", ground.can_mount,
                    "a mount namespace, for those that there are; new ones are reported"
                    if ground.can_mount else
                    "changes are detected after the run and reported: Landlock cannot forbid them,"
                    " and a mount namespace needs CAP_SYS_ADMIN")
        )  # fmt: skip
    if sandbox.hide:
        by = "a mount namespace" if ground.can_mount else "Landlock"
        can = bool(ground.can_mount or ground.abi)
        found.append(Promise("hidden places are not read", can, by if can else "needs Landlock"))
    return found


def _metadata(sandbox: SandboxPolicy, ground: Ground) -> Promise:
    if sandbox.mode == "read-only":
        name = "modes, owners, times and attributes of files are not changed"
        return Promise(name, ground.has_seccomp or ground.can_mount,
                       "seccomp" if ground.has_seccomp else "a mount namespace"
                       if ground.can_mount else "needs seccomp")  # fmt: skip
    name = "modes, owners, times and attributes of files outside the workspace are not changed"
    if ground.can_mount:
        return Promise(name, True, "a mount namespace")
    return Promise(name, ground.has_broker, "seccomp and a broker" if ground.has_broker else
                   "owners and attributes are not (seccomp); modes and times need a broker, which"
                   " there cannot be inside another sandbox that has one")  # fmt: skip


def _network(sandbox: SandboxPolicy, ground: Ground) -> list[Promise]:
    by = "seccomp" if ground.has_seccomp else "needs seccomp"
    if ground.own_network and sandbox.loopback:
        by += " and a network namespace"
    unix = Promise("no connection to unix sockets outside", ground.has_seccomp,
                   "seccomp and a broker" if ground.has_broker else by)  # fmt: skip
    if sandbox.network:
        # Which socket a connection is of, seccomp cannot see: so there are none of this kind.
        pairs_only = unix._replace(by="seccomp: no unix sockets at all but pairs")
        return [] if sandbox.unix_sockets else [pairs_only if unix.enforced else unix]
    if sandbox.ports:
        return [_ports(sandbox, ground), unix._replace(by="seccomp: none at all but pairs")]
    return [Promise("no network", ground.has_seccomp or ground.own_network, by), unix]


def _ports(sandbox: SandboxPolicy, ground: Ground) -> Promise:
    ports = ", ".join(map(str, sandbox.ports))
    if ground.abi >= landlock.NET_ABI:
        return Promise(f"no network but TCP connections to {ports}", ground.has_seccomp,
                       "seccomp and Landlock")  # fmt: skip
    needs = f"to open {ports} only needs Landlock ABI {landlock.NET_ABI}"
    return Promise("no network", ground.has_seccomp, f"seccomp; {needs}")


def _processes(ground: Ground) -> list[Promise]:
    has_scope = ground.abi >= landlock.SCOPE_ABI
    return [
        Promise("no signals to processes outside", has_scope,
                "Landlock" if has_scope else _SCOPE_NEEDS),
        Promise("no tracing, memory or descriptors of processes outside", bool(ground.abi),
                "Landlock and seccomp" if ground.abi else "needs Landlock (Linux 5.13)"),
        Promise("no limits or priorities of processes outside", ground.has_seccomp,
                "seccomp" if ground.has_seccomp else "needs seccomp"),
        Promise("no privileges, namespaces, mounts, modules, clocks, keyrings, bpf or perf", True,
                "no_new_privs, no capabilities" + (", seccomp" if ground.has_seccomp else "")),
    ]  # fmt: skip


def _limits(limits: LimitPolicy | None, ground: Ground) -> list[Promise]:
    if limits is None:
        return []
    found = [
        Promise(f"limit on {name}", True, f"{value} (rlimit)")
        for name, value in (
            ("memory", limits.memory_bytes and size(limits.memory_bytes)),
            ("CPU time", limits.cpu_s and f"{limits.cpu_s:g} s"),
            ("file size", limits.file_bytes and size(limits.file_bytes)),
            ("open files", limits.open_files),
        )
        if value is not None
    ]
    if limits.processes is not None:
        found.append(_process_limit(limits.processes, ground))
    return found


def _process_limit(processes: int, ground: Ground) -> Promise:
    name = "limit on processes"
    if not ground.is_root:
        return Promise(name, True, f"{processes} (rlimit)")
    if facts.has_cgroup():
        return Promise(name, True, f"{processes} (control group)")
    return Promise(name, False, "root is exempt from the rlimit, and no control group can be made")
