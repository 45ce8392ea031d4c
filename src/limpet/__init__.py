"""limpet: the bash tool for LLM agents."""

from typing import TYPE_CHECKING

import limpet._platform  # noqa: F401 -- before anything that another platform has not

if TYPE_CHECKING:
    from limpet import sandbox as sandbox
    from limpet.confinement import LimitPolicy, SandboxPolicy
    from limpet.context import ToolContext
    from limpet.errors import (
        CommandFailed,
        CommandRefused,
        LimpetError,
        SandboxUnavailable,
        SpawnFailed,
        TaskNotFound,
    )
    from limpet.policy import EnvironmentPolicy, OutputPolicy, PermissionPolicy, Policy, RulePolicy
    from limpet.profiles import profile
    from limpet.result import Outcome, Result
    from limpet.tasks.task import Task
    from limpet.tool import Bash, check
    from limpet.verdict import Verdict

__version__ = "0.1.0"

__all__ = [
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

_HOMES = {
    "confinement": ("LimitPolicy", "SandboxPolicy"),
    "context": ("ToolContext",),
    "errors": (
        "CommandFailed",
        "CommandRefused",
        "LimpetError",
        "SandboxUnavailable",
        "SpawnFailed",
        "TaskNotFound",
    ),
    "policy": ("EnvironmentPolicy", "OutputPolicy", "PermissionPolicy", "Policy", "RulePolicy"),
    "profiles": ("profile",),
    "result": ("Outcome", "Result"),
    "tasks.task": ("Task",),
    "tool": ("Bash", "check"),
    "verdict": ("Verdict",),
}
"""Where each name lives: it is loaded when it is first asked for, as most callers ask for few."""
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    import importlib

    if name == "sandbox":
        return importlib.import_module("limpet.sandbox")
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"limpet.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
