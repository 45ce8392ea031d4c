"""What surrounds a command, its variables, directories and descriptors, is no way out either."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from support import is_running, wait_until

import limpet
from security.host import MODES, USERS, as_user, scratch, tool
from security.stage import tree

_ATTACK = (
    "for i in {1..4}; do for t in /proc/$PPID/task/*; do builtin kill -USR1 ${t##*/}; done; done;"
    " builtin echo escaped > $OUT/file"
)
"""Signals every thread of the host while it starts the command, and writes outside."""
_PRELOAD = r"""
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((constructor)) static void attack(void) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/task", getenv("HOST"));
  for (int i = 0; i < 40; i++) {
    DIR *all = opendir(path);
    for (struct dirent *one; all && (one = readdir(all));)
      if (one->d_name[0] != '.') syscall(SYS_tkill, atoi(one->d_name), 10);
    if (all) closedir(all);
  }
  snprintf(path, sizeof path, "%s/new", getenv("OUT"));
  creat(path, 0644);
}
"""

ENVIRONMENTS: dict[str, dict[str, str]] = {
    "LD_PRELOAD": {"LD_PRELOAD": "{library}"},
    "LD_PRELOAD and POSIXLY_CORRECT": {"LD_PRELOAD": "{library}", "POSIXLY_CORRECT": "1"},
    "LD_AUDIT": {"LD_AUDIT": "{library}"},
    "BASH_ENV": {"BASH_ENV": "{script}"},
    "BASH_ENV that is a command": {"BASH_ENV": "$({attack})"},
    "POSIXLY_CORRECT": {"POSIXLY_CORRECT": "1", "ENV": "{script}"},
    "SHELLOPTS posix": {"SHELLOPTS": "posix", "ENV": "{script}"},
    "SHELLOPTS privileged": {"SHELLOPTS": "privileged"},
    "SHELLOPTS xtrace": {"SHELLOPTS": "xtrace", "PS4": "$({attack})"},
    "SHELLOPTS noexec": {"SHELLOPTS": "noexec"},
    **{f"a function {name}": {f"BASH_FUNC_{name}%%": "() { {attack}; }"}
       for name in ("unset", "exec", "eval", "export", "trap", "true", "[", ".")},
    "PROMPT_COMMAND": {"PROMPT_COMMAND": "{attack}"},
    "LIMPET_SANDBOX": {"LIMPET_SANDBOX": "off", "LIMPET_RUN": "other"},
    "TMPDIR": {"TMPDIR": "{outside}"},
    "HOME": {"HOME": "{outside}"},
    "PWD": {"PWD": "{outside}"},
    "PATH": {"PATH": "/nowhere"},
}  # fmt: skip
"""Given by the caller, perhaps as a model wishes; each beside a command that writes outside."""


def _compile(base: Path) -> Path:
    source, library = base / "preload.c", base / "preload.so"
    source.write_text(_PRELOAD)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mode", ["off", *MODES])
def test_no_variable_lets_a_command_out(user: str, mode: str) -> None:
    def act(base: Path) -> list[str]:
        heard: list[int] = []
        signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
        workspace, outside = base / "workspace", base / "outside"
        script, library = base / "script", base / "preload.so"
        script.write_text(_ATTACK)
        workspace.mkdir()
        wrong = []
        for name, variables in ENVIRONMENTS.items():
            shutil.rmtree(outside, ignore_errors=True)
            outside.mkdir()
            (outside / "file").write_text("kept")
            before = tree(outside)
            heard.clear()
            env = {"OUT": str(outside), "HOST": str(os.getpid())}
            words = {"library": library, "script": script, "attack": _ATTACK, "outside": outside}
            for key, value in variables.items():
                for word, meaning in words.items():
                    value = value.replace(f"{{{word}}}", str(meaning))
                env[key] = value
            ctx = limpet.ToolContext(workspace)
            tool(mode).run_sync(f"{_ATTACK}; true; /bin/true", env=env, ctx=ctx)
            had_effect = tree(outside) != before or bool(heard)
            if had_effect != (mode == "off") and name != "SHELLOPTS noexec":
                wrong.append(f"{name}: {heard}")
        return wrong

    with scratch(user) as base:
        _compile(base)
        assert as_user(user, lambda: act(base)) == []


def _ends(work: Callable[[limpet.Bash, Path, Path], object], user: str, mode: str) -> bool:
    """Return whether some work with a tool has changed what is outside."""

    def act(base: Path) -> bool:
        workspace, outside = base / "workspace", base / "outside"
        workspace.mkdir()
        outside.mkdir()
        (outside / "file").write_text("kept")
        before = tree(outside)
        work(tool(mode, persist_cwd=True), workspace, outside)
        return tree(outside) != before

    with scratch(user) as base:
        return as_user(user, lambda: act(base))


def _cd(bash: limpet.Bash, workspace: Path, outside: Path) -> None:
    ctx = limpet.ToolContext(workspace)
    bash.run_sync(f"cd {outside}", ctx=ctx)
    bash.run_sync("echo escaped > file; touch new", ctx=ctx)


def _forge_report(bash: limpet.Bash, workspace: Path, outside: Path) -> None:
    ctx = limpet.ToolContext(workspace)
    lies = f"printf '0\\0%s\\n' {outside} >&$((${{f##*/}}))"
    bash.run_sync(f"for f in /proc/self/fd/*; do {lies}; done; exec true; cd {outside}", ctx=ctx)
    bash.run_sync(f"pwd | cat; cd {outside}; echo escaped > file", ctx=ctx)


def _made_again(bash: limpet.Bash, workspace: Path, outside: Path) -> None:
    ctx = limpet.ToolContext(workspace)
    bash.run_sync("touch own", ctx=ctx)
    workspace.rename(outside.parent / "moved")
    workspace.mkdir()
    bash.run_sync(f"touch own; touch ../outside/new ../moved/new {outside}/new", ctx=ctx)
    if (outside.parent / "moved/new").exists():
        (outside / "new").touch()


def _link_turned(bash: limpet.Bash, workspace: Path, outside: Path) -> None:
    """The directory that the link led to before is outside now."""
    link = workspace.parent / "link"
    link.symlink_to(outside)
    bash.run_sync(":", ctx=limpet.ToolContext(link))
    link.unlink()
    link.symlink_to(workspace)
    bash.run_sync(f"touch own; echo escaped > {outside}/file", ctx=limpet.ToolContext(link))


def _link_turned_by_the_command(bash: limpet.Bash, workspace: Path, outside: Path) -> None:
    """A link in the workspace that leads out is no workspace for the next conversation."""
    bash.run_sync(f"ln -s {outside} way", ctx=limpet.ToolContext(workspace))
    bash.run_sync("cd way && echo escaped > file", ctx=limpet.ToolContext(workspace))


def _survivor(bash: limpet.Bash, workspace: Path, outside: Path) -> None:
    bash = limpet.Bash(sandbox=bash.policy.sandbox, survivors="adopt")
    command = f"(while [ ! -e go ]; do sleep 0.02; done; echo escaped > {outside}/file) & echo $!"
    pid = int(bash.run_sync(command, ctx=limpet.ToolContext(workspace)).stdout)
    (workspace / "go").touch()
    assert wait_until(lambda: not is_running(pid))


def _asynchronous(bash: limpet.Bash, workspace: Path, outside: Path) -> None:
    async def run() -> None:
        ctx = limpet.ToolContext(workspace)
        await bash.run(f"echo escaped > {outside}/file", ctx=ctx)
        async for _ in bash.stream(f"touch {outside}/new", ctx=ctx):
            pass

    asyncio.run(run())


def _long(bash: limpet.Bash, workspace: Path, outside: Path) -> None:
    command = f": {'x' * 200_000}\necho escaped > {outside}/file"
    bash.run_sync(command, ctx=limpet.ToolContext(workspace))


def _standard_input(bash: limpet.Bash, workspace: Path, outside: Path) -> None:
    with open(outside / "file", "rb") as file:
        command = "echo escaped > /proc/self/fd/0; echo escaped > /dev/stdin"
        bash.run_sync(command, stdin=file.fileno(), ctx=limpet.ToolContext(workspace))


WORK = {
    "cd, then write": _cd,
    "a forged report": _forge_report,
    "a workspace made again": _made_again,
    "a link that was turned": _link_turned,
    "a link that the command made": _link_turned_by_the_command,
    "a survivor": _survivor,
    "asynchronous calls": _asynchronous,
    "a long command": _long,
    "standard input": _standard_input,
}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("name", WORK)
def test_no_way_of_running_leads_out(user: str, name: str) -> None:
    changed = [mode for mode in ("off", *MODES) if _ends(WORK[name], user, mode)]
    assert changed == ["off"]


@pytest.mark.parametrize("user", USERS)
def test_limpet_itself_is_not_led_out_by_its_own_state(user: str) -> None:
    """The state directory lies in the workspace, and is replaced by a link to another."""

    def act(base: Path) -> bool:
        from limpet.output import spill

        workspace, outside = base / "workspace", base / "outside"
        workspace.mkdir()
        (outside / "output").mkdir(parents=True)
        old = outside / "output/old"
        old.touch()
        os.utime(old, (1, 1))
        os.environ["LIMPET_STATE_DIR"] = str(workspace / "state")
        bash = limpet.Bash(
            sandbox="workspace", output=limpet.OutputPolicy(head_bytes=100, tail_bytes=100)
        )
        ctx = limpet.ToolContext(workspace)
        bash.run_sync(f"rm -rf state; ln -s {outside} state", ctx=ctx)
        spill._last_sweeps_s.clear()
        bash.run_sync("seq 1000", ctx=ctx)
        return [path.name for path in (outside / "output").iterdir()] != ["old"]

    with scratch(user) as base:
        assert not as_user(user, lambda: act(base))


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mode", ["off", "workspace"])
def test_one_jailed_command_cannot_end_another(user: str, mode: str) -> None:
    def act(base: Path) -> bool:
        bash, ctx, found = tool(mode), limpet.ToolContext(base), []
        command = "echo $$ > pid.new; mv pid.new pid; while [ ! -e stop ]; do sleep 0.02; done"
        other = threading.Thread(target=lambda: found.append(bash.run_sync(command, ctx=ctx)))
        other.start()
        assert wait_until((base / "pid").exists)
        bash.run_sync("kill -9 $(cat pid); kill -9 -- -$(cat pid); touch stop", ctx=ctx)
        other.join()
        return found[0].outcome is limpet.Outcome.SIGNALED

    with scratch(user) as base:
        assert as_user(user, lambda: act(base)) == (mode == "off")


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mode", MODES)
def test_a_hard_link_made_before_is_no_way_to_write_read_only(user: str, mode: str) -> None:
    """In a workspace its own names are writable, whatever else they are names of."""

    def act(base: Path) -> str:
        workspace, outside = base / "workspace", base / "outside"
        workspace.mkdir()
        outside.mkdir()
        (outside / "file").write_text("kept")
        os.link(outside / "file", workspace / "hard")
        tool(mode).run_sync("echo escaped > hard", ctx=limpet.ToolContext(workspace))
        return (outside / "file").read_text()

    with scratch(user) as base:
        expected = "kept" if mode == "read-only" else "escaped\n"
        assert as_user(user, lambda: act(base)) == expected
