"""Blocked patterns of hosts that name them as text, read by what they mean."""

from __future__ import annotations

from dataclasses import replace

from limpet.policy import Policy
from limpet.safety.rules import DEFAULT
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
    rules = policy.rules
    meant = {_MEANT[one] for one in patterns if one in _MEANT}
    off = {*rules.off, *_WORKFLOW_RULES}
    if rules.pack == "none" and meant:
        # The host wants no rules but those that it names by these patterns.
        off = {rule.id for rule in DEFAULT} - meant
        rules = replace(rules, pack="default")
    as_text = tuple(one for one in patterns if one not in _MEANT)
    blocked = (*rules.blocked_patterns, *as_text)
    return replace(policy, rules=replace(rules, off=tuple(sorted(off)), blocked_patterns=blocked))


def pattern_of(verdict: Verdict, patterns: tuple[str, ...]) -> str | None:
    """Return which of the patterns stands in a refused command, in the sense it was refused for."""
    rules = {finding.rule for finding in verdict.findings}
    return next(
        (
            one
            for one in patterns
            if one in verdict.command and _MEANT.get(one, "blocked-pattern") in rules
        ),
        None,
    )
