"""One run's confinement: entered before it starts, and accounted for after it has ended."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from limpet.confinement import LimitPolicy, SandboxPolicy
from limpet.errors import SandboxUnavailable
from limpet.policy import Policy
from limpet.process.env import ChildEnvironment
from limpet.result import Change, SandboxReport
from limpet.sandbox import denials, ground, jail, plan, promises, protected, rlimits

if TYPE_CHECKING:
    from limpet.process.steps import Step
    from limpet.sandbox.broker import Estate
    from limpet.sandbox.jail import Jail

MARKER = b"LIMPET_SANDBOX"
"""Tells a program in the sandbox that it is in one, and of which mode."""


class Confinement:
    """What one run is started in."""

    def __init__(
        self,
        policy: Policy,
        workspace: str,
        inherited: Mapping[bytes, bytes],
        terminal: str | None = None,
    ) -> None:
        """Get everything ready that can fail.

        Args:
            policy: Of the run.
            workspace: The conversation's own directory, wherever it has moved to since.
            inherited: The host's environment, which names its temporary directory.
            terminal: The path of the terminal that it is given.

        Raises:
            SandboxUnavailable: The kernel cannot do what the policy asks for.
            plan.BadPlace: A place of the policy makes no sense.
        """
        self._sandbox = policy.sandbox
        self._limits = policy.effective_limits
        self._ground = ground.look()
        self._jail: Jail | None = None
        self._before: dict[str, object] = {}
        if sys.platform != "linux" and self._limits is not None:
            raise SandboxUnavailable("limits need Linux; nothing ran. Give the policy none")
        if self._sandbox.mode == "off":
            return
        self._check_available()
        self._plan = self._make_plan(workspace, inherited)._replace(terminal=terminal)
        try:
            self._jail = jail.enter(self._plan)
        except OSError as error:
            raise SandboxUnavailable(
                error.errno, f"the sandbox cannot be set up: {error.strerror}"
            ) from error
        self._before = protected.snapshot(self._plan.watched)

    def _make_plan(self, workspace: str, inherited: Mapping[bytes, bytes]) -> plan.Plan:
        if self._sandbox.mode == "read-only" and not self._sandbox.hide:
            return _plan_without_places(self._sandbox, self._limits, self._ground)
        return plan.make(self._sandbox, self._limits, self._ground, workspace, inherited)

    def _check_available(self) -> None:
        if sys.platform != "linux":
            needs = "Linux: Landlock is a part of its kernel"
        else:
            needs = promises.missing(self._sandbox, self._ground) or ""
        if needs and not self._sandbox.degrade:
            raise SandboxUnavailable(
                f"sandbox={self._sandbox.mode!r} needs {needs}. Nothing ran. `limpet doctor` says"
                " what this machine has; sandbox='off' runs without, and degrade=True with what"
                " there is."
            )

    def prepare(self, environment: ChildEnvironment) -> None:
        """Tell the run where it is."""
        if self._jail is not None:
            environment.set(MARKER, self._sandbox.mode.encode())
            self._make_at_home(environment)
            if self._jail.temp_directory is not None:
                environment.set(b"TMPDIR", self._jail.temp_directory.encode())

    def _make_at_home(self, environment: ChildEnvironment) -> None:
        """Spare common tools what they would otherwise fail at, unless it is set already."""
        if self._jail is None or self._sandbox.mode != "workspace":
            return
        defaults = {
            # Both fail if they cannot write to a cache in the home directory.
            b"PIP_NO_CACHE_DIR": b"1",
            b"npm_config_cache": os.fsencode(self._jail.cache_directory),
        }
        if self._ground.is_root:
            defaults[b"TAR_OPTIONS"] = b"--no-same-owner"  # there is no root to give files away
        for name, value in defaults.items():
            if environment.get(name) is None:
                environment.set(name, value)

    def steps(self) -> list[Step]:
        """Return what the run's first process has to do before it becomes a shell."""
        limits = () if self._limits is None else rlimits.steps(self._limits)
        return [*limits, *(() if self._jail is None else self._jail.steps)]

    @property
    def starter(self) -> Callable[[Callable[[], int]], int] | None:
        """Who is to start that process; None is whoever asks."""
        return None if self._jail is None else self._jail.start

    def estate(self) -> tuple[Estate, tuple[int, int]] | None:
        """Return what a supervisor needs to go on with what this program does for the run."""
        return None if self._jail is None else self._jail.estate()

    @property
    def temp(self) -> tuple[str, int] | None:
        """The temporary directory that is its own, and what is open as long as it is used."""
        jail = self._jail
        if jail is None or jail.temp_directory is None or jail.temp_lock is None:
            return None
        return jail.temp_directory, jail.temp_lock

    def leave(self) -> None:
        """Note that the run has ended, or that it never began."""
        if self._jail is not None:
            jail.leave(self._jail)

    def report(self, output: str, cwd: str) -> SandboxReport | None:
        """Return what held, what it probably denied, and which protected files have changed."""
        if self._jail is None:
            return None
        report = _report(self._sandbox, self._limits, self._ground)
        changed = self._changes()
        denied = denials.find(output, cwd, self._plan)
        return report._replace(changed=changed, denials=denied)

    def _changes(self) -> tuple[Change, ...]:
        """Return which protected files the run has changed, or something since the last run."""
        if self._sandbox.mode != "workspace":
            return ()
        workspace = plan.workspace_roots(self._plan)
        after = protected.snapshot(plan.protected_paths(self._sandbox, workspace))
        changed = protected.changes(self._before, after)
        roots = self._plan.roots
        if (last := _last_seen.pop(roots, None)) is not None:
            # What the last run left behind may have been at work after it was over.
            changed = protected.changes(last, self._before, " since the last run") + changed
        _last_seen[roots] = after
        if len(_last_seen) > _SEEN_AT_MOST:
            _last_seen.pop(next(iter(_last_seen)), None)
        return changed


_last_seen: dict[tuple[plan.Place, ...], dict[str, object]] = {}
"""The protected files of workspaces as the last run there left them."""
_SEEN_AT_MOST = 256


@functools.lru_cache(maxsize=64)
def _plan_without_places(
    sandbox: SandboxPolicy, limits: LimitPolicy | None, facts: ground.Ground
) -> plan.Plan:
    return plan.make(sandbox, limits, facts, "/", {})


@functools.lru_cache(maxsize=64)
def _report(
    sandbox: SandboxPolicy, limits: LimitPolicy | None, facts: ground.Ground
) -> SandboxReport:
    found = promises.promises(sandbox, limits, facts)
    return SandboxReport(
        mode=sandbox.mode,
        enforced=tuple(str(promise) for promise in found if promise.enforced),
        not_enforced=tuple(str(promise) for promise in found if not promise.enforced),
    )
