"""Everyday work of the shell succeeds in a workspace, as root and as an ordinary user."""

# ruff: noqa: E501 -- a job reads best as a line

from __future__ import annotations

import asyncio
import ctypes
import functools
import json
import os
import shutil
import signal
import sysconfig
import tempfile
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from support import ORDINARY

import limpet
from limpet.confinement import SandboxMode
from limpet.sandbox import jail

pytestmark = pytest.mark.timeout(180)

USERS = ("root", "ordinary") if os.geteuid() == 0 else ("ordinary",)
OUTSIDE = "/var/tmp"
"""Not one of the temporary places that a workspace may write to."""
SITE = sysconfig.get_path("purelib")
AT_ONCE = 4
PROLOGUE = """\
set -e
quiet() { "$@" >.log 2>&1 || { cat .log; return 1; }; }
"""
"""A job stops at its first failure, and shows what a noisy program said only then."""


class Job(NamedTuple):
    """A piece of work, and what it must print; each has a workspace of its own."""

    name: str
    command: str | tuple[str, ...]
    """Several are run one after the other, each by a run of its own."""
    expected: str
    needs: tuple[str, ...] = ()
    """Programs without which the job is skipped."""
    before: str = ""
    """Done outside the sandbox first."""
    only_root: bool = False
    """Needs a namespace, which an ordinary user cannot have."""


class Outcome(NamedTuple):
    """How a job ended."""

    exit_code: int | None
    output: str
    missing: str = ""
    """The program that there is not."""


def outcome_of(job: Job, user: str, mode: SandboxMode, jobs: tuple[Job, ...]) -> Outcome:
    """Return how a job of a table ended, or skip the test if its program is not installed."""
    if job.only_root and user != "root":
        pytest.skip("not promised to an ordinary user")
    outcome = _run_all(user, mode, jobs)[job.name]
    if outcome.missing:
        pytest.skip(f"{outcome.missing} is not installed")
    return outcome


@functools.cache
def _run_all(user: str, mode: SandboxMode, jobs: tuple[Job, ...]) -> dict[str, Outcome]:
    base = Path(tempfile.mkdtemp(prefix="jobs-", dir=OUTSIDE))
    base.chmod(0o755)

    def work() -> str:
        _warm_up(base)
        return _in_child(lambda: json.dumps(_run_as(user, mode, jobs, base)))

    try:
        found = json.loads(_in_child(work))
    finally:
        shutil.rmtree(base)
    return {name: Outcome(*values) for name, values in found.items()}


def _in_child(action: Callable[[], str]) -> str:
    """Return what an action says in a forked child: all that it changes goes with that child."""
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other threads are not needed in the child
        pid = os.fork()
    if pid == 0:
        os.close(read_end)
        try:
            with open(write_end, "wb") as file:
                file.write(action().encode())
        except BaseException:
            traceback.print_exc()
        finally:
            jail.close_all()
            os._exit(0)
    os.close(write_end)
    with open(read_end, "rb") as file:
        said = file.read().decode()
    os.waitpid(pid, 0)
    return said


def _warm_up(base: Path) -> None:
    """Have everything imported that a run needs; later the interpreter may be out of reach."""
    os.environ["LIMPET_STATE_DIR"] = str(base / "state-of-warm-up")
    context = limpet.ToolContext(working_dir=base)

    async def work() -> None:
        bash = limpet.Bash(sandbox="workspace")
        for command in ("sleep 60 & touch /etc/no; seq 100000; exit 3", ":" + " " * 200_000):
            result, _ = await asyncio.gather(bash.run(command, ctx=context), asyncio.sleep(0))
            _kill([survivor.pid for survivor in result.survivors])
        await bash.run("sleep 9", timeout_s=0.1, ctx=context)

    asyncio.run(work())


def _run_as(user: str, mode: SandboxMode, jobs: tuple[Job, ...], base: Path) -> dict[str, Outcome]:
    own = base / user
    own.mkdir()
    (own / "home").mkdir()
    if os.geteuid() == 0 and user == "ordinary":
        for path in (own, own / "home"):
            os.chown(path, ORDINARY, ORDINARY)
        os.setgroups([])
        os.setgid(ORDINARY)
        os.setuid(ORDINARY)
        ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE: else /proc/self belongs to root
    os.umask(0o022)
    _set_environment(own)
    return asyncio.run(_run_each(mode, jobs, own))


