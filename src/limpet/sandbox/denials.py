"""What the sandbox has probably kept a command from, guessed from what it printed.

A guess must be worth reading: a line counts only if it has an error's own words beside a file that
the policy forbids and the user could otherwise have changed, or beside the network or a process.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress

from limpet.result import Denial
from limpet.sandbox import protected
from limpet.sandbox.plan import Plan, workspace_roots

_AT_MOST = 5
_LINES_AT_MOST = 2000
_LINES_OF_TRACE = 6
_LONGEST_NAME, _LONGEST_LINE = 1024, 2000
"""Patterns take the square of it."""
_REFUSALS = (
    "Permission denied", "Operation not permitted", "Read-only file system", "EACCES", "EPERM",
    "EROFS", "Device or resource busy", "permission denied", "operation not permitted",
    "read-only file system",
)  # fmt: skip
_NO_NAMES = (
    "Temporary failure in name resolution", "Could not resolve host", "Network is unreachable",
    "EAI_AGAIN", "Name or service not known", "Could not resolve hostname",
    "nodename nor servname",
)  # fmt: skip
_QUOTED = re.compile(r"'([^']+)'|\"([^\"]+)\"|‘([^’]+)’|`([^`']+)'")
_BEFORE_ERROR = re.compile(rf"([^\s:]+):? (?:{'|'.join(map(re.escape, _REFUSALS))})")
_OF_NETWORK = re.compile(
    r"\b(?:socket|connect|bind|listen|network|getaddrinfo|/dev/(?:tcp|udp))\b", re.I
)
_OF_PROCESS = re.compile(r"\bkill:|\(\d+\) - Operation not permitted|\bptrace\b|\brenice\b", re.I)
_OF_OWNER = re.compile(r"owner|chown|xattr|attribute", re.I)

_OF_OTHERS = (
    "processes outside this run cannot be signalled, looked into or given other priorities",
    "do that from outside the sandbox",
)


def find(output: str, cwd: str, plan: Plan) -> tuple[Denial, ...]:
    """Return what the output shows of denials, the first few."""
    if not any(word in output for word in (*_REFUSALS, *_NO_NAMES)):
        return ()
    found: dict[tuple[str | None, str], Denial] = {}
    lines = output.splitlines()[-_LINES_AT_MOST:]
    for place, line in enumerate(lines):
        if len(line) > _LONGEST_LINE:
            continue
        denial = _of_line(line, cwd, plan, lines[max(0, place - _LINES_OF_TRACE) : place])
        if denial is not None:
            found.setdefault((denial.path, denial.rule), denial)
            if len(found) == _AT_MOST:
                break
    return tuple(found.values())


def _of_line(line: str, cwd: str, plan: Plan, before: list[str]) -> Denial | None:
    sandbox = plan.sandbox
    is_refusal = any(word in line for word in _REFUSALS)
    if any(word in line for word in _NO_NAMES) and not sandbox.network:
        return _network(line, plan)
    if not is_refusal:
        return None
    if _OF_PROCESS.search(line):
        return Denial(line.strip(), None, *_OF_OTHERS)
    for path in _paths(line, cwd):
        if (why := _forbidden(path, line, plan)) is not None:
            return Denial(line.strip(), path, *why)
    is_error = line.startswith("PermissionError: ")  # which says no more; the lines above it do
    around = [line, *(before if is_error else ())]
    is_network = any(_OF_NETWORK.search(one[:_LONGEST_LINE]) for one in around)
    return _network(line, plan) if is_network and not sandbox.network else None


def _network(line: str, plan: Plan) -> Denial:
    if plan.sandbox.ports:
        open_ports = ", ".join(map(str, plan.sandbox.ports))
        return Denial(line.strip(), None, f"of the network only TCP to {open_ports} is open",
                      "network=True, or more ports")  # fmt: skip
    return Denial(line.strip(), None, "the network is off",
                  "network=True, or ports=[…] for single TCP ports")  # fmt: skip


def _paths(line: str, cwd: str) -> Iterator[str]:
    """Yield the files that a line may be about."""
    names = ["".join(groups) for groups in _QUOTED.findall(line)]
    names += [name for name in _BEFORE_ERROR.findall(line) if "/" in name or _is_there(cwd, name)]
    for name in names:
        if name and "\0" not in name and len(name) < _LONGEST_NAME:
            with suppress(OSError, RecursionError):  # a chain of links without end
                yield os.path.realpath(os.path.join(cwd, name))


def _is_there(cwd: str, name: str) -> bool:
    return len(name) < _LONGEST_NAME and os.path.lexists(os.path.join(cwd, name))


def _forbidden(path: str, line: str, plan: Plan) -> tuple[str, str] | None:
    """Return the rule that forbids to change (or read) a file, and what would permit it."""
    if re.match(r"/proc/\d", path):
        return _OF_OTHERS
    if any(protected.is_beneath(path, place.path) for place in plan.hidden):
        return "it is hidden", "take it out of `hide`"
    if _is_socket(path):
        return "unix sockets outside the sandbox are closed", "network=True and unix_sockets=True"
    if (name := _protected_name(path, plan)) is not None:
        return "it is protected: something outside obeys it", f"take {name} out of `protect`"
    if any(protected.is_beneath(path, root.path) for root in plan.roots):
        return _inside(path, line, plan)
    return _outside(path, plan) if _could_change(path) else None


def _outside(path: str, plan: Plan) -> tuple[str, str]:
    if path.startswith("/dev/"):
        return "devices are closed", "run it outside the sandbox"
    if plan.sandbox.mode == "read-only":
        return "the sandbox is read-only", "sandbox='workspace', in a directory above it"
    return "it lies outside the workspace", f"writable=[{os.path.dirname(path)!r}]"


def _protected_name(path: str, plan: Plan) -> str | None:
    for root in workspace_roots(plan):
        for name in plan.sandbox.protect:
            if protected.is_beneath(path, f"{root.path}/{name}"):
                return name
    return None


def _inside(path: str, line: str, plan: Plan) -> tuple[str, str] | None:
    """Return what forbids a change in the workspace itself, if anything of the sandbox does."""
    if not plan.own_view and _OF_OWNER.search(line):
        return "owners and attributes cannot be changed", "do that from outside the sandbox"
    owner = _owner(path)
    if plan.ground.is_root and owner not in (None, 0):
        return (
            f"it belongs to user {owner}, and root has no privileges in the sandbox",
            "run limpet as that user, or change the owner",
        )
    return None


def _owner(path: str) -> int | None:
    while path != "/":
        with suppress(OSError):
            return os.lstat(path).st_uid
        path = os.path.dirname(path)
    return None


def _is_socket(path: str) -> bool:
    with suppress(OSError):
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    return False


def _could_change(path: str) -> bool:
    """True if this program itself could change or make a file: else the sandbox is not to blame."""
    while not os.path.lexists(path) and path != "/":
        path = os.path.dirname(path)
    return os.access(path, os.W_OK)
