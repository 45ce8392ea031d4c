"""The public names are a decision, not an accident."""

from __future__ import annotations

import re
from pathlib import Path

import limpet


def test_the_public_names_are_these() -> None:
    assert limpet.__all__ == [
        "Bash",
        "CommandFailed",
        "CommandRefused",
        "EnvironmentPolicy",
        "LimitPolicy",
        "LimpetError",
        "Outcome",
        "OutputPolicy",
        "PermissionPolicy",
        "Policy",
        "Result",
        "RulePolicy",
        "SandboxPolicy",
        "SandboxUnavailable",
        "SpawnFailed",
        "Task",
        "TaskNotFound",
        "ToolContext",
        "Verdict",
        "check",
        "profile",
    ]
    assert all(hasattr(limpet, name) for name in limpet.__all__)


def test_the_package_is_marked_as_typed() -> None:
    assert (Path(limpet.__file__).parent / "py.typed").exists()


def test_the_changelog_knows_the_version() -> None:
    changelog = Path(limpet.__file__).parents[2] / "CHANGELOG.md"
    assert re.search(rf"^## {re.escape(limpet.__version__)}\b", changelog.read_text(), re.M)
