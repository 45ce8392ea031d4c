"""limpet: the bash tool for LLM agents."""

from typing import TYPE_CHECKING

import limpet._platform  # noqa: F401 -- before anything that another platform has not
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
from limpet.result import Outcome, Result
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
]

if TYPE_CHECKING:
    from limpet import sandbox as sandbox
    from limpet.tasks.task import Task


def __getattr__(name: str) -> object:
    # These load ctypes and more: only for those who ask.
    if name == "sandbox":
        import importlib

        return importlib.import_module("limpet.sandbox")
    if name == "Task":
        from limpet.tasks.task import Task

        return Task
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
