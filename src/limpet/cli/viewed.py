"""`limpet run --profile`: a command as a profile's tool, as models read it and people see it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from limpet.policy import Policy
from limpet.profiles import Run, cut, profile
from limpet.profiles.input import validated
from limpet.result import Result
from limpet.tool import Bash

if TYPE_CHECKING:
    from rich.console import RenderableType


class View:
    """A command under a profile's rules and limits."""

    def __init__(self, name: str, policy: Policy, command: str) -> None:
        """Find what the profile makes of a command; ValueError if it takes no such command."""
        self._box = profile(name, policy)
        self._tool = self._box.profile.tools[0]
        self._given = validated(self._tool.input, {"command": command})
        ask = self._tool.ask(self._given)
        assert isinstance(ask, Run)  # noqa: S101 -- for the type checker: no profile starts tasks so
        self.timeout_s = ask.timeout_s
        self.bash: Bash = ask.shaped(self._box.bash)

    def text(self, result: Result) -> str:
        """Return what the model would read."""
        return self._tool.tell(self._given, result).writable().text

    def panel(self, result: Result, timeout_s: float | None) -> RenderableType:
        """Return what a person sees."""
        from limpet.render import boxes
        from limpet.render.report import report_panel

        if self._box.profile.name != "tasks":
            limit_s = self.bash.policy.timeout_s if timeout_s is None else timeout_s
            return report_panel(_marked(result), timeout_s=limit_s)
        data = self._tool.tell(self._given, result).data
        told = replace(result, output=data["stdout"], stdout=data["stdout"], stderr=data["stderr"])
        return boxes.truncated(told) if data["truncated"] else boxes.completed(told)


def _marked(result: Result) -> Result:
    """Return the result with words where the engine was told to leave a sign."""
    mark = f"\n... ({result.omitted_bytes:,} bytes left out) ...\n"
    stdout, stderr = (text.replace(cut.JOIN, mark) for text in (result.stdout, result.stderr))
    return replace(result, stdout=stdout, stderr=stderr)
