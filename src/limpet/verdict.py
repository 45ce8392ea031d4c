"""What a check comes to."""

from __future__ import annotations

from typing import Literal, NamedTuple

Decision = Literal["allow", "ask", "deny"]


_SHORT = 100


class Finding(NamedTuple):
    """One thing that a rule has to say about a command."""

    rule: str
    message: str
    """What is wrong, and why."""
    advice: str
    """What to do instead."""
    start: int
    """Of the offending part, in bytes of the command's UTF-8."""
    end: int


class Verdict(NamedTuple):
    """Whether a command may run."""

    command: str
    decision: Decision
    findings: tuple[Finding, ...] = ()
    """The reasons; a command that is allowed may have a note."""

    def describe(self) -> str:
        """Say what is refused, why, and what to do instead, for whoever wrote the command."""
        if self.decision == "allow":
            return "allowed"
        verb = "refused" if self.decision == "deny" else "needs approval"
        told: dict[str, list[Finding]] = {}
        for finding in self.findings:
            told.setdefault(finding.rule + finding.message, []).append(finding)
        return "\n".join(
            f"{verb}: {self._place(first)}{f' and {len(more)} more' if more else ''}"
            f" [{first.rule}]: {first.message}. Instead: {first.advice}."
            for first, *more in told.values()
        )

    def _place(self, finding: Finding) -> str:
        part, whole = self.part(finding), self.command.strip()
        if part == whole:
            return f"`{part}`"
        if "\n" not in whole and len(whole) <= _SHORT:
            return f"`{part}` in `{whole}`"
        return f"`{part}`"

    def part(self, finding: Finding) -> str:
        """Return the offending part of the command, on one line."""
        whole = self.command.encode("utf-8", "surrogatepass")
        text = whole[finding.start : finding.end].decode("utf-8", "replace")
        first, _, rest = text.strip().partition("\n")
        return first[:_SHORT] + " …" if rest or len(first) > _SHORT else first

    def to_dict(self) -> dict[str, object]:
        """Return decision and findings as JSON-ready values."""
        return {
            "decision": self.decision,
            "findings": [finding._asdict() for finding in self.findings],
        }
