"""The one place where a command's environment is made."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from limpet.policy import SECRET_PATTERNS, EnvironmentPolicy

MARKER = b"LIMPET_RUN"
"""Carries the run's id to every process it starts, so that those who left its group are found."""

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
_READ_ONLY_IN_BASH = (b"SHELLOPTS", b"BASHOPTS")
_BEFORE_THE_PRELUDE = (
    # bash reads no prelude, or something before it
    b"POSIXLY_CORRECT", b"POSIX_PEDANTIC", b"SSH_CLIENT", b"SSH2_CLIENT", *_READ_ONLY_IN_BASH,
    # the C library loads code, or what it takes for a locale
    b"GCONV_PATH", b"LOCPATH",
)  # fmt: skip
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

    def __init__(
        self, common: _Common, own: dict[bytes, bytes], given: Iterable[bytes] = ()
    ) -> None:
        self._common = common
        self._own = own
        self._given = given
        self._left_out: frozenset[bytes] = frozenset()

    def get(self, name: bytes) -> bytes | None:
        """Return the value of a variable, if it is set."""
        return self._own.get(name, self._common.variables.get(name))

    def set(self, name: bytes, value: bytes) -> None:
        """Set a variable for this run."""
        self._own[name] = value

    def take_late(self) -> dict[bytes, bytes]:
        """Take out what could act on the shell before it has read anything, and return it.

        That is what the linker, the C library and bash itself obey at once, and all that the call
        gave. What bash could not set itself is not returned, or not taken out.
        """
        given = {name for name in self._given if _is_identifier(name) and name != b"BASH_ENV"}
        self._left_out = self._common.late | {name for name in self._own if _is_late(name)} | given
        late = {name: self.get(name) for name in self._left_out if name not in _READ_ONLY_IN_BASH}
        for name in self._left_out:
            self._own.pop(name, None)
        return {name: value for name, value in late.items() if value is not None}

    def entries(self) -> list[bytes]:
        """Return all as `NAME=value`, each name once."""
        own = [name + b"=" + value for name, value in self._own.items()]
        hidden = self._own.keys() | self._left_out if self._left_out else self._own.keys()
        if hidden.isdisjoint(self._common.variables):
            return self._common.entries + own
        others = self._common.variables.items()
        return [name + b"=" + value for name, value in others if name not in hidden] + own


def _is_late(name: bytes) -> bool:
    """True if a variable acts on a shell before it has read anything."""
    is_linkers = name.startswith(b"LD_") and _is_identifier(name)
    return is_linkers or name in _BEFORE_THE_PRELUDE


def _is_identifier(name: bytes) -> bool:
    return name.isascii() and name.decode().isidentifier()


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
    given = check_variables(extra) if extra else {}
    own.update(given)
    # Nested runs carry the ids of all around them, so that each is found by the outermost too.
    outer = inherited.get(MARKER)
    own[MARKER] = b"%b/%b" % (outer, run_id.encode()) if outer else run_id.encode()
    given.pop(MARKER, None)
    return ChildEnvironment(_find_common(policy, inherited), own, given)


class _Common(NamedTuple):
    """What runs under one policy have in common, as long as what they inherit is the same."""

    policy: EnvironmentPolicy
    inherited: Mapping[bytes, bytes]
    variables: dict[bytes, bytes]
    entries: list[bytes]
    late: frozenset[bytes]
    """Names that a confined shell must not begin with."""


_last_common: _Common | None = None


def _find_common(policy: EnvironmentPolicy, inherited: Mapping[bytes, bytes]) -> _Common:
    global _last_common
    last = _last_common
    if last is not None and last.policy is policy and last.inherited == inherited:
        return last
    variables = _inherit(policy, inherited)
    for name in (*_FORCED_COLOUR, *_OF_ONE_RUN):
        variables.pop(name, None)
    variables.update(NON_INTERACTIVE)
    variables.update(check_variables(policy.set))
    entries = [name + b"=" + value for name, value in variables.items()]
    late = frozenset(filter(_is_late, variables))
    _last_common = _Common(policy, dict(inherited), variables, entries, late)
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
