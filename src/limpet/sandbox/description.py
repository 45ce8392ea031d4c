"""What a model is told of its sandbox, as a part of the tool's description."""

from __future__ import annotations

from limpet.confinement import LimitPolicy, SandboxPolicy
from limpet.sandbox.limited import size


def describe(sandbox: SandboxPolicy, limits: LimitPolicy | None, workspace: str) -> str:
    """Return the constraints in plain words; empty if there are none."""
    parts = []
    if sandbox.mode == "read-only":
        parts.append("Commands run in a read-only sandbox: no file can be created, changed or"
                     " removed anywhere, not even in /tmp.")  # fmt: skip
    elif sandbox.mode == "workspace":
        parts.append(_workspace(sandbox, workspace))
    if sandbox.mode != "off":
        parts.append(_network(sandbox))
        parts.append("Processes outside cannot be signalled or inspected, and there is no way to"
                     " get more privileges (sudo does not work).")  # fmt: skip
        if sandbox.hide:
            parts.append("Credentials and other private places cannot be read.")
        parts.append("A denied operation fails with the system's own error (Permission denied,"
                     " Operation not permitted, Read-only file system): trying again or another way"
                     " does not help; say what is needed instead.")  # fmt: skip
    if limits is not None:
        parts.append(_limits(limits))
    return " ".join(part for part in parts if part)


def _workspace(sandbox: SandboxPolicy, workspace: str) -> str:
    places = [workspace, *sandbox.writable]
    temp = "$TMPDIR" if sandbox.temp == "private" else "the temporary folders"
    return (
        f"Commands run in a sandbox: files can be written only under {', '.join(places)}, and in"
        f" {temp}. Git hooks and configuration, shell start-up files and editor and agent settings"
        " there must not be changed."
    )


def _network(sandbox: SandboxPolicy) -> str:
    if sandbox.network:
        return ""
    if sandbox.ports:
        ports = ", ".join(map(str, sandbox.ports))
        return f"The network is closed except for TCP connections to port {ports}."
    return "There is no network: downloads and installs from the internet fail."


def _limits(limits: LimitPolicy) -> str:
    known = (
        ("memory per process", limits.memory_bytes and size(limits.memory_bytes)),
        ("CPU time per process", limits.cpu_s and f"{limits.cpu_s:g} s"),
        ("processes", limits.processes),
        ("file size", limits.file_bytes and size(limits.file_bytes)),
        ("open files", limits.open_files),
    )
    named = ", ".join(f"{name} {value}" for name, value in known if value)
    return f"Limits: {named}." if named else ""
