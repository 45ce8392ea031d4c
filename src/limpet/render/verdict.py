"""A verdict for a person: the command with the offending part marked, why, and the safer way."""

from __future__ import annotations

from collections.abc import Iterator

from limpet.verdict import Finding, Verdict

_WORDS = {"allow": "✓ allowed", "ask": "? needs approval", "deny": "✗ refused"}
_COLOURS = {"allow": 32, "ask": 33, "deny": 31}
_LONGEST_LINE = 160


def verdict_lines(verdict: Verdict, *, is_coloured: bool = False) -> list[str]:
    """Return what a person reads about a command."""

    def painted(text: str, code: int) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if is_coloured else text

    colour = _COLOURS[verdict.decision]
    lines = [painted(_WORDS[verdict.decision], colour)]
    for finding in verdict.findings:
        shown, marks = _excerpt(verdict.command, finding)
        lines += ["", f"  {shown}", "  " + painted(marks, colour)]
        lines += [f"  {finding.rule}: {finding.message}", f"  instead: {finding.advice}"]
    return lines


def _excerpt(command: str, finding: Finding) -> tuple[str, str]:
    """Return the line of a command that a finding begins in, and the marks to stand below it."""
    data = command.encode("utf-8", "surrogatepass")
    start = data.rfind(b"\n", 0, finding.start) + 1
    end = data.find(b"\n", finding.start)
    line = data[start : len(data) if end < 0 else end]
    before = _printable(line[: finding.start - start])
    part = _printable(line[finding.start - start : finding.end - start])
    after = _printable(line[finding.end - start :])
    if len(before) > _LONGEST_LINE // 2:
        before = "…" + before[-_LONGEST_LINE // 2 :]
    shown = before + part + after
    if len(shown) > _LONGEST_LINE:
        shown = shown[: _LONGEST_LINE - 1] + "…"
    width = max(1, min(len(part), len(shown) - len(before)))
    return shown, " " * len(before) + "^" * width


def _printable(data: bytes) -> str:
    return "".join(_characters(data.decode("utf-8", "replace")))


def _characters(text: str) -> Iterator[str]:
    for character in text:
        yield character if character.isprintable() else " "
