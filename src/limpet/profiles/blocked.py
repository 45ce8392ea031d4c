"""Blocked patterns of hosts that name them as text, read by what they mean."""

from __future__ import annotations

from dataclasses import replace

from limpet.policy import Policy
from limpet.verdict import Verdict

_MEANT = {
    "rm -rf /": "rm-dangerous",
    "mkfs": "mkfs",
    "dd if=/dev/zero": "dd-device",
    "dd if=/dev/": "dd-device",
    "> /dev/sd": "device-redirect",
    ":(){:|:&};:": "fork-bomb",
    ":(){ :|:& };:": "fork-bomb",
}
"""What these stand for: taken as text they would forbid `rm -rf /tmp/x`, and to speak of mkfs."""
_WORKFLOW_RULES = ("git-add-blind", "git-push-force")
"""Habits, not dangers: a profile that does not mention them leaves them to its host."""


def shaped(policy: Policy, patterns: tuple[str, ...]) -> Policy:
    """Return a policy that refuses what is dangerous, and what the host blocks by text."""
    as_text = tuple(one for one in patterns if one not in _MEANT)
    rules = replace(
        policy.rules,
        off=(*policy.rules.off, *_WORKFLOW_RULES),
        blocked_patterns=(*policy.rules.blocked_patterns, *as_text),
    )
    return replace(policy, rules=rules)


def pattern_of(verdict: Verdict, patterns: tuple[str, ...]) -> str | None:
    """Return which of the patterns a refused command has met, by its text or by its meaning."""
    rules = {finding.rule for finding in verdict.findings}
    texts = [one for one in patterns if one not in _MEANT and one in verdict.command]
    meant = [one for one in patterns if _MEANT.get(one) in rules]
    # Of two that mean the same, the one that stands there says more.
    meant.sort(key=lambda one: one not in verdict.command)
    return next(iter(texts + meant), None)
