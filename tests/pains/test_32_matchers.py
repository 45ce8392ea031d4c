"""P: every simple command is visited, whatever syntax, wrapper or spelling stands around it."""

from __future__ import annotations

import pytest

import limpet

DENIED = "git push --force"

AROUND = [
    "{}",
    "true && {}",
    "false || {}",
    "true; {}",
    "{} &",
    "sleep 0 & {}",
    "ls | {}",
    "{} | cat",
    "ls\n{}",
    "echo $({})",
    'echo "$({})"',
    "echo `{}`",
    "cat <({})",
    "tee >({}) < /dev/null",
    "({})",
    "{{ {}; }}",
    "if {}; then :; fi",
    "if :; then :; elif :; then {}; else :; fi",
    "for i in 1 2; do {}; done",
    "while :; do {}; done",
    "case x in x) {} ;; esac",
    "select x in a; do {}; done",
    "f() {{ {}; }}; f",
    "x=$({})",
    "a=( $({}) )",
    "echo $(( $({}) + 1 ))",
    "[[ -n $({}) ]]",
    "cat <<EOF\n$({})\nEOF",
    "bash <<'EOF'\n{}\nEOF",
    "cat <<EOF | sh\n{}\nEOF",
    "bash <<< '{}'",
    "echo '{}' | bash",
    "bash -c '{}'",
    'sh -ec "{}"',
    "eval '{}'",
    "source <(echo '{}')",
    "trap '{}' EXIT",
    "su -c '{}' app",
    "ssh -p 22 host {}",
    "watch -n 5 '{}'",
    "env -i A=1 {}",
    "sudo -u app -- {}",
    "doas {}",
    "nice -n 5 ionice -c3 {}",
    "nohup {}",
    "timeout -k 1 5 {}",
    "time -p {}",
    "! {}",
    "coproc {}",
    "stdbuf -oL {}",
    "setsid {}",
    "command {}",
    "exec {}",
    "xargs -n1 {}",
    "parallel ::: '{}'",
    r"find . -exec {} \;",
    "A=1 B=2 {}",
    "2>/dev/null {}",
]
SPELLED = [
    "git push -f",
    "git push -fu origin main",
    "git -C x push --force",
    "git -c a.b=c --git-dir x push origin +main",
    "'git' \"push\" --force",
    r"g\it push \
      --force",
    "/usr/bin/git push --force",
    "git push > log --force",
    "git push $'--force'",
    "F=--force; git push $F",
    "git {push,--force}",
]


@pytest.mark.parametrize("around", AROUND)
def test_a_command_is_found_in(around: str) -> None:
    verdict = limpet.check(around.format(DENIED))
    assert verdict.decision == "deny"
    assert verdict.findings[0].rule == "git-push-force"


@pytest.mark.parametrize("command", SPELLED)
def test_a_spelling_is_seen_through(command: str) -> None:
    assert limpet.check(command).decision == "deny"


@pytest.mark.parametrize(
    "command", ["git status && curl x", "timeout 5 ls", "git log > ~/.bashrc", "PATH=x git status"]
)
def test_allowing_needs_every_command_covered(command: str) -> None:
    bash = limpet.Bash(permissions=limpet.PermissionPolicy(allow=("git *",)))
    assert bash.check(command).decision == "ask"
    assert bash.check("git status && git log | git shortlog").decision == "allow"


def test_redirect_targets_are_operands() -> None:
    assert limpet.check("true > /dev/sda").findings[0].rule == "device-redirect"
    assert limpet.check("exec 3> /etc/passwd").findings[0].rule == "etc-overwrite"
