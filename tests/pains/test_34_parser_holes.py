"""P: what tree-sitter-bash misreads is read rightly; what cannot be read is said so."""

from __future__ import annotations

import pytest

import limpet
from limpet.command.parse import parse

HOLES = {
    "a | b | c\nrm -rf ~ || true": ["a", "b", "c", "rm", "true"],
    "cat <<E\n`rm x` $(ls)\nE": ["rm", "ls", "cat"],
    "git commit -F - <<'M' 2>&1 | rm -rf x\nrm\nM": ["git", "rm"],
    "echo ${ rm x; }": ["rm", "echo"],
    "cat <<A <<'B' | sh\n1\nA\nls\nB": ["cat", "sh", "ls"],
    "exec 3<>f": ["exec"],
    "time { rm x; } | cat": ["rm", "cat"],
    "coproc X ( rm x )": ["rm"],
    "cat a >f <<E 0<&3 b\nE": ["cat"],
    "{rm,-r,x}": ["rm"],
    "[[ -e ~ ]] && rm x": ["[[", "rm"],
    'echo "${x:-`rm y`}"': ["rm", "echo"],
    "r\\\nm x": ["rm"],
}


@pytest.mark.parametrize(("text", "names"), HOLES.items())
def test_a_hole_is_closed(text: str, names: list[str]) -> None:
    assert [command.name for command in parse(text).commands] == names


@pytest.mark.parametrize("text", ["rm -rf ( /", "if rm -rf x", "git add -A ) ("])
def test_what_cannot_be_read_and_names_a_rules_command_needs_approval(text: str) -> None:
    verdict = limpet.check(text)
    assert verdict.decision in ("ask", "deny")


def test_what_cannot_be_read_and_names_none_passes_with_a_note() -> None:
    verdict = limpet.check("echo ) hello (")
    assert verdict.decision == "allow"
    assert {finding.rule for finding in verdict.findings} == {"not-understood"}


@pytest.mark.parametrize(
    "text", ["a|" * 100_000, "(" * 50_000, "$(" * 50_000, "x=(" * 50_000, "${" * 50_000]
)
def test_what_would_take_the_parser_minutes_is_not_given_to_it(text: str) -> None:
    assert limpet.check(text).findings[0].rule == "not-understood"
