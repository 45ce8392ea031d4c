"""limpet: the bash tool for LLM agents."""

import limpet._platform  # noqa: F401 -- before anything that another platform has not
from limpet.context import ToolContext
from limpet.errors import CommandFailed, CommandRefused, LimpetError, SpawnFailed
from limpet.policy import EnvironmentPolicy, OutputPolicy, Policy
from limpet.result import Outcome, Result
from limpet.tool import Bash

__version__ = "0.1.0"

__all__ = [
    "Bash",
    "CommandFailed",
    "CommandRefused",
    "EnvironmentPolicy",
    "LimpetError",
    "Outcome",
    "OutputPolicy",
    "Policy",
    "Result",
    "SpawnFailed",
    "ToolContext",
]
