"""Which rules there are is the policy's to say: a pack, more, and fewer."""

from __future__ import annotations

import pytest

import limpet
from limpet import RulePolicy
from limpet.command.model import Command, Word
from limpet.safety.rule import Rule


def rules_of(command: str, rules: RulePolicy | None = None) -> set[str]:
    """Return the ids of the rules that refuse a command, by default those of the strict pack."""
    verdict = limpet.check(command, rules or RulePolicy(pack="strict"))
    assert verdict.decision == ("deny" if verdict.findings else "allow")
    return {finding.rule for finding in verdict.findings}


def test_the_default_pack_is_the_default() -> None:
    assert limpet.RulePolicy().pack == "default"
    assert limpet.check("git add -A").decision == "deny"
    assert limpet.Bash().check("git add -A").decision == "deny"
    assert limpet.check("sudo rm x").decision == "allow"


def test_the_pack_none_refuses_nothing() -> None:
    assert limpet.check("rm -rf /", "none") == ("rm -rf /", "allow", ())
    assert limpet.Bash(rules="none").check("rm -rf / )").findings == ()


def test_a_pack_can_be_given_by_its_name() -> None:
    assert limpet.Bash(rules="strict").policy.rules == RulePolicy(pack="strict")
    assert limpet.check("sudo rm x", "strict").decision == "deny"
    with pytest.raises(ValueError, match="pack must be"):
        limpet.Bash(rules="lax")
    with pytest.raises(TypeError, match="RulePolicy"):
        limpet.Bash(rules=1)


def test_the_strict_pack_has_the_default_rules_and_more() -> None:
    assert "git-add-blind" in rules_of("git add -A")
    assert "sudo-rm" in rules_of("sudo rm x")
    assert "sudo-rm" in rules_of("doas rm x")
    assert rules_of("ls -la src") == set()


@pytest.mark.parametrize("text", ["rm -rf", "rm -r", "rm /", "dd if=", "mkfs", "fdisk"])
def test_the_strict_pack_forbids_each_destructive_pattern_anywhere(text: str) -> None:
    for command in (text, f"{text} x", f"echo '{text}'", f'grep "{text}" file'):
        assert "destructive-pattern" in rules_of(command)
    assert "destructive-pattern" not in rules_of("rm file")


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /",
        "rm   -rf\t/x",
        "sudo rm x",
        "sudo  rm x",
        "echo > /dev/sda",
        "echo >/dev/sdz",
        "dd bs=1 of=/dev/x",
        "mkfs.ext4 x",
        "fdisk -l",
        ":(){ :|:& };:",
        "echo 'sudo rm'",
    ],
)
def test_the_strict_pack_forbids_each_dangerous_pattern(command: str) -> None:
    assert "dangerous-pattern" in rules_of(command)


@pytest.mark.parametrize(
    "command",
    [
        "ls; rm x",
        "ls;rm x",
        "ls && rm x",
        "ls &&rm x",
        "echo $(rm x)",
        "echo $(ls; rm x)",
        "echo `rm x`",
        ":(){ :|:& };:",
        ":() { :|:& } ;:",
    ],
)
def test_the_strict_pack_forbids_injected_removals(command: str) -> None:
    assert "command-injection" in rules_of(command)


@pytest.mark.parametrize(
    "command",
    [
        "a; b",
        "a & b",
        "a && b",
        "a &",
        "echo `a`",
        "echo ';'",
        "echo $(a)",
        "echo $((1))",
        "echo $1",
        "echo $?",
        "echo $",
        "echo ${x:-y}",
        "echo ${1}",
        "echo {a,b}",
        "find . -exec ls {} +",
        "awk '{print}' x",
        "a 2>&1",
    ],
)
def test_the_strict_pack_restricts_special_characters(command: str) -> None:
    assert "restricted-character" in rules_of(command)


@pytest.mark.parametrize(
    "command",
    [
        "ls -la",
        "echo $HOME ${HOME} $_x ${A1}",
        "echo \"$USER\" '$HOME'",
        "git status | head -5",
        "pytest -q tests > log",
        "rm file",
        "grep -r 'x|y' src",
        "a || b",
        "echo '(x)'",
        "rmdir x",
        "ls # comment",
        "python -m http.server",
    ],
)
def test_the_strict_pack_allows_plain_commands(command: str) -> None:
    assert rules_of(command) == set()


def test_text_rules_can_be_switched_off_by_id() -> None:
    rules = RulePolicy(pack="strict", off=("restricted-character",))
    assert rules_of("a; b", rules) == set()
    assert rules_of("echo 'rm -rf x'; b", rules) == {"destructive-pattern"}


def test_the_default_pack_has_no_text_rules() -> None:
    assert rules_of("echo 'rm -rf /'; ls &", RulePolicy()) == set()


@pytest.mark.parametrize("pack", ["default", "none"])
def test_blocked_patterns_are_literal_text_anywhere(pack: limpet.policy.Pack) -> None:
    rules = RulePolicy(pack=pack, blocked_patterns=("drop table", "a.*b", "é"))
    assert rules_of("psql -c 'drop table x'", rules) == {"blocked-pattern"}
    assert rules_of("grep 'a.*b' x", rules) == {"blocked-pattern"}
    assert rules_of("echo é", rules) == {"blocked-pattern"}
    assert rules_of("echo acb; psql -c 'DROP TABLE x'", rules) == set()


def test_a_blocked_pattern_is_named_with_its_place() -> None:
    rules = RulePolicy(blocked_patterns=("prod",))
    verdict = limpet.check("echo é; deploy prod now", rules)
    assert [verdict.part(finding) for finding in verdict.findings] == ["prod"]
    assert "'prod'" in verdict.describe()


def test_blocked_patterns_cannot_be_empty_or_one_string() -> None:
    with pytest.raises(ValueError, match="empty"):
        RulePolicy(blocked_patterns=("",))
    with pytest.raises(TypeError, match="of strings"):
        RulePolicy(blocked_patterns="x")  # type: ignore[arg-type]  # that is what is tested
    with pytest.raises(TypeError, match="of strings"):
        RulePolicy(off="mkfs")  # type: ignore[arg-type]  # that is what is tested


def _second_word(command: Command) -> Word | None:
    return command.words[1] if len(command.words) > 1 else None


DEPLOY = Rule(
    id="no-deploy",
    message="deployments are made by people",
    advice="open a request",
    find=_second_word,
    names=("deploy",),
)


@pytest.mark.parametrize("pack", ["default", "strict", "none"])
def test_a_policy_can_add_rules_to_any_pack(pack: limpet.policy.Pack) -> None:
    rules = RulePolicy(pack=pack, extra=(DEPLOY,))
    verdict = limpet.check("sudo deploy prod", rules)
    assert [(f.rule, verdict.part(f)) for f in verdict.findings] == [("no-deploy", "prod")]
    assert limpet.check("echo deploy prod", rules).decision == "allow"
    off = RulePolicy(pack=pack, extra=(DEPLOY,), off=("no-deploy",))
    assert limpet.check("deploy prod", off).decision == "allow"


def test_a_rule_without_names_is_about_all_commands() -> None:
    rule = DEPLOY._replace(names=(), find=_second_word)
    rules = RulePolicy(pack="none", extra=(rule,))
    assert limpet.check("a; b | c d", rules).decision == "deny"
    assert limpet.check("a; b | c", rules).decision == "allow"
    both = RulePolicy(extra=(rule,))
    assert limpet.check("git status", both).decision == "deny"


def test_a_command_that_is_no_text_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(TypeError, match="must be a string"):
        limpet.check(b"ls")  # type: ignore[arg-type]  # that is what is tested
