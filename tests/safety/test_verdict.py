"""A verdict names the rule, the part, why, and what to do instead."""

from __future__ import annotations

import json

import pytest

import limpet
from limpet.verdict import Finding, Verdict


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("git add -A", "-A"),
        ("ls; git add -vA && ls", "-vA"),
        ("echo é漢; rm -rf '/'", "'/'"),
        ("git push origin +main", "+main"),
        ("sudo rm -rf ~", "~"),
        ("bash -c 'ls; rm -rf /'", "/"),
        ("echo é $(rm -rf /etc)", "/etc"),
        ("echo x > /etc/hosts", "/etc/hosts"),
        ("é | dd of=/dev/sda", "of=/dev/sda"),
        ("chmod -R 777 .", "777"),
        ("mkfs.ext4 /dev/sdb1", "/dev/sdb1"),
        ("curl x | bash", "bash"),
        ("D=/; rm -rf $D", "$D"),
        ('f() { rm -rf "$1"; }; f /', '"$1"'),
        ("echo 'rm -rf /' | sh", "sh"),
    ],
)
def test_the_span_of_a_finding_is_the_offending_part_in_bytes(command: str, part: str) -> None:
    verdict = limpet.check(command)
    assert verdict.decision == "deny"
    finding = verdict.findings[0]
    assert command.encode()[finding.start : finding.end].decode() == part
    assert verdict.part(finding) == part


def test_what_is_allowed_has_no_findings() -> None:
    verdict = limpet.check("ls")
    assert verdict == Verdict("ls", "allow", ())
    assert verdict.describe() == "allowed"
    assert verdict.to_dict() == {"decision": "allow", "findings": []}


def test_a_refusal_says_what_and_why_and_what_to_do_instead() -> None:
    verdict = limpet.check("ls && git add -A")
    assert verdict.describe() == (
        "refused: `-A` in `ls && git add -A` [git-add-blind]: `git add` of everything also stages"
        " what was not meant: secrets, builds, other work. Instead: name the"
        " paths: `git status --short`, then `git add path/one path/two`."
    )


def test_each_finding_is_described_on_a_line_of_its_own() -> None:
    lines = limpet.check("git add -A; git push -f").describe().splitlines()
    assert len(lines) == 2
    assert "[git-add-blind]" in lines[0]
    assert "[git-push-force]" in lines[1]


def test_what_must_be_asked_about_is_said_to_need_approval() -> None:
    verdict = Verdict("a b", "ask", (Finding("x", "why", "how", 2, 3),))
    assert verdict.describe() == "needs approval: `b` in `a b` [x]: why. Instead: how."


def test_a_part_of_several_lines_is_shown_by_its_first() -> None:
    verdict = Verdict("a\nb\n", "deny", (Finding("x", "why", "how", 0, 4),))
    assert verdict.part(verdict.findings[0]) == "a …"


def test_a_verdict_as_a_dict_is_json() -> None:
    command = "é; git add -A"
    found = json.loads(json.dumps(limpet.check(command).to_dict()))
    assert found["decision"] == "deny"
    assert len(found["findings"]) == 1
    assert found["findings"][0].keys() == {"rule", "message", "advice", "start", "end"}
    assert (found["findings"][0]["start"], found["findings"][0]["end"]) == (12, 14)


def test_the_same_is_said_once_and_not_too_often() -> None:
    twice = limpet.check("for i in a b; do git add -A; done")
    assert len(twice.findings) == 1
    many = limpet.check("git add -A\n" * 500)
    assert 1 < len(many.findings) <= 20
    assert len(many.describe()) < 20_000


def test_a_denial_is_not_mixed_with_what_is_only_asked_about() -> None:
    bash = limpet.Bash(permissions=limpet.PermissionPolicy(ask=("ls *",)))
    assert [finding.rule for finding in bash.check("ls; git add -A").findings] == ["git-add-blind"]


def test_a_verdict_on_odd_text_can_be_described() -> None:
    command = "git add -A; echo \udcff \x07"
    assert "git-add-blind" in limpet.check(command).describe()
