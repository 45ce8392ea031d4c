"""Whatever the words: quoting never makes a command refused, wrapping never makes it allowed."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limpet
from limpet.safety.rules import DEFAULT

REFUSED = [command for rule in DEFAULT for command in rule.refuses]
PERMITTED = [command for rule in DEFAULT for command in rule.permits]
PRINTERS = [
    "echo {}",
    "echo -n {} >&2",
    "printf '%s\\n' {}",
    "grep -rn -- {} src",
    "grep -e {} file | wc -l",
    "rg {}",
    "git commit -m {}",
    "git log --grep={}",
    "gh issue create --title x --body {}",
    "x={}",
    "echo {} > notes.txt",
    "echo {} | tee -a notes.txt",
    "cat <<< {}",
    "python3 -c {}",
    "test {} = x && echo same",
    "case x in {}) ls;; esac",
    "ls # {}",
]
WRAPPERS = [
    "sudo {words}",
    "sudo -u root -E {words}",
    "doas {words}",
    "env {words}",
    "env -i A=1 {words}",
    "nice -n 5 {words}",
    "ionice -c 3 {words}",
    "nohup {words}",
    "timeout -k 1 5 {words}",
    "time {words}",
    "stdbuf -oL {words}",
    "setsid {words}",
    "command {words}",
    "exec {words}",
    "busybox {words}",
    "bash -c {quoted}",
    "sh -ec {quoted}",
    "zsh -c {quoted}",
    "eval {quoted}",
    "su - root -c {quoted}",
    "ssh -p 22 host {quoted}",
    "watch -n 1 {quoted}",
    "trap {quoted} EXIT",
    "bash <<< {quoted}",
    "echo {quoted} | bash",
    "printf %s {quoted} | sh",
    "source <(echo {quoted})",
    "find x -exec bash -c {quoted} \\;",
    "xargs -I% bash -c {quoted}",
    "nice bash -c {quoted}",
    "! {words}",
    "{{ {line}; }}",
    "( {line} )",
    "ls; {line}",
    "ls && {line}",
    "ls || {line}",
    "{line} &",
    "if true; then {line}; fi",
    "for i in a b; do {line}; done",
    "while true; do {line}; done",
    "case x in x) {line};; esac",
    "echo $( {line} )",
    'echo "$( {line} )"',
    "x=$( {line} )",
    "cat <( {line} )",
    "f() {{ {line}; }}; f",
    "[[ -n x ]] && {line}",
    "ls | {{ {line}; }}",
    "cat <<'E' | bash\n{line}\nE\n",
    "bash <<'E'\n{line}\nE\n",
    "cat <<E\n$( {line} )\nE\n",
    "coproc {{ {line}; }}",
]
ONE_LINE = [wrapper for wrapper in WRAPPERS if "\n" not in wrapper and not wrapper.endswith("&")]

bounded = settings(max_examples=300, derandomize=True, deadline=None, database=None)


def decide(command: str) -> str:
    """Return the decision on a command."""
    return limpet.check(command).decision


def wrap(wrapper: str, line: str) -> str:
    """Put a line into a wrapper; one that takes words takes a shell with the line."""
    quoted = shlex.quote(line)
    is_simple = not set(line) & set("|;&<>(){}\n`$")
    words = line if is_simple else f"bash -c {quoted}"
    return wrapper.format(line=line, quoted=quoted, words=words)


@pytest.mark.parametrize("printer", PRINTERS)
def test_a_dangerous_command_that_is_quoted_is_no_danger(printer: str) -> None:
    lines = [printer.format(shlex.quote(command)) for command in REFUSED]
    assert [line for line in lines if decide(line) != "allow"] == []


@bounded
@given(st.sampled_from(PRINTERS[:-1]), st.text(max_size=40))
def test_any_text_that_is_quoted_is_no_danger(printer: str, text: str) -> None:
    assert decide(printer.format(shlex.quote(text.replace("\0", "")))) == "allow"


@bounded
@given(st.sampled_from(REFUSED), st.sampled_from(PERMITTED), st.sampled_from(PRINTERS[:-1]))
def test_several_quoted_commands_are_no_danger(one: str, two: str, printer: str) -> None:
    text = f"{one}; {two} && {one}"
    assert decide(printer.format(shlex.quote(text))) == "allow"


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_refused_command_in_a_wrapper_is_refused(wrapper: str) -> None:
    lines = [wrap(wrapper, command) for command in REFUSED]
    assert [line for line in lines if decide(line) != "deny"] == []


@bounded
@given(st.sampled_from(REFUSED), st.sampled_from(ONE_LINE), st.sampled_from(WRAPPERS))
def test_a_refused_command_in_two_wrappers_is_refused(command: str, one: str, two: str) -> None:
    inner = wrap(one, command)
    assert decide(wrap(two, inner)) == "deny"


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_permitted_command_in_a_wrapper_is_permitted(wrapper: str) -> None:
    lines = [wrap(wrapper, command) for command in PERMITTED]
    assert [line for line in lines if decide(line) != "allow"] == []


PIECES = [
    *"abé \t\n'\"`$(){}[]<>|&;\\#!*?~=-/0",
    *("$(", "${", "$((", "))", "<(", ">(", "<<E\n", "\nE\n", "<<<", "&&", "||", "$'", "\0"),
    *("rm ", "-rf ", "git ", "add ", "-A ", "push ", "-f ", "sudo ", "bash -c ", "eval ", "curl "),
    *(
        "dd ",
        "of=/dev/sda ",
        "mkfs ",
        "/dev/sda ",
        "> ",
        "/etc/x ",
        "chmod ",
        "-R ",
        "777 ",
        "nc -e ",
    ),
    *("if ", "then ", "fi", "for i in ", "do ", "done", "f() {", "}", "| bash", "base64 -d "),
]


@pytest.mark.parametrize("pack", ["default", "strict"])
def test_no_check_raises(pack: limpet.policy.Pack) -> None:
    bash = limpet.Bash(
        rules=limpet.RulePolicy(pack=pack, blocked_patterns=("x",)),
        permissions=limpet.PermissionPolicy(allow=("git *",), ask=("ls *",), deny=("curl *",)),
    )

    @bounded
    @given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
    def check(command: str) -> None:
        verdict = bash.check(command)
        size = len(command.encode("utf-8", "surrogatepass"))
        assert all(0 <= f.start <= f.end <= size for f in verdict.findings)
        assert (verdict.describe() == "allowed") == (verdict.decision == "allow")
        assert verdict.decision == "allow" or verdict.findings

    check()


@bounded
@given(st.binary(max_size=40))
def test_no_bytes_raise(raw: bytes) -> None:
    assert limpet.check(raw.decode("ascii", "surrogateescape")).decision in ("allow", "ask", "deny")