async def _run_each(mode: SandboxMode, jobs: tuple[Job, ...], own: Path) -> dict[str, Outcome]:
    # In this thread, as each has to load the parser again.
    bash = limpet.Bash(sandbox=mode, timeout_s=30, max_concurrent=AT_ONCE)
    for number in range(len(jobs)):
        os.mkdir(own / f"work-{number}")  # noqa: PTH102 -- nothing else runs yet
    runs = [_run(job, bash, own / f"work-{number}") for number, job in enumerate(jobs)]
    return dict(zip([job.name for job in jobs], await asyncio.gather(*runs), strict=True))


def _set_environment(own: Path) -> None:
    """Leave nothing of the caller's, so that a job finds the same everywhere."""
    paths = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
    kept = {"LIMPET_TEST_SESSION": os.environ["LIMPET_TEST_SESSION"]}
    if rust := shutil.which("cargo"):
        paths.append(str(Path(rust).parent))
        for name, folder in (("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")):
            kept[name] = os.environ.get(name, str(Path("~").expanduser() / folder))
    if os.access(SITE, os.R_OK | os.X_OK):
        kept["TEST_SITE"] = SITE
    os.environ.clear()
    os.environ |= kept | {
        "PATH": ":".join(paths),
        "HOME": str(own / "home"),
        "LANG": "C.UTF-8",
        "LIMPET_STATE_DIR": str(own / "state"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org",
    }  # fmt: skip


def _has(program: str) -> bool:
    if program == "pytest":
        return "TEST_SITE" in os.environ
    return shutil.which(program) is not None


async def _run(job: Job, bash: limpet.Bash, workspace: Path) -> Outcome:
    for program in job.needs:
        if not _has(program):
            return Outcome(None, "", program)
    context = limpet.ToolContext(working_dir=workspace)
    if job.before:
        (await limpet.Bash().run(PROLOGUE + job.before, ctx=context)).check()
    commands = (job.command,) if isinstance(job.command, str) else job.command
    output, left = "", []
    try:
        for command in commands:
            result = await bash.run(PROLOGUE + command, ctx=context)
            left += [survivor.pid for survivor in result.survivors]
            output += result.output
            if result.exit_code != 0:
                return Outcome(result.exit_code, f"{output}[{result.outcome.value} {result.hint}]")
    finally:
        _kill(left)
    return Outcome(0, output)


def _kill(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


MEGABYTE = ("x" * 63 + "\n") * (1 << 14)

JOBS = (
    Job("a here-document of a megabyte", f"wc -c <<'END'\n{MEGABYTE}END\n", "1048576"),
    Job("a here-string", "cat <<<'hello there'", "hello there"),
    Job("a large here-string", "x=$(head -c 300000 /dev/zero | tr '\\0' x); wc -c <<<\"$x\"", "300001"),
    Job("a here-document into a script that is run",
        "cat >go.sh <<'END'\n#!/bin/sh\necho went\nEND\nchmod +x go.sh\n./go.sh", "went"),
    Job("process substitution", "diff <(seq 3) <(seq 3); paste -d: <(echo a) <(echo b)", "a:b"),
    Job("process substitution to write to",
        "seq 9 | tee >(wc -l >lines) >/dev/null; while [ ! -s lines ]; do :; done; cat lines", "9"),
    Job("temporary files", "f=$(mktemp) d=$(mktemp -d); echo x >$f; cat $f; cp $f $d/y; cat $d/y; rm -r $f $d", "x\nx"),
    Job("shared memory files", "f=$(mktemp -p /dev/shm); echo x >$f; cat $f; rm $f", "x"),
    Job("pipelines", "seq 1000 | grep 7 | sort -r | head -n 1; echo a | cat | cat; false | true; echo ${PIPESTATUS[*]}", "997\na\n1 0"),
    Job("the standard devices",
        "echo no >/dev/null; echo no 2>/dev/null >/dev/null; echo 1 >/dev/stdout; echo 2 >/dev/stderr;"
        " echo 3 >/dev/fd/1; head -c 3 /dev/zero | wc -c; head -c 3 /dev/urandom | wc -c;"
        " if echo x 2>/dev/null >/dev/full; then exit 1; fi; cat </dev/null", "1\n2\n3\n3\n3"),
    Job("a read and write descriptor", "exec 3<>f; echo hello >&3; exec 3>&-; cat f", "hello"),
    Job("background jobs", "(sleep 0.1; echo one >a) & (exit 3) & p=$!; wait $p || echo $?; wait; cat a", "3\none"),
    Job("traps", "(trap 'echo term; exit 0' TERM; kill $BASHPID; sleep 5); (trap 'echo bye' EXIT; echo hi)", "term\nhi\nbye"),
    Job("a coprocess", "coproc cat; echo ping >&${COPROC[1]}; read -u ${COPROC[0]} x; echo $x; kill $COPROC_PID", "ping"),
    Job("sort with temporary files", "seq 300000 -1 1 >n; sort -n -S 1M n | head -1; sort -n -S 1M -T . n -o n; tail -1 n", "1\n300000"),
    Job("edit in place", "printf 'a\\nb\\n' >f; sed -i s/a/A/ f; sed -i.bak s/b/B/ f; perl -pi -e s/A/C/ f; cat f f.bak", "C\nB\nA\nb"),
    Job("find and act", "touch a.tmp b.tmp c; find . -name '*.tmp' -exec cp {} {}.x \\; ; find . -name '*.tmp' -delete; ls", "a.tmp.x\nb.tmp.x\nc"),
    Job("xargs in parallel", "seq 20 | xargs -P 4 -n 5 sh -c 'echo $# >$1' sh; cat 1 6 11 16", "5\n5\n5\n5"),
    Job("a time limit", "timeout 0.2 sleep 5 || echo $?", "124"),
    Job("killing its own children", "sleep 60 & kill $!; wait $! || echo $?; (sleep 60 & echo $! >p; wait) & while [ ! -s p ]; do :; done; kill $(cat p); wait $!; echo done", "143\ndone"),
    Job("killing its own children by name", "cp $(command -v sleep) mysleep; ./mysleep 60 & while ! pkill -x mysleep; do :; done; wait $! || echo $?", "143", ("pkill",)),
    Job("priorities", "a=$(nice) b=$(nice -n 5 nice); echo $((b - a)); taskset -c 0 true; ionice -c 3 true", "5", ("taskset", "ionice")),
    Job("lower limits", "ulimit -n 64; ulimit -n; ulimit -t 9; ulimit -t; ulimit -c 0; ulimit -s 1024; true", "64\n9"),
    Job("locks of files", "exec 9>lock; flock 9; flock -n lock true || echo busy; flock -u 9; flock lock echo mine", "busy\nmine", ("flock",)),
    Job("a named pipe", "mkfifo p; echo through >p & cat p; wait", "through"),
    Job("blocks of files", "dd if=/dev/zero of=f bs=1k count=8 2>/dev/null; echo X | dd of=f seek=100 bs=1 conv=notrunc 2>/dev/null;"
        " truncate -s 5000 f; stat -c %s f; fallocate -l 9000 g; stat -c %s g; tr -d '\\0' <f", "5000\n9000\nX"),
    Job("split and join", "seq 1000 >f; split -l 300 f part-; ls part-*; cat part-* | cmp - f; shred -u part-aa; csplit -s f 500; wc -l <xx00",
        "part-aa\npart-ab\npart-ac\npart-ad\n499"),
    Job("diff and patch", "seq 5 >a; sed s/3/three/ a >b; diff -u a b >p || patch -s a p; cmp a b; patch -sR a p; sed -n 3p a", "3", ("patch",)),
    Job("awk to files", "seq 6 | awk '{print $1 > (\"f\" $1 % 2)} END {print NR}'; tail -n 1 f0 f1 -q", "6\n6\n5"),
    Job("perl", "perl -MFile::Temp=tempfile -e '($f,$n)=tempfile(); print $f 42; close $f; open F,$n; print <F>; unlink $n'", "42", ("perl",)),
    Job("modes", "touch f; chmod 640 f; stat -c %a f; chmod u+x,g= f; stat -c %a f; mkdir d; touch d/x; chmod -R go-rwx d; stat -c %a d d/x; umask 077; touch g; stat -c %a g",
        "640\n700\n700\n600\n600"),
    Job("times", "touch -d '2001-02-03 04:05:06 UTC' f; touch -r f g; TZ=UTC stat -c '%y' f g | cut -c -19; touch -h -d 2001-01-01 f; mkdir d; touch -d 2002-01-01 d; stat -c %Y d",
        "2001-02-03 04:05:06\n2001-02-03 04:05:06\n1009843200"),
    Job("copies with everything", "mkdir d; echo x >d/f; chmod 750 d; chmod 640 d/f; ln -s f d/l; touch -d 2001-01-01 d/f; cp -a d e; stat -c '%a %F %Y' e e/f | sed '1s/ [0-9]*$//'; readlink e/l; cp -p d/f g; stat -c %Y g",
        "750 directory\n640 regular file 978307200\nf\n978307200"),
    Job("install", "echo x >f; install -m 751 f g; install -D -p -m 600 f d/e/h; install -d -m 700 k; stat -c '%a %n' g d/e/h k", "751 g\n600 d/e/h\n700 k"),
    Job("links and renames", "echo x >a; ln a b; ln -s a c; stat -c %h a; mv a d; cat b; mkdir -p e/f g; mv d e/f; mv e g; cat g/e/f/d; mv -T g h; rm -r h; ls", "2\nx\nx\nb\nc"),
    Job("moves from and to the temporary place", "d=$(mktemp -d); mkdir s; echo x >s/f; mv s $d/; mv $d/s t; cat t/f; ls $d; rmdir $d", "x"),
    Job("tar with modes and times", "mkdir d; echo x >d/f; chmod 751 d/f; touch -d 2001-01-01 d/f; ln -s f d/l; tar czf a.tgz d; mkdir o; tar -xpf a.tgz -C o;"
        " stat -c '%a %Y' o/d/f; readlink o/d/l; tar cJf a.txz d; tar tf a.txz | wc -l; tar -xf a.txz --strip-components=1; cat f", "751 978307200\nf\n3\nx"),
    Job("tar of files of somebody else", "mkdir d; echo x >d/f; tar cf a.tar --owner=1000 --group=1000 d; rm -r d; tar xf a.tar; cat d/f", "x"),
    Job("compression", "echo hello >f; touch -d 2001-01-01 f; gzip -k f; zcat f.gz; bzip2 -k f; bzcat f.bz2; xz f; unxz f.xz; stat -c %Y f", "hello\nhello\n978307200", ("bzip2", "xz")),
    Job("zip and unzip", "mkdir d; echo x >d/f; chmod 755 d/f; touch -d '2001-01-01 00:00' d/f; zip -qr a.zip d; unzip -q a.zip -d o; stat -c '%a %y' o/d/f | cut -c -14", "755 2001-01-01", ("zip", "unzip")),
    Job("rsync", "mkdir -p d/e; echo x >d/e/f; chmod 640 d/e/f; touch -d 2001-01-01 d/e/f; rsync -a d/ o; stat -c '%a %Y' o/e/f; rsync -a --delete d/ o", "640 978307200", ("rsync",)),
    Job("sizes and processes", "head -c 5000 /dev/zero >f; du -b f | cut -f 1; df . >/dev/null; ps -o comm= -p $$; ps aux | grep -c '[b]ash' >/dev/null; uptime >/dev/null; free >/dev/null; ls /proc/self/fd >/dev/null; id -u >/dev/null",
        "5000\nbash", ("ps",)),
    Job("keys and digests", "ssh-keygen -q -t ed25519 -N '' -f key; stat -c %a key; cut -d ' ' -f 1 key.pub; openssl genrsa -out k.pem 1024 2>/dev/null; stat -c %a k.pem; openssl rand -hex 4 | wc -c; echo x | sha256sum | cut -c -4",
        "600\nssh-ed25519\n600\n9\n73cb", ("ssh-keygen", "openssl")),
    Job("curl of a file", "echo x >f; curl -sS file://$PWD/f -o g; cat g", "x", ("curl",)),
    Job("json", "echo '{\"a\":[1,2]}' >f; jq -c '.a|add' f | tee g", "3", ("jq",)),
    Job("a terminal by script", "script -qc 'tty >/dev/null && echo is a terminal' log | tr -d '\\r'; grep -c terminal log >/dev/null", "is a terminal", ("script",), only_root=True),
    Job("following a file", "touch f; timeout 5 tail -f f | head -n 1 & sleep 0.2; echo new >>f; wait %1", "new"),
    Job("a server that is left running, and a second run that talks to it",
        ("mkfifo ask answer; (read x <ask; echo got $x >answer; sleep 60) & echo $! >pid; echo started", "echo hello >ask; cat answer; test -d /proc/$(cat pid); echo alive"),
        "started\ngot hello\nalive"),
)  # fmt: skip


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("job", JOBS, ids=[job.name for job in JOBS])
def test_the_shell_works_in_a_workspace(job: Job, user: str) -> None:
    outcome = outcome_of(job, user, "workspace", JOBS)
    assert outcome.exit_code == 0, outcome.output
    assert outcome.output.strip() == job.expected
