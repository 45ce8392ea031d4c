"""Everyday work with git, compilers and node succeeds in a workspace, whoever does it."""

# ruff: noqa: E501 -- a job reads best as a line

from __future__ import annotations

import pytest

from sandbox.test_jobs import USERS, Job, outcome_of

pytestmark = pytest.mark.timeout(180)

COMMIT = "git init -q -b main; echo one >f; git add f; git commit -qm first; "
SECOND = "echo two >>f; git commit -qam second; "
HOOK = "mkdir -p .git/hooks; printf '#!/bin/sh\\necho the hook ran\\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"
PACKAGE = 'mkdir -p dep; echo \'{"name":"dep","version":"1.2.3","main":"i.js"}\' >dep/package.json; echo \'module.exports = 42\' >dep/i.js; '
SHOW_DEP = "node -p 'require(\"dep\")'"
HELLO_C = "printf '#include <stdio.h>\\nint main(void) { puts(\"compiled\"); return 0; }\\n' >a.c; "
HELLO_CC = "printf '#include <iostream>\\n#include <thread>\\nint main() { std::thread t([] { std::cout << \"threaded\\\\n\"; }); t.join(); }\\n' >a.cc; "
CMAKE = (
    HELLO_C
    + "printf 'cmake_minimum_required(VERSION 3.10)\\nproject(x C)\\nadd_executable(a a.c)\\ninstall(TARGETS a DESTINATION bin)\\n' >CMakeLists.txt; "
)

GIT = (
    Job("git init, add, commit and log", COMMIT + "git status --short; git log --format=%s", "first", ("git",)),
    Job("git diff", COMMIT + "echo two >>f; git diff | tail -n 1; git diff --stat | tail -n 1", "+two\n 1 file changed, 1 insertion(+)", ("git",)),
    Job("git branch, checkout and merge", COMMIT + "git checkout -q -b side; echo x >g; git add g; git commit -qm side; git checkout -q main; " + SECOND + "git merge -q --no-edit side; git log --oneline | wc -l; git branch -d side >/dev/null; ls", "4\nf\ng", ("git",)),
    Job("git stash", COMMIT + "echo wip >>f; git stash -q; cat f; git stash pop -q; tail -n 1 f", "one\nwip", ("git",)),
    Job("git rebase, cherry-pick, reset and revert", COMMIT + "git checkout -q -b side; echo x >g; git add g; git commit -qm side; git checkout -q main; " + SECOND + "git checkout -q side; git rebase -q main; git log --format=%s; git checkout -q main; git cherry-pick side >/dev/null; git revert --no-edit HEAD >/dev/null; git reset -q --hard HEAD~1; ls",
        "side\nsecond\nfirst\nf\ng", ("git",)),
    Job("git tag, archive, blame, gc and fsck", COMMIT + "git tag -a -m t v1; git describe; git archive HEAD | tar t; git blame -s f | cut -d ' ' -f 3; git gc -q; git fsck 2>/dev/null; git repack -adq; git rev-parse --verify -q v1 >/dev/null", "v1\nf\none", ("git",)),
    Job("git clone, push and pull of a local repository", "mkdir a; cd a; " + COMMIT + "cd ..; git clone -q --bare a b; git clone -q b c; cd c; echo two >>f; git commit -qam second; git push -q; git -C ../b log --format=%s; cd ../a; git remote add o ../b; git pull -q o main; tail -n 1 f; git clone -q file://$PWD/../b d; ls d", "second\nfirst\ntwo\nf", ("git",)),
    Job("git worktree and submodule", COMMIT + "git worktree add -q wt; ls wt; git worktree remove wt; git clone -q . sub; git -c protocol.file.allow=always submodule --quiet add ./sub s; ls s; cut -d '\"' -f 2 .gitmodules | head -n 1", "f\nf\ns", ("git",)),
    Job("git bisect", COMMIT + "for n in 1 2 3 4; do echo $n >f; git commit -qam $n; done; git bisect start HEAD HEAD~4 >/dev/null; git bisect run sh -c 'test $(cat f) != 3 -a $(cat f) != 4' | grep -o '^.* is the first bad commit' | cut -d ' ' -f 2-", "is the first bad commit", ("git",)),
    Job("work in a repository that there is", (SECOND + "git log --format=%s", "git checkout -q -b side; echo x >g; git add g; git commit -qm side; git checkout -q main; git merge -q side; git stash list; git gc -q; ls; git status --short"), "second\nfirst\nf\ng", ("git",), COMMIT),
    Job("a commit hook that there is", "echo two >>f; git add f; git commit -qm second; git log --format=%s", "the hook ran\nsecond\nfirst", ("git",), COMMIT + HOOK),
    Job("git apply and format-patch", COMMIT + SECOND + "git format-patch -q -1 --stdout >p; git reset -q --hard HEAD~1; git am -q p; git apply -R p; cat f; git clean -fdq; ls", "one\nf", ("git",)),
)  # fmt: skip

