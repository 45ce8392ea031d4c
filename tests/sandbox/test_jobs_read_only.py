"""Everyday looking around succeeds where nothing may be changed, whoever does it."""

# ruff: noqa: E501 -- a job reads best as a line

from __future__ import annotations

import pytest

from sandbox.test_jobs import MEGABYTE, USERS, Job, outcome_of

pytestmark = pytest.mark.timeout(180)

FILES = "mkdir -p a/b; seq 3 >a/b/f; echo needle >a/g; "
REPOSITORY = (
    "git init -q -b main; echo one >f; git add f; git commit -qm first; echo two >>f; git tag v1; "
)

JOBS = (
    Job("reading", "cat a/b/f; ls -l a | wc -l; head -n 1 a/b/f; stat -c %s a/g; wc -c <a/g", "1\n2\n3\n3\n1\n7\n7", before=FILES),
    Job("searching", "grep -rn needle .; find . -name f -newer /etc/passwd; find . -type f -exec cat {} + | sort | tail -n 1", "./a/g:1:needle\n./a/b/f\nneedle", before=FILES),
    Job("pipelines", "seq 100000 | sort -n | tail -n 1; seq 9 | xargs -P 3 -n 3 echo | wc -l; echo abc | tr a b | sed s/b/x/ | awk '{print $1}'", "100000\n3\nxbc"),
    Job("the standard devices", "echo 1 >/dev/stdout; echo 2 >/dev/stderr; echo no >/dev/null; echo no 2>/dev/null >>/dev/null; head -c 3 /dev/zero | wc -c; head -c 3 /dev/urandom | wc -c; if echo x 2>/dev/null >/dev/full; then exit 1; fi", "1\n2\n3\n3"),
    Job("a here-string", "cat <<<hello; cat <<END\nfrom a document\nEND", "hello\nfrom a document"),
    # Bash puts a longer one in a temporary file.
    Job("a here-document that a pipe holds", f"wc -c <<'END'\n{MEGABYTE[:1 << 15]}END\n", "32768"),
    Job("process substitution", "diff <(seq 3) <(seq 3) && paste -d: <(echo a) <(echo b)", "a:b"),
    Job("background jobs, traps and limits", "sleep 60 & kill $!; wait $! || echo $?; (trap 'echo bye' EXIT); timeout 0.1 sleep 5 || echo $?; (ulimit -n 64; ulimit -n)", "143\nbye\n124\n64"),
    Job("git log, diff, status and show", "git log --format=%s; git diff | tail -n 1; git status --short; git show --stat v1 | tail -n 1; git grep -c one; git blame -s f | wc -l; git branch --show-current; git ls-files",
        "first\n+two\n M f\n 1 file changed, 1 insertion(+)\nf:1\n2\nmain\nf", ("git",), REPOSITORY),
    Job("git rev-parse, describe, stash list and archive", "git rev-parse --abbrev-ref HEAD; git describe --tags; git stash list; git archive HEAD | tar t; git fsck 2>/dev/null; git cat-file -p HEAD:f; git check-ignore x || echo $?", "main\nv1\nf\none\n1", ("git",), REPOSITORY),
    Job("python", "python3 -c 'import json, sys, hashlib, decimal, sqlite3; print(json.dumps([1]))'; python3 -m json.tool <<<'[]'; python3 -m this | wc -l", "[1]\n[]\n21"),
    Job("python with threads, processes and pairs of sockets", "python3 -u -c 'import asyncio, threading, socket, subprocess\na, b = socket.socketpair(); b.sendall(b\"x\"); print(a.recv(1))\nt = threading.Thread(target=print, args=(1,)); t.start(); t.join()\nprint(subprocess.run([\"tr\", \"a\", \"b\"], input=\"a\", text=True, capture_output=True).stdout)\nasync def m(): p = await asyncio.create_subprocess_exec(\"echo\", \"async\"); await p.wait()\nasyncio.run(m())'", "b'x'\n1\nb\nasync"),
    Job("sqlite3 for reading", "sqlite3 -readonly a.db 'select sum(x) from t'; python3 -c 'import sqlite3; print(sqlite3.connect(\"file:a.db?mode=ro\", uri=True).execute(\"select count(*) from t\").fetchone()); print(sqlite3.connect(\":memory:\").execute(\"select 1\").fetchone())'", "3\n(2,)\n(1,)", ("sqlite3",), "sqlite3 a.db 'create table t(x); insert into t values(1),(2)'"),
    Job("node", "node -e 'console.log(require(\"fs\").readFileSync(\"a/g\", \"utf8\").trim())'; node -p 'require(\"child_process\").execSync(\"echo hi\").toString().trim()'", "needle\nhi", ("node",), FILES),
    Job("versions", "gcc --version | head -c 3; echo; make --version | head -c 8; echo; git --version | cut -c -3; perl -e 'print \"perl\\n\"'; python3 --version | cut -c -6", "gcc\nGNU Make\ngit\nperl\nPython", ("gcc", "make", "perl", "git")),
    Job("npm and java say their version", "npm --version >/dev/null; java -version 2>&1 | grep -ci runtime >/dev/null; echo said", "said", ("npm", "java")),
    Job("cargo and rustc say their version", "cargo --version | cut -c -5; rustc --version | cut -c -5", "cargo\nrustc", ("cargo", "rustc")),
    Job("make without anything to do", "make -s show; make -n all", "shown\ntouch all", ("make",), "printf 'show:\\n\\t@echo shown\\nall:\\n\\ttouch all\\n' >Makefile"),
    Job("gcc to nowhere", "echo 'int x;' | gcc -fsyntax-only -x c - && echo valid; echo 'X' | cpp -DX=expanded | tail -n 1", "valid\nexpanded", ("gcc",)),
    Job("archives", "tar tf a.tgz | tail -n 1; tar xOf a.tgz a/g; zcat a.tgz | wc -c | sed 's/[0-9]* */many/'; unzip -p a.zip a/g", "a/g\nneedle\nmany\nneedle", ("zip", "unzip"), FILES + "tar czf a.tgz a/b a/g; zip -qr a.zip a"),
    Job("sums and sizes", "sha256sum a/g | cut -c -4; du -sb a/g | cut -f 1; df . >/dev/null; cmp a/g a/g; diff -q a/g a/b/f >/dev/null || echo differ; openssl dgst -sha1 a/g | wc -l; file -b a/g | cut -c -5", "d292\n7\ndiffer\n1\nASCII", ("openssl", "file"), FILES),
    Job("the system", "id -u >/dev/null; ps -o comm= -p $$; uname >/dev/null; date >/dev/null; env | grep -c LIMPET_SANDBOX=read-only; cat /proc/self/status >/dev/null; free >/dev/null; nproc >/dev/null; getent passwd root | cut -d: -f1; hostname >/dev/null; locale >/dev/null; nice -n 5 true; tty || true", "bash\n1\nroot\nnot a tty", ("ps",)),
    Job("curl of a file and jq", "curl -sS file://$PWD/a/g; echo '{\"a\":[1,2]}' | jq -c '.a|add'", "needle\n3", ("curl", "jq"), FILES),
    Job("pytest that keeps nothing", "PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$TEST_SITE python3 -m pytest -qs -p no:cacheprovider test_a.py | grep -o '1 passed'", "1 passed", ("pytest",), before="echo 'def test_a(): assert 1' >test_a.py"),
)  # fmt: skip


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("job", JOBS, ids=[job.name for job in JOBS])
def test_looking_around_works_where_nothing_may_be_changed(job: Job, user: str) -> None:
    outcome = outcome_of(job, user, "read-only", JOBS)
    assert outcome.exit_code == 0, outcome.output
    assert outcome.output.strip() == job.expected
