"""The strict pack's checks of the text itself. They refuse much that is harmless: that is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class TextRule(NamedTuple):
    """A pattern that must not occur in the text of a command."""

    id: str
    pattern: re.Pattern[str]
    message: str
    advice: str

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where the pattern occurs; what stands in its group `fine` is none."""
        for found in self.pattern.finditer(text):
            if not found.groupdict().get("fine"):
                yield found.span()


def literal(text: str) -> TextRule:
    """Return a rule that forbids a piece of text, wherever it stands."""
    return TextRule(
        id="blocked-pattern",
        pattern=re.compile(re.escape(text)),
        message=f"the policy forbids commands that contain {text!r}",
        advice="do without it, or have the policy changed",
    )


_DESTRUCTIVE = ("rm -rf", "rm -r", "rm /", "dd if=", "mkfs", "fdisk")
_DANGEROUS = (
    r"rm\s+-rf\s+/",
    r"sudo\s+rm",
    r">\s*/dev/sd[a-z]",
    r"dd\s+.*of=/dev/",
    r"mkfs\.",
    r"fdisk",
    r":\(\)\{.*\}\;",
)
_INJECTED = (r";\s*rm\b", r"&&\s*rm\b", r"\$\([^)]*\brm\b", r"`[^`]*\brm\b", r":\(\)\s*\{.*\}\s*;")
_VARIABLE = r"\$[A-Za-z_]\w*|\$\{[A-Za-z_]\w*\}"

TEXT_RULES = (
    TextRule(
        id="destructive-pattern",
        pattern=re.compile("|".join(map(re.escape, _DESTRUCTIVE))),
        message="the strict rules forbid this text anywhere in a command",
        advice="use a command that removes, copies or formats nothing",
    ),
    TextRule(
        id="dangerous-pattern",
        pattern=re.compile("|".join(_DANGEROUS)),
        message="the strict rules forbid this pattern anywhere in a command",
        advice="use a command that touches no system files or devices",
    ),
    TextRule(
        id="command-injection",
        pattern=re.compile("|".join(_INJECTED), re.S),
        message="the strict rules forbid to chain or substitute `rm`",
        advice="run one plain command at a time",
    ),
    TextRule(
        id="restricted-character",
        pattern=re.compile(rf"(?P<fine>{_VARIABLE})|[$;&`{{}}]"),
        message="the strict rules allow `$`, `{` and `}` in `$NAME` and `${NAME}` only, and no `;`,"
        " `&` or backtick",
        advice="run one plain command at a time, without substitutions",
    ),
)