BUILD = (
    Job("make", "printf 'all: b\\n%%: %%.in\\n\\tcp $< $@\\nb: a\\n\\tcp a b\\n' >Makefile; echo x >a.in; make -s; make -s -j 2; cat b; touch a.in; make | tail -n 1", "x\ncp a b", ("make",)),
    Job("make in parallel", "printf 'all: 1 2 3 4\\n%%:\\n\\techo $@ >$@; sleep 0.05\\n' >Makefile; make -s -j 4; cat 1 2 3 4 | xargs", "1 2 3 4", ("make",)),
    Job("gcc", HELLO_C + "gcc -O2 -g -Wall a.c -o a; ./a; gcc -pipe -c a.c; gcc -E a.c | tail -n 1 | cut -c 1-3", "compiled\nint", ("gcc",)),
    Job("g++", HELLO_CC + "g++ -std=c++17 -pthread a.cc -o a; ./a", "threaded", ("g++",)),
    Job("libraries", "echo 'int two(void) { return 2; }' >t.c; printf 'int two(void); int main(void) { return two(); }' >m.c; gcc -c t.c; ar rcs libt.a t.o; ranlib libt.a; gcc m.c -L. -lt -o s; ./s || echo $?;"
        " gcc -shared -fPIC t.c -o libt.so; strip libt.so; gcc m.c -L. -lt -Wl,-rpath,$PWD -o d; ./d || echo $?; ar t libt.a; objcopy t.o u.o", "2\n2\nt.o", ("gcc", "ar")),
    Job("cmake", CMAKE + "quiet cmake -B o; quiet cmake --build o; o/a; quiet cmake --install o --prefix i; i/bin/a", "compiled\ncompiled", ("cmake", "gcc")),
    Job("ninja", CMAKE + "quiet cmake -G Ninja -B o; quiet ninja -C o; o/a", "compiled", ("cmake", "ninja", "gcc")),
    Job("rustc", "echo 'fn main() { println!(\"rusted\"); }' >a.rs; rustc a.rs; ./a", "rusted", ("rustc",)),
    Job("cargo", "quiet cargo init --vcs none --name thing .; quiet cargo build --offline; target/debug/thing; quiet cargo test --offline", "Hello, world!", ("cargo",)),
    Job("java", "printf 'public class A { public static void main(String[] a) throws Exception { var t = new Thread(() -> System.out.println(\"brewed\")); t.start(); t.join(); java.nio.file.Files.writeString(java.nio.file.Path.of(\"o\"), \"x\"); } }' >A.java; javac A.java; java A; cat o; jar cf a.jar A.class; java -cp a.jar A", "brewed\nxbrewed", ("java", "javac")),
    Job("node", "node -e 'console.log(1 + 1)'; echo 'const fs = require(\"fs\"); fs.writeFileSync(\"o\", \"x\"); fs.chmodSync(\"o\", 0o600); fs.utimesSync(\"o\", 1, 1); fs.copyFileSync(\"o\", \"p\"); fs.cpSync(\".\", \"/tmp/x\" + process.pid, {recursive: true}); fs.rmSync(\"/tmp/x\" + process.pid, {recursive: true});"
        " fs.promises.readFile(\"p\", \"utf8\").then(console.log)' >a.js; node a.js", "2\nx", ("node",)),
    Job("node with workers and children", "cat >a.js <<'END'\nconst {Worker, isMainThread, parentPort} = require('worker_threads'); const cp = require('child_process')\n"
        "if (!isMainThread) parentPort.postMessage('worker')\nelse if (process.send) process.send('child', () => process.disconnect())\n"
        "else { console.log(cp.execSync('echo shell').toString().trim()); new Worker(__filename).on('message', m => { console.log(m); cp.fork(__filename).on('message', m => console.log(m)) }) }\nEND\nnode a.js", "shell\nworker\nchild", ("node",)),
    Job("node with a unix socket", "cat >a.js <<'END'\nconst net = require('net'); const s = net.createServer(c => c.end('served')).listen('./s', () => net.connect('./s').on('data', d => { console.log(d.toString()); s.close() }))\nEND\nnode a.js", "served", ("node",)),
    Job("node watches a file", "cat >a.js <<'END'\nconst fs = require('fs'); const w = fs.watch('.', (e, n) => { console.log(n); w.close() }); setTimeout(() => fs.writeFileSync('made', ''), 50)\nEND\nnode a.js", "made", ("node",)),
    Job("npm pack", PACKAGE + "cd dep; npm pack >../log 2>&1; ls *.tgz; tar tf dep-1.2.3.tgz | sort", "dep-1.2.3.tgz\npackage/i.js\npackage/package.json", ("npm",)),
    Job("npm install of a folder", PACKAGE + "echo '{}' >package.json; quiet npm install --offline --no-audit --no-fund ./dep; " + SHOW_DEP, "42", ("npm",)),
    Job("npm install of a package file", PACKAGE + "(cd dep; quiet npm pack --pack-destination ..); echo '{}' >package.json; quiet npm install --offline --no-audit --no-fund ./dep-1.2.3.tgz; " + SHOW_DEP, "42", ("npm",)),
    Job("npm run", "echo '{\"scripts\":{\"go\":\"echo went\"}}' >package.json; npm run --silent go; npm init -y >/dev/null; npx --no-install --offline -c 'echo npx'", "went\nnpx", ("npm",)),
    Job("node --test", "echo 'require(\"node:test\")(\"t\", () => {})' >a.test.js; node --test >log || { cat log; exit 1; }; grep -o 'pass 1' log", "pass 1", ("node",)),
)  # fmt: skip

JOBS = GIT + BUILD


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("job", JOBS, ids=[job.name for job in JOBS])
def test_tools_work_in_a_workspace(job: Job, user: str) -> None:
    outcome = outcome_of(job, user, "workspace", JOBS)
    assert outcome.exit_code == 0, outcome.output
    assert outcome.output.strip() == job.expected
