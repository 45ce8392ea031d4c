"""What a command runs besides itself is found behind its wrapper's own options."""

from __future__ import annotations

import pytest

from limpet.command.parse import parse
from limpet.command.words import HOME, UNKNOWN

WRAPPED = [
    "sudo rm x",
    "sudo -u root rm x",
    "sudo -uroot -g wheel -H -n rm x",
    "sudo -E -- rm x",
    "sudo --user=root --group wheel rm x",
    "sudo -iu root rm x",
    "sudo -s rm x",
    "sudo A=1 B=2 rm x",
    "/usr/bin/sudo rm x",
    "doas rm x",
    "doas -n -u root rm x",
    "env rm x",
    "env A=1 B=2 rm x",
    "env -i PATH=/bin rm x",
    "env -u A -C /srv rm x",
    "env --unset=A --chdir /srv rm x",
    "env - A=1 rm x",
    "env -- rm x",
    "env -S 'rm x'",
    "env -S'rm x'",
    "env --split-string='rm x'",
    "nice rm x",
    "nice -n 10 rm x",
    "nice -n10 rm x",
    "nice -10 rm x",
    "nice --adjustment=5 rm x",
    "ionice -c 3 rm x",
    "ionice -c2 -n7 rm x",
    "nohup rm x",
    "nohup rm x &",
    "timeout 5 rm x",
    "timeout -s KILL 5 rm x",
    "timeout -k 1 --signal=9 5s rm x",
    "timeout --preserve-status --foreground 5 rm x",
    "time rm x",
    "time -p rm x",
    "/usr/bin/time -v rm x",
    "/usr/bin/time -f %e -o out rm x",
    "stdbuf -oL rm x",
    "stdbuf -o L -e0 rm x",
    "stdbuf --output=L rm x",
    "setsid rm x",
    "setsid -w rm x",
    "command rm x",
    "command -p rm x",
    "builtin rm x",
    "exec rm x",
    "exec -a name rm x",
    "exec -c rm x",
    "busybox rm x",
    "toybox rm x",
    "taskset 3 rm x",
    "chrt -f 10 rm x",
    "flock lock rm x",
    "flock -n lock rm x",
    "flock lock -c 'rm x'",
    "strace -f -o out rm x",
    "uv run rm x",
    "poetry run rm x",
    "bundle exec rm x",
    "coproc rm x",
    "! rm x",
    "xargs rm x",
    "! time sudo rm x",
]
SCRIPTS = [
    "bash -c 'rm x'",
    "sh -c 'rm x'",
    "zsh -c 'rm x'",
    "dash -c 'rm x'",
    "ksh -c 'rm x'",
    "/bin/bash -c 'rm x'",
    "bash -lc 'rm x'",
    "bash -l -c 'rm x'",
    "bash -xec 'rm x'",
    "bash -o pipefail -c 'rm x'",
    "bash -eo pipefail -c 'rm x'",
    "bash +x -c 'rm x'",
    "bash --norc -c 'rm x'",
    "bash --rcfile f -c 'rm x'",
    'bash -c "rm x"',
    "bash -c rm\\ x",
    "bash -c $'rm x'",
    "bash -c 'rm \"$1\"' name x",
    "bash -c 'rm \"$@\"' name x",
    "bash -c '$0 x' rm",
    "bash <<< 'rm x'",
    "bash -s <<< 'rm x'",
    "bash - <<< 'rm x'",
    "bash <<E\nrm x\nE",
    "bash <<'E'\nrm x\nE",
    "bash -s arg <<E\nrm x\nE",
    "cat <<E | bash\nrm x\nE",
    "cat <<E | tee log | sudo bash -s\nrm x\nE",
    "echo 'rm x' | sh",
    "echo rm x | sh",
    "printf 'rm %s' x | sh",
    "printf 'rm x\\n' | sh",
    "echo -e 'rm\\x20x' | sh",
    "bash <(echo rm x)",
    "bash < <(echo rm x)",
    "bash /dev/stdin <<< 'rm x'",
    "eval rm x",
    "eval 'rm x'",
    'eval "rm" "x"',
    "eval -- rm x",
    "eval \"$(echo 'rm x')\"",
    "source <(echo rm x)",
    ". <(echo rm x)",
    "source /dev/stdin <<< 'rm x'",
    "trap 'rm x' EXIT",
    'trap "rm x" INT TERM',
    "trap -- 'rm x' EXIT",
    "su -c 'rm x'",
    "su root -c 'rm x'",
    "su - root -c 'rm x'",
    "su --command='rm x' root",
    "runuser -u root -- rm x",
    "runuser -c 'rm x' root",
    "script -c 'rm x' out",
    "ssh host rm x",
    "ssh host 'rm x'",
    "ssh -p 22 -i key user@host rm x",
    "ssh -o A=b host -- rm x",
    "ssh -t host 'sudo rm x'",
    "ssh host <<E\nrm x\nE",
    "watch rm x",
    "watch -n 5 'rm x'",
    "watch --interval=5 -d rm x",
    "parallel rm ::: x",
    "parallel 'rm {}' ::: x",
    "parallel -j 4 rm {} ::: x",
    "echo x | parallel rm",
    "echo x | xargs rm",
    "echo x | xargs -n 1 -P 4 rm",
    "echo x | xargs -I {} rm {}",
    "echo x | xargs -I% sh -c 'rm %'",
    "echo x | xargs -i rm {}",
    "printf 'x\\0' | xargs -0 rm",
    "xargs rm <<< x",
    "find x -exec rm {} \\;",
    "find x -exec rm {} +",
    "find x -execdir rm {} ';'",
    "find x -ok rm {} \\;",
    "find x -exec sh -c 'rm {}' \\;",
    "find x -exec sh -c 'rm \"$1\"' _ {} \\;",
    "git submodule foreach 'rm x'",
    "git bisect run rm x",
    "git rebase -x 'rm x' main",
    "C='rm x'; $C",
    "C='rm x'; bash -c \"$C\"",
    'f() { rm "$1"; }; f x',
]


