"""Patterns over commands: deny and ask need one match, allow needs all; nothing is smuggled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import limpet
from limpet import PermissionPolicy
from limpet.policy import Approval

ALLOWED = ("git status *", "git log *", "npm run *", "ls *", "cat *", "grep *", "make * > *")


def decide(command: str, **patterns: tuple[str, ...] | str) -> str:
    """Return what permissions alone decide about a command."""
    permissions = PermissionPolicy(**patterns)  # type: ignore[arg-type]  # checked by itself
    verdict = limpet.Bash(rules="none", permissions=permissions).check(command)
    if verdict.decision != "allow":
        assert {finding.rule for finding in verdict.findings} <= {"permission", "not-understood"}
    return verdict.decision


# Patterns


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("git commit *", "git commit"),
        ("git commit *", "git commit -m 'a b'"),
        ("git commit", "git commit"),
        ("npm run test:*", "npm run test:unit"),
        ("rm * -r *", "rm a b -r c"),
        ("* --force", "anything at all --force"),
        ("git push * main", "git push -u origin main"),
        ("ls", "/bin/ls"),
        ("ls", "'l's"),
        ("ls", "./ls"),
        ("git push *", "git -C x push origin"),
        ("python3.?", "python3.9"),
        ("echo é", "echo é"),
    ],
)
def test_a_pattern_matches_words(pattern: str, command: str) -> None:
    assert decide(command, deny=(pattern,)) == "deny"


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("git commit", "git commit -m x"),
        ("git commit *", "git commit-tree"),
        ("git commit *", "echo git commit x"),
        ("git commit *", "echo 'git commit x'"),
        ("npm run test:*", "npm run build"),
        ("ls", "lsof"),
        ("* --force", "git push --force-with-lease"),
    ],
)
def test_a_pattern_matches_nothing_else(pattern: str, command: str) -> None:
    assert decide(command, deny=(pattern,)) == "allow"


@pytest.mark.parametrize("pattern", ["", "  ", "> f"])
def test_a_pattern_names_a_command(pattern: str) -> None:
    with pytest.raises(ValueError, match="name a command"):
        PermissionPolicy(allow=(pattern,))


def test_patterns_are_several() -> None:
    with pytest.raises(TypeError, match="of strings"):
        PermissionPolicy(deny="git *")  # type: ignore[arg-type]  # that is what is tested
    with pytest.raises(ValueError, match="unmatched"):
        PermissionPolicy(unmatched="maybe")  # type: ignore[arg-type]  # that is what is tested


# What decides


def test_without_patterns_everything_is_allowed() -> None:
    assert decide("anything; goes > here") == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "curl x",
        "ls; curl x",
        "ls && curl x || true",
        "ls | curl x",
        "echo $(curl x)",
        'echo "`curl x`"',
        "cat <(curl x)",
        "cat <<E\n$(curl x)\nE",
        "x=$(curl x)",
        "if true; then curl x; fi",
        "f() { curl x; }",
        "sudo -u a curl x",
        "env A=1 curl x",
        "timeout 5 nice curl x",
        "bash -c 'ls; curl x'",
        "eval 'curl x'",
        "echo x | xargs curl",
        "find . -exec curl {} +",
        "echo 'curl x' | bash",
        "/usr/bin/curl x",
        "'cu'rl x",
        "A=curl; $A x",
        "trap 'curl x' EXIT",
    ],
)
def test_one_match_anywhere_denies_or_asks(command: str) -> None:
    assert decide(command, deny=("curl *",)) == "deny"
    assert decide(command, ask=("curl *",)) == "ask"
    assert decide(command, deny=("wget *",), ask=("wget *",)) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git status -s && git log --oneline | cat",
        "cd x && npm run build; echo done",
        "ls -la 2>/dev/null | grep x",
        "ls 2>&1 | cat",
        "if git status; then ls; else echo no; fi",
        "for i in a b; do cat $i; done",
        'echo "$(git status)"',
        "cat <(git log)",
        "time ls",
        "timeout 5 npm run test",
        "bash -c 'ls && cat x'",
        "ls | xargs cat",
        "f() { ls; }; f",
        "x=1; echo $x",
        "FOO=1 npm run build",
        "make all > log",
        "[ -f x ] && cat x",
        "cat <<E\ntext\nE",
        "cat < file",
        "# nothing",
        "",
    ],
)
def test_allow_needs_every_command_covered(command: str) -> None:
    assert decide(command, allow=ALLOWED) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "touch x",
        "git push",
        "git status; touch x",
        "git status | tee x",
        "git status $(touch x)",
        "git status `touch x`",
        'git status "$(touch x)"',
        "git status <(touch x)",
        "git status > >(touch x)",
        "git status <<E\n$(touch x)\nE",
        "git status <<E\n`touch x`\nE",
        "git status > out",
        "git status >> out",
        "git status &> out",
        "git status >| out",
        "echo x > out",
        "> out",
        "{ ls; } > out",
        "for i in a; do ls; done > out",
        "cat x 1<> out",
        "(ls; touch x)",
        "ls & touch x",
        "ls\ntouch x",
        "ls || touch x",
        "sudo ls",
        "env ls",
        "sudo git status",
        "xargs touch",
        "time touch x",
        "bash -c 'touch x'",
        'bash -c "$x"',
        "bash script.sh",
        "bash",
        "echo 'touch x' | bash",
        "eval 'touch x'",
        'eval "$x"',
        "source x",
        "trap 'touch x' EXIT",
        "PATH=/x ls",
        "PATH=/x; ls",
        "IFS=x; ls",
        "read PATH <<< /x; ls",
        "printf -v PATH /x; ls",
        "LD_PRELOAD=/x ls",
        "GIT_SSH_COMMAND=x git log",
        "PAGER=x git log",
        "export PATH=/x; ls",
        "ls() { touch x; }; ls",
        "f() { touch x; }; f",
        "alias ls=touch",
        "exec touch x",
        "command touch x",
        "coproc touch x",
        "./ls x",
        "evil/ls x",
        "find . -exec touch {} +",
        "$x",
        "$(echo touch) x",
        "ls )",
    ],
)
def test_what_is_not_covered_is_asked_about(command: str) -> None:
    assert decide(command, allow=ALLOWED) == "ask"


def test_a_pattern_that_speaks_of_writing_allows_it() -> None:
    assert decide("make x > f", allow=("make * > *",)) == "allow"
    assert decide("make x > f", allow=("make *",)) == "ask"


def test_what_is_unmatched_can_be_denied_asked_about_or_allowed() -> None:
    assert decide("touch x", allow=("ls *",), unmatched="deny") == "deny"
    assert decide("touch x", unmatched="ask") == "ask"
    assert decide("touch x", allow=("ls *",), unmatched="allow") == "allow"
    assert decide("ls x", allow=("ls *",), unmatched="deny") == "allow"


def test_deny_goes_before_ask_and_ask_before_allow() -> None:
    assert decide("git push", allow=("git *",), ask=("git push *",)) == "ask"
    assert decide("git push", allow=("git *",), deny=("git push *",)) == "deny"
    assert decide("git push", ask=("git *",), deny=("git push *",)) == "deny"
    assert decide("git log", allow=("git *",), ask=("git push *",)) == "allow"


def test_permissions_do_not_lift_a_rule() -> None:
    bash = limpet.Bash(permissions=PermissionPolicy(allow=("git *",)))
    verdict = bash.check("git add -A")
    assert verdict.decision == "deny"
    assert [finding.rule for finding in verdict.findings] == ["git-add-blind"]


def test_a_finding_names_the_pattern_or_the_command_that_lacks_one() -> None:
    denied = limpet.Bash(permissions=PermissionPolicy(deny=("curl *",))).check("ls; curl é x")
    assert [denied.part(finding) for finding in denied.findings] == ["curl é x"]
    assert "'curl *'" in denied.describe()
    asked = limpet.Bash(permissions=PermissionPolicy(allow=("ls *",))).check("ls; curl x")
    assert [asked.part(finding) for finding in asked.findings] == ["curl x"]
    assert "'curl *'" in asked.findings[0].advice
    assert "allow" in asked.findings[0].advice


# Approval


ASK_TOUCH = PermissionPolicy(ask=("touch *",))
Answer = Callable[[Approval], bool | Awaitable[bool]]


def run(bash: limpet.Bash, where: Path, *, is_async: bool) -> limpet.Result:
    """Run a command that leaves a trace if it runs."""
    ctx = limpet.ToolContext(where)
    if is_async:
        return asyncio.run(bash.run("touch ran", ctx=ctx, description="leave a trace"))
    return bash.run_sync("touch ran", ctx=ctx, description="leave a trace")


async def _approve_later(_: Approval) -> bool:
    await asyncio.sleep(0)
    return True


async def _refuse_later(_: Approval) -> bool:
    await asyncio.sleep(0)
    return False


@pytest.mark.parametrize("is_async", [False, True])
def test_what_is_approved_runs(is_async: bool, tmp_path: Path) -> None:
    asked: list[Approval] = []

    def approve(approval: Approval) -> bool:
        asked.append(approval)
        return True

    bash = limpet.Bash(permissions=ASK_TOUCH, approve=approve)
    result = run(bash, tmp_path, is_async=is_async)
    assert result.ok
    assert (tmp_path / "ran").exists()
    assert [(a.command, a.description) for a in asked] == [("touch ran", "leave a trace")]
    assert asked[0].verdict.decision == "ask"
    assert asked[0].ctx is not None
    assert result.verdict == asked[0].verdict


@pytest.mark.parametrize("is_async", [False, True])
def test_what_is_not_approved_does_not_run(is_async: bool, tmp_path: Path) -> None:
    bash = limpet.Bash(permissions=ASK_TOUCH, approve=lambda _: False)
    result = run(bash, tmp_path, is_async=is_async)
    assert result.outcome is limpet.Outcome.REFUSED
    assert list(tmp_path.iterdir()) == []
    assert result.hint is not None
    assert "not approved" in result.hint


def test_approval_may_be_awaited(tmp_path: Path) -> None:
    bash = limpet.Bash(permissions=ASK_TOUCH, approve=_approve_later)
    assert run(bash, tmp_path, is_async=True).ok
    assert (tmp_path / "ran").exists()


def test_a_refusal_may_be_awaited(tmp_path: Path) -> None:
    bash = limpet.Bash(permissions=ASK_TOUCH, approve=_refuse_later)
    assert run(bash, tmp_path, is_async=True).outcome is limpet.Outcome.REFUSED
    assert list(tmp_path.iterdir()) == []


def _fail(_: Approval) -> bool:
    raise LookupError("nobody at home")


def _answer_nothing(_: Approval) -> bool:
    return None  # type: ignore[return-value]  # a mistake of the host


@pytest.mark.parametrize("is_async", [False, True])
def test_where_asking_fails_nothing_runs(is_async: bool, tmp_path: Path) -> None:
    bash = limpet.Bash(permissions=ASK_TOUCH, approve=_fail)
    with pytest.raises(LookupError, match="nobody at home"):
        run(bash, tmp_path, is_async=is_async)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_async", [False, True])
def test_no_answer_is_no_approval(is_async: bool, tmp_path: Path) -> None:
    bash = limpet.Bash(permissions=ASK_TOUCH, approve=_answer_nothing)
    with pytest.raises(TypeError):
        run(bash, tmp_path, is_async=is_async)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_async", [False, True])
def test_with_nobody_to_ask_it_is_refused_and_said_how_to_allow(
    is_async: bool, tmp_path: Path
) -> None:
    result = run(limpet.Bash(permissions=ASK_TOUCH), tmp_path, is_async=is_async)
    assert result.outcome is limpet.Outcome.REFUSED
    assert list(tmp_path.iterdir()) == []
    assert result.hint is not None
    assert "touch ran" in result.hint
    assert "`approve`" in result.hint
    assert "`allow`" in result.hint


def test_what_is_denied_or_allowed_is_not_asked_about(tmp_path: Path) -> None:
    bash = limpet.Bash(permissions=PermissionPolicy(deny=("touch *",)), approve=_fail)
    assert run(bash, tmp_path, is_async=False).outcome is limpet.Outcome.REFUSED
    assert bash.run_sync("true").ok


def test_approve_must_be_callable() -> None:
    with pytest.raises(TypeError, match="callable"):
        limpet.Bash(approve=True)
