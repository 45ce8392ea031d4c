"""Commands of every kind, each judged right: the fatal ones refused, the ordinary ones let be.

In both files a command stands on one line, with `\\n` for the ends of its lines; in `block.txt`
after the id of the rule that refuses it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import limpet

HERE = Path(__file__).parent


def lines_of(name: str) -> list[str]:
    """Return the lines of a file beside this one, as the commands were written."""
    text = (HERE / name).read_text(encoding="utf-8")
    return [line.replace("\\n", "\n") for line in text.splitlines()]


BLOCK = [tuple(line.split(" ", 1)) for line in lines_of("block.txt")]
ALLOW = lines_of("allow.txt")


def is_refused_by(rule: str, command: str) -> bool:
    """Tell whether a command is refused, and by that rule."""
    verdict = limpet.check(command, "strict" if rule == "sudo-rm" else "default")
    return verdict.decision == "deny" and rule in {finding.rule for finding in verdict.findings}


@pytest.mark.parametrize("rule", sorted({rule for rule, _ in BLOCK}))
def test_fatal_commands_are_refused_by_their_rule(rule: str) -> None:
    commands = [command for one, command in BLOCK if one == rule]
    assert [command for command in commands if not is_refused_by(rule, command)] == []


def test_ordinary_commands_are_allowed_without_a_word() -> None:
    verdicts = [limpet.check(command) for command in ALLOW]
    assert [verdict for verdict in verdicts if verdict.decision != "allow"] == []
    assert [verdict for verdict in verdicts if verdict.findings] == []


def test_the_corpus_is_large_and_has_every_rule() -> None:
    assert len(BLOCK) >= 140
    assert len(ALLOW) >= 140
    assert len({command for _, command in BLOCK}) == len(BLOCK)
    assert len(set(ALLOW)) == len(ALLOW)
    assert len({rule for rule, _ in BLOCK}) == 14
