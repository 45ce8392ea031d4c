"""The one place where a command's environment is made."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from limpet.policy import SECRET_PATTERNS, EnvironmentPolicy
from limpet.process.table import MARKER

NON_INTERACTIVE = {
    # Pagers: output goes to the caller as it is.
    b"PAGER": b"cat",
    b"GIT_PAGER": b"cat",
    b"MANPAGER": b"cat",
    b"SYSTEMD_PAGER": b"cat",
    # Editors: what was proposed is accepted unchanged. Git prefers GIT_SEQUENCE_EDITOR over
    # GIT_EDITOR for rebase todo lists, and a configured sequence.editor over both unless it is set.
    b"EDITOR": b"true",
    b"VISUAL": b"true",
    b"GIT_EDITOR": b"true",
    b"GIT_SEQUENCE_EDITOR": b"true",
    # Credentials: a question is a failure. GIT_SSH_COMMAND is left alone, since it would override
    # the user's core.sshCommand; without a terminal ssh asks nobody anyway.
    b"GIT_TERMINAL_PROMPT": b"0",
    b"GIT_ASKPASS": b"false",
    b"SSH_ASKPASS": b"false",
    b"SSH_ASKPASS_REQUIRE": b"never",
    b"GCM_INTERACTIVE": b"never",
    b"DEBIAN_FRONTEND": b"noninteractive",
    b"PIP_NO_INPUT": b"1",
    # Colour: a model reads this.
    b"TERM": b"dumb",
    b"NO_COLOR": b"1",
}
_FORCED_COLOUR = (b"FORCE_COLOR", b"CLICOLOR_FORCE")
_OF_ONE_RUN = (MARKER, b"PWD")

_CORE = frozenset(
    b"PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TEMP TMP SSH_AUTH_SOCK"
    b" XDG_RUNTIME_DIR XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME"
    b" SSL_CERT_FILE SSL_CERT_DIR http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY"
    b" VIRTUAL_ENV LD_LIBRARY_PATH".split()
)
_CORE_PREFIX = b"LC_"

_SHORTEST_MASKED = 8
"""A shorter secret would shred ordinary text when it is masked."""


def host_environment() -> Mapping[bytes, bytes]:
    """Return this program's own environment as it is now, as bytes, to be read only."""
    # os.environ keeps its values encoded in _data; copying through the public mapping decodes and
    # encodes each one again, which takes a tenth of the time of a whole spawn.
    data = getattr(os.environ, "_data", None)
    return data if type(data) is dict else dict(os.environb)


def become(environment: Mapping[bytes, bytes]) -> None:
    """Take over the environment of another program."""
    if environment is host_environment():
        return
    os.environb.clear()
    os.environb.update(environment)


def check_variables(variables: Mapping[str, str]) -> dict[bytes, bytes]:
    """Return variables encoded, or say which name or value cannot be one."""
    encoded = {}
    for name, value in variables.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"environment names and values must be strings: {name!r}={value!r}")
        if not name or "=" in name or "\0" in name:
            raise ValueError(f"not a name for an environment variable: {name!r}")
        if "\0" in value:
            raise ValueError(f"the value of {name} holds a NUL byte, which no environment can")
        try:
            encoded[os.fsencode(name)] = os.fsencode(value)
        except UnicodeEncodeError:
            raise ValueError(
                f"{name!r}={value!r} holds characters that cannot be encoded"
            ) from None
    return encoded


class ChildEnvironment:
    """The environment of one run: what it has in common with others, and what is its own."""

    def __init__(self, common: _Common, own: dict[bytes, bytes]) -> None:
        self._common = common
        self._own = own

    def get(self, name: bytes) -> bytes | None:
        """Return the value of a variable, if it is set."""
        return self._own.get(name, self._common.variables.get(name))

    def set(self, name: bytes, value: bytes) -> None:
        """Set a variable for this run."""
        self._own[name] = value

    def entries(self) -> list[bytes]:
        """Return all as `NAME=value`, each name once."""
        own = [name + b"=" + value for name, value in self._own.items()]
        if self._own.keys().isdisjoint(self._common.variables):
            return self._common.entries + own
        others = self._common.variables.items()
        return [name + b"=" + value for name, value in others if name not in self._own] + own


def build(
    policy: EnvironmentPolicy,
    inherited: Mapping[bytes, bytes],
    extra: Mapping[str, str] | None,
    run_id: str,
    cwd: str,
) -> ChildEnvironment:
    """Return the environment of one run: inherited, not interactive, set, marked.

    Args:
        policy: What to inherit, to exclude and to set.
        inherited: The environment to inherit from: the host's, or the login profile's.
        extra: The call's own variables, over everything else.
        run_id: The id that the marker carries.
        cwd: Where the command starts; bash keeps a symbolic path only if PWD names it.
    """
    own = {b"PWD": os.fsencode(cwd)}
    if extra:
        own.update(check_variables(extra))
    # Nested runs carry the ids of all around them, so that each is found by the outermost too.
    outer = inherited.get(MARKER)
    own[MARKER] = b"%b/%b" % (outer, run_id.encode()) if outer else run_id.encode()
    return ChildEnvironment(_find_common(policy, inherited), own)


class _Common(NamedTuple):
    """What runs under one policy have in common, as long as what they inherit is the same."""

    policy: EnvironmentPolicy
    inherited: Mapping[bytes, bytes]
    variables: dict[bytes, bytes]
    entries: list[bytes]


_last_common: _Common | None = None


def _find_common(policy: EnvironmentPolicy, inherited: Mapping[bytes, bytes]) -> _Common:
    global _last_common
    last = _last_common
    if last is not None and last.policy is policy and last.inherited == inherited:
        return last
    variables = _inherit(policy, inherited)
    for name in (*_FORCED_COLOUR, *_OF_ONE_RUN):
        variables.pop(name, None)
    if policy.not_interactive:
        variables.update(NON_INTERACTIVE)
    variables.update(check_variables(policy.set))
    entries = [name + b"=" + value for name, value in variables.items()]
    _last_common = _Common(policy, dict(inherited), variables, entries)
    return _last_common


def secret_values(
    policy: EnvironmentPolicy, inherited: Mapping[bytes, bytes], extra: Mapping[str, str] | None
) -> tuple[bytes, ...]:
    """Return the values to mask: those of every name that looks like a secret, longest first."""
    if not policy.hide_secrets:
        return ()
    known = dict(inherited) | check_variables(policy.set) | check_variables(extra or {})
    values = {v for k, v in known.items() if _matches(k, SECRET_PATTERNS)}
    return tuple(sorted((v for v in values if len(v) >= _SHORTEST_MASKED), key=len, reverse=True))


def _inherit(policy: EnvironmentPolicy, inherited: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    if policy.inherit == "none":
        return {}
    if policy.inherit == "core":
        kept = {k: v for k, v in inherited.items() if k in _CORE or k.startswith(_CORE_PREFIX)}
    else:
        kept = dict(inherited)
    patterns = policy.exclude + (SECRET_PATTERNS if policy.hide_secrets else ())
    if patterns:
        return {k: v for k, v in kept.items() if not _matches(k, patterns)}
    return kept


def _matches(name: bytes, patterns: Iterable[str]) -> bool:
    upper = os.fsdecode(name).upper()
    return any(fnmatchcase(upper, pattern.upper()) for pattern in patterns)
