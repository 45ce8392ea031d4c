"""limpet: the bash tool for LLM agents."""

import limpet._platform  # noqa: F401 -- before anything that another platform has not
from limpet.context import ToolContext
from limpet.errors import CommandFailed, CommandRefused, LimpetError, SpawnFailed
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
    "LimpetError",
    "Outcome",
    "OutputPolicy",
    "PermissionPolicy",
    "Policy",
    "Result",
    "RulePolicy",
    "SpawnFailed",
    "ToolContext",
    "Verdict",
    "check",
]
