"""Each rule refuses what it says it refuses, and nothing that it says it permits."""

from __future__ import annotations

import pytest

import limpet
from limpet.safety.rule import Rule
from limpet.safety.rules import DEFAULT, STRICT
from limpet.safety.rules.remove import SUDO_RM

IDS = [
    "git-add-blind",
    "git-push-force",
    "rm-dangerous",
    "mkfs",
    "fdisk",
    "dd-device",
    "device-redirect",
    "fork-bomb",
    "chmod-777",
    "etc-overwrite",
    "pipe-to-shell",
    "encoded-shell",
    "netcat-exec",
    "sudo-rm",
]


def only(rule: Rule) -> limpet.RulePolicy:
    """Return a policy with one rule and no other."""
    return limpet.RulePolicy(pack="none", extra=(rule,))


def rules_of(verdict: limpet.Verdict) -> set[str]:
    """Return the ids of the rules that have something to say."""
    return {finding.rule for finding in verdict.findings}


def test_the_rules_are_those_of_the_design() -> None:
    assert [rule.id for rule in STRICT] == IDS
    assert [rule.id for rule in DEFAULT] == IDS[:-1]


@pytest.mark.parametrize("rule", STRICT, ids=lambda rule: rule.id)
def test_a_rule_says_what_and_why_and_what_instead_and_gives_examples(rule: Rule) -> None:
    assert rule.message
    assert rule.advice
    assert not rule.message.endswith(".")
    assert len(rule.refuses) >= 2
    assert len(rule.permits) >= 2
    assert rule.names or rule.watches


@pytest.mark.parametrize("rule", STRICT, ids=lambda rule: rule.id)
def test_what_a_rule_refuses_is_refused_by_it_alone(rule: Rule) -> None:
    for command in rule.refuses:
        verdict = limpet.check(command, only(rule))
        assert (verdict.decision, rules_of(verdict)) == ("deny", {rule.id}), command
        assert rule.id in rules_of(limpet.check(command, "strict")), command


@pytest.mark.parametrize("rule", STRICT, ids=lambda rule: rule.id)
def test_what_a_rule_permits_is_permitted(rule: Rule) -> None:
    for command in rule.permits:
        assert limpet.check(command, only(rule)).decision == "allow", command
        assert limpet.check(command).decision == "allow", command


@pytest.mark.parametrize("rule", STRICT, ids=lambda rule: rule.id)
def test_a_rule_that_is_switched_off_refuses_nothing(rule: Rule) -> None:
    on = limpet.RulePolicy(extra=(SUDO_RM,))
    off = limpet.RulePolicy(extra=(SUDO_RM,), off=(rule.id,))
    for command in rule.refuses:
        assert rule.id in rules_of(limpet.check(command, on)), command
        assert rule.id not in rules_of(limpet.check(command, off)), command


def test_switching_all_rules_off_allows_everything() -> None:
    off = limpet.RulePolicy(off=(*IDS, "not-understood"))
    for command in (command for rule in STRICT for command in rule.refuses):
        assert limpet.check(command, off) == (command, "allow", ())


PRECIOUS = [
    *("/", "//", "/.", "/..", "/*", "/etc", "/usr", "/usr/", "/home", "/var", "/boot/", "/bin"),
    *("~", "~/", "~/*", '"$HOME"', "$HOME/", "${HOME}", "${HOME:-x}", "~root", "/home/ann"),
    *("/root", "/Users/ann/", ".git", "./.git", ".git/", '".git"', ".git/."),
    *("*", "./*", ".*", ".", "./", "..", "../", "../..", "'/'", '"/"', "/home/../", "~/.."),
    *("x /", "-- /", "{/,x}", "$PWD", '"$(pwd)"', "/usr/*", "/tmp/.."),
]


@pytest.mark.parametrize("flags", ["-rf", "-fr", "-r -f", "-Rf", "--recursive --force", "-vrfd"])
def test_rm_of_what_cannot_be_got_back_is_refused(flags: str) -> None:
    lines = [f"rm {flags} {target}" for target in PRECIOUS]
    assert [line for line in lines if limpet.check(line).decision != "deny"] == []


@pytest.mark.parametrize(
    "command",
    [
        *("rm -r /", "rm -R ~", "rm --recursive /etc", "rm -r / -i", "rm / -r", "rm -r -- /"),
        *("rm / -rf", "rm -r / -f", "rm -rf --no-preserve-root /", "/bin/rm -rf /", "\\rm -rf /"),
        *("find / -delete", "find ~ -delete", "find / -exec rm -rf {} +", "find . -delete"),
        *("find / -type f -delete", "cd / && rm -rf *", "D=/; rm -rf $D", "rm -rf 2>/dev/null /"),
    ],
)
def test_other_spellings_of_the_fatal_removal_are_refused(command: str) -> None:
    assert rules_of(limpet.check(command)) == {"rm-dangerous"}