def ran(line: str) -> list[list[str]]:
    """Return the words of each command of a line."""
    return [[word.value for word in command.words] for command in parse(line).commands]


@pytest.mark.parametrize("line", WRAPPED)
def test_a_wrapper_runs_the_words_after_its_options(line: str) -> None:
    last = ran(line)[-1]
    assert last[:2] == ["rm", "x"]
    assert parse(line).gaps == []


@pytest.mark.parametrize("line", SCRIPTS)
def test_a_script_is_read_as_the_shell_would_that_gets_it(line: str) -> None:
    assert ["rm", "x"] in ran(line)
    assert parse(line).gaps == []


@pytest.mark.parametrize(
    "line",
    [
        "command -v rm x",
        "command -V rm x",
        "sudo -l rm x",
        "sudo -v",
        "sudo -e rm x",
        "doas -L",
        "ionice -p 1 rm x",
        "taskset -p 3 rm x",
        "bash -n -c 'rm x'",
        "bash rm x",
        "bash script.sh 'rm x'",
        "trap - EXIT",
        "trap '' INT",
        "trap",
        "su root",
        "ssh host",
        "ssh -p 22 host",
        "uv add rm x",
        "git commit -m 'rm x'",
        "git submodule update",
        "find x -name rm",
        "echo rm x",
        "xargs",
        "watch",
        "env",
        "env A=1",
        "sudo",
        "eval",
        "exec 3>&1",
        "cat <<E\nrm x\nE",
        "python -c 'rm x'",
        "bash -c",
        "timeout 5",
    ],
)
def test_where_nothing_else_is_run_nothing_is_found(line: str) -> None:
    assert not any(words[:1] == ["rm"] for words in ran(line))


def test_xargs_without_known_input_adds_what_it_reads() -> None:
    assert ran("cat list | xargs rm -f")[-1] == ["rm", "-f", UNKNOWN]


def test_find_puts_its_roots_in_place_of_the_braces() -> None:
    assert ran("find ~ -exec rm {} +")[-1] == ["rm", HOME]
    assert ran("find / -name x -exec rm {} +")[-1] == ["rm", f"//{UNKNOWN}"]
    assert ran("find a b -exec rm {} +")[-1] == ["rm", "a", "b"]


def test_a_command_knows_what_runs_it() -> None:
    inner = parse("sudo env A=1 bash -c 'timeout 5 rm x'").commands[-1]
    assert inner.name == "rm"
    assert inner.caller is not None
    assert inner.caller.name == "timeout"
    assert inner.is_run_by("sudo")
    assert inner.is_run_by("doas", "bash")
    assert not inner.is_run_by("doas")
    assert not parse("rm x").commands[0].is_run_by("sudo")


def test_a_wrappers_redirects_are_those_of_what_it_runs() -> None:
    inner = parse("sudo tee > f").commands[-1]
    assert [redirect.target.value for redirect in inner.redirects] == ["f"]


def test_what_a_subshell_is_given_is_not_what_its_caller_has() -> None:
    assert ran("D=a; bash -c 'D=b'; rm $D")[-1] == ["rm", "a"]
    assert ran("D=a; eval 'D=b'; rm $D")[-1] == ["rm", "b"]
    assert ran("D=a bash -c 'rm $D'")[-1] == ["rm", "a"]


def test_scripts_in_scripts_are_followed_to_a_bound() -> None:
    assert ["rm", "x"] in ran("eval eval eval eval rm x")
    found = parse("eval " * 100 + "rm x")
    assert found.gaps
    assert all(gap.text.endswith("rm x") for gap in found.gaps)
