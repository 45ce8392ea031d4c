"""Makes many attempts in one run of a command, and judges what each came to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import limpet
from security.host import as_user, make_tools, scratch, tool
from security.stage import Stage

Attempt = tuple[str, str]
"""Its kind and its name."""


class Came(NamedTuple):
    """What an attempt came to."""

    had_effect: bool
    said: str


def make(user: str, mode: str, wanted: list[Attempt], **fields: object) -> dict[Attempt, Came]:
    """Make attempts as a user, each at a target of its own, and return what each came to."""
    with scratch("root") as tools, scratch(user) as base:
        make_tools(tools)
        return as_user(user, lambda: _make(tools, base, tool(mode, **fields), wanted))


def _make(tools: Path, base: Path, bash: limpet.Bash, wanted: list[Attempt]) -> dict[Attempt, Came]:
    workspace, outside = base / "workspace", base / "outside"
    workspace.mkdir()
    outside.mkdir()
    with Stage(outside, workspace, tools) as stage:
        targets = {each: stage.target(*each) for each in wanted}
        plan = [(*each, vars(aim)) for each, (aim, _) in targets.items()]
        (workspace / "plan").write_text(json.dumps(plan))
        result = bash.run_sync(
            f"PYTHONPATH={tools} /usr/bin/python3 -sB -m security.attacks.driver plan",
            ctx=limpet.ToolContext(workspace),
        )
        assert result.exit_code == 0, result
        said = {(k, n): said for k, n, said in map(json.loads, result.stdout.splitlines())}
        assert said.keys() == targets.keys()
        return {each: Came(judge(said[each]), said[each]) for each, (_, judge) in targets.items()}