@pytest.mark.parametrize(
    "command",
    [
        *("rm -rf build/", "rm -rf ./dist", "rm -rf /tmp/x", "rm -rf node_modules", "rm -f *.pyc"),
        *("rm -rf *.egg-info", "rm -rf ~/.cache/pip", "rm -rf $HOME/project/build", "rm -rf '*'"),
        *(
            "rm -rf /home/ann/project/build",
            "rm -rf /var/lib/x/y",
            'rm -rf "$D"',
            "rm *",
            "rm -f *",
        ),
        *("rm -f /etc/x", "rm -rf .github", "rm -rf .gitignore", "rm -rf ../build", "rm -r .git"),
        *("rm -rf ./.git_backup", "rm -rf '~'", "rm -rf -- -x", "rm -rf build/*", "rmdir /x"),
        *("find . -name '*.o' -delete", "find build -delete", "find /tmp/x -delete", "rm --help"),
        *("find . -name x -exec rm {} +", "ls -rf /", "git rm -rf .", "docker rm -f x"),
    ],
)
def test_ordinary_removals_are_left_alone(command: str) -> None:
    assert limpet.check(command).decision == "allow"


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("git -C x -c a=b --git-dir=y add -A", "git-add-blind"),
        ("git add --al", "git-add-blind"),
        ("git add -vA", "git-add-blind"),
        ("git add -f .", "git-add-blind"),
        ("git add src .", "git-add-blind"),
        ("git add -- .", "git-add-blind"),
        ("git add '*'", "git-add-blind"),
        ("git stage -A", "git-add-blind"),
        ("git push -f", "git-push-force"),
        ("git -C x push origin main --force", "git-push-force"),
        ("git push origin +a:b", "git-push-force"),
        ("git push --mirror", "git-push-force"),
        ("git push --force-with-lease --force", "git-push-force"),
    ],
)
def test_git_is_understood_with_its_own_options(command: str, rule: str) -> None:
    assert rules_of(limpet.check(command)) == {rule}


@pytest.mark.parametrize(
    "command",
    [
        *(
            "git add x",
            "git add -u",
            "git add -p .",
            "git add -n .",
            "git add ./src",
            "git add .env",
        ),
        *("git add :/src", "git add *.py", "git commit -am x", "git log -A", "git add --help"),
        *(
            "git push",
            "git push --force-with-lease",
            "git push --force-if-includes",
            "git push -u o x",
        ),
        *(
            "git push origin a+b",
            "git push origin feature/-f",
            "git fetch -f",
            "git push --no-force",
        ),
        *(
            "git push --force-with-lease=main:abc",
            "git push -n -f",
            "git tag -f x",
            "git checkout -f",
        ),
    ],
)
def test_ordinary_git_is_left_alone(command: str) -> None:
    assert limpet.check(command).decision == "allow"


@pytest.mark.parametrize("command", ["if then", "echo )", "case x in ls", "a | | ) b"])
def test_what_is_not_understood_passes_with_a_note(command: str) -> None:
    verdict = limpet.check(command)
    assert verdict.decision == "allow"
    assert rules_of(verdict) == {"not-understood"}


@pytest.mark.parametrize("command", ["case x in rm -rf /", "case x in y) case git add -A"])
def test_what_is_not_understood_and_names_what_a_rule_is_about_is_asked_about(
    command: str,
) -> None:
    verdict = limpet.check(command)
    assert verdict.decision == "ask"
    assert rules_of(verdict) == {"not-understood"}


@pytest.mark.parametrize("command", ["echo ( ; rm -rf /", "if rm -rf / )", "rm -rf /\nfor ("])
def test_what_is_not_understood_does_not_hide_what_is(command: str) -> None:
    assert limpet.check(command).decision == "deny"


def test_the_note_can_be_switched_off() -> None:
    assert limpet.check("echo )", limpet.RulePolicy(off=("not-understood",))).findings == ()


def test_one_line_may_break_several_rules() -> None:
    verdict = limpet.check("git add -A && git push -f; chmod -R 777 . | mkfs.ext4 /dev/sda")
    assert rules_of(verdict) == {"git-add-blind", "git-push-force", "chmod-777", "mkfs"}
