"""What lies in a workspace and takes effect outside later is not changed, or the result says so.

With a mount namespace (as root) it cannot be changed; else each change is reported.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

import limpet
from security.host import IS_ROOT, ORDINARY, USERS, as_user, scratch, tool
from security.stage import tree

FILES = {
    ".git/config": "[core]\n\trepositoryformatversion = 0\n",
    ".git/hooks/pre-commit": "#!/bin/sh\n",
    ".bashrc": "# kept\n",
    "limpet.toml": "timeout_s = 7\n",
    ".config/git/config": "[user]\n\tname = kept\n",
    ".vscode/settings.json": "{}\n",
}
_EXCHANGE = "perl -e 'exit(syscall(316, -100, $ARGV[0], -100, $ARGV[1], 2) != 0)'"
_EVIL = "mkdir -p evil/hooks && echo evil | tee evil/config evil/hooks/pre-commit evil/file"

ATTEMPTS = {
    "write the configuration": "echo evil > .git/config",
    "append to it": "echo evil >> .git/config",
    "truncate it": "truncate -s 0 .git/config",
    "edit it": "sed -i s/repository/evil/ .git/config",
    "git config": "git config core.hooksPath /evil",
    "write a hook": "echo evil > .git/hooks/pre-commit",
    "add a hook": "echo evil > .git/hooks/post-checkout",
    "make a hook executable": "chmod +x .git/hooks/pre-commit",
    "date a hook": "touch -d 2001-01-01 .git/hooks/pre-commit",
    "remove a hook": "rm -f .git/hooks/pre-commit",
    "rename over a hook": f"{_EVIL}; mv -f evil/file .git/hooks/pre-commit",
    "link over a hook": f"{_EVIL}; ln -f evil/file .git/hooks/pre-commit",
    "a symbolic link over a hook": f"{_EVIL}; ln -sf $PWD/evil/file .git/hooks/pre-commit",
    "a hook removed by its directory": "rm -rf .git/hooks",
    "hooks renamed": "mv .git/hooks .git/old",
    "hooks replaced": f"{_EVIL}; mv .git/hooks .git/old; mv evil/hooks .git/hooks",
    "hooks exchanged": f"{_EVIL}; {_EXCHANGE} evil/hooks .git/hooks",
    ".git removed": "rm -rf .git",
    ".git renamed": "mv .git old",
    ".git replaced": f"{_EVIL}; mv .git old; mv evil .git",
    ".git exchanged": f"{_EVIL}; {_EXCHANGE} evil .git",
    ".git moved into another": f"{_EVIL}; mv .git evil/",
    "a parent replaced": f"{_EVIL}; mv .config old; mkdir -p .config/git; cp evil/* .config/git",
    "through a hard link": "ln .git/config own; echo evil > own",
    "through a symbolic link": "ln -s .git/config own; echo evil > own",
    "through a link to its directory": "ln -s .git own; echo evil > own/config",
    "through /proc/self/cwd": "echo evil > /proc/self/cwd/.git/config",
    "through /proc/self/root": 'echo evil > "/proc/self/root$PWD/.git/config"',
    "by a descriptor": "exec 3< .git/config; echo evil > /proc/self/fd/3",
    "the shell's own file": "echo evil >> .bashrc",
    "the shell's own file replaced": f"{_EVIL}; mv -f evil/file .bashrc",
    "limpet's own file": "echo evil > limpet.toml",
    "limpet's own file removed": "rm -f limpet.toml",
    "limpet's own file exchanged": f"{_EVIL}; {_EXCHANGE} evil/file limpet.toml",
    "an editor's directory": "echo '{\"evil\": 1}' > .vscode/settings.json",
    "an editor's new file": "echo evil > .vscode/tasks.json",
    "from a directory below": "mkdir -p below; cd below; echo evil > ../limpet.toml",
    "in the background": "(echo evil > limpet.toml) & wait",
}


def _fill(workspace: Path) -> None:
    for name, content in FILES.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(content)
    (workspace / ".git/HEAD").write_text("ref: refs/heads/main\n")
    for name in ("objects", "refs"):
        (workspace / ".git" / name).mkdir()


def _state(workspace: Path) -> list[object]:
    places = [workspace / name for name in (*FILES, ".git/hooks", ".vscode")]
    return [tree(place) if place.exists() else None for place in places]


@pytest.mark.parametrize("user", USERS)
def test_protected_files_are_as_they_were_or_reported(user: str) -> None:
    def act(base: Path) -> list[str]:
        wrong = []
        for number, (name, command) in enumerate(ATTEMPTS.items()):
            for mode in ("off", "workspace"):
                workspace = base / f"{number}-{mode}"
                workspace.mkdir()
                _fill(workspace)
                before = _state(workspace)
                result = tool(mode).run_sync(command, ctx=limpet.ToolContext(workspace))
                is_changed = _state(workspace) != before
                if mode == "off" and not is_changed:
                    wrong.append(f"{name} proves nothing: {result.output}")
                is_told = result.sandbox is not None and result.sandbox.changed != ()
                if mode != "off" and is_changed and (user == "root" or not is_told):
                    wrong.append(f"{name}, {'reported' if is_told else 'not reported'}")
        return wrong

    with scratch(user) as base:
        assert as_user(user, lambda: act(base)) == []


@pytest.mark.parametrize("user", USERS)
def test_a_workspace_below_a_temporary_place_is_not_replaced_by_its_parent(user: str) -> None:
    """The way to the workspace is writable: /tmp is, and so is what lies between."""

    def act(parent: Path, mode: str) -> tuple[bool, bool]:
        workspace = parent / "workspace"
        workspace.mkdir(parents=True)
        _fill(workspace)
        result = tool(mode).run_sync(
            f"mv {parent} {parent}.old; mkdir -p {workspace}/.git/hooks"
            f" && echo evil > {workspace}/.git/hooks/pre-commit",
            ctx=limpet.ToolContext(workspace),
        )
        hook = (workspace / ".git/hooks/pre-commit").read_text()
        is_told = result.sandbox is not None and result.sandbox.changed != ()
        return hook != FILES[".git/hooks/pre-commit"], is_told

    with tempfile.TemporaryDirectory(prefix="security-") as path:
        if IS_ROOT and user == "ordinary":
            os.chown(path, ORDINARY, ORDINARY)
        assert as_user(user, lambda: act(Path(path, "first"), "off"))[0]
        is_changed, is_told = as_user(user, lambda: act(Path(path, "parent"), "workspace"))
    assert not is_changed or (is_told and user != "root")


# What git obeys beside its configuration: each makes it run $PWD/evil/run the next time.
PLANTS = {
    "nothing": "true",
    "the configuration": "git config core.fsmonitor $PWD/evil/run",
    "a hook": "mkdir -p .git/hooks; cp evil/run .git/hooks/pre-commit",
    "a common directory": "cp -r .git evil/common; git -C evil/common config core.fsmonitor"
    " $PWD/evil/run; echo $PWD/evil/common > .git/commondir",
    "another .git": "mv .git evil/old; cp -r evil/old .git; git config core.fsmonitor"
    " $PWD/evil/run",
    "a .git that is a file": "cp -r .git evil/git; git --git-dir=evil/git config core.fsmonitor"
    " $PWD/evil/run; rm -rf .git; mv .git evil/old; echo gitdir: $PWD/evil/git > .git",
    "a configuration of the worktree": "git config extensions.worktreeConfig true;"
    " git config --worktree core.fsmonitor $PWD/evil/run",
    "attributes with a filter": "git config filter.x.clean $PWD/evil/run;"
    " echo '* filter=x' > .git/info/attributes; touch file",
}


def _git(directory: Path, *arguments: str) -> None:
    names = {"GIT_AUTHOR_NAME": "x", "GIT_AUTHOR_EMAIL": "x", "GIT_COMMITTER_NAME": "x",
             "GIT_COMMITTER_EMAIL": "x", "HOME": str(directory),
             "PATH": "/usr/bin:/bin"}  # fmt: skip
    subprocess.run(["git", "-C", directory, *arguments], env=names, capture_output=True)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("plant", PLANTS)
def test_git_outside_runs_nothing_that_was_planted_unseen(user: str, plant: str) -> None:
    def act(base: Path, mode: str) -> tuple[bool, bool]:
        workspace = base / mode
        (workspace / "evil").mkdir(parents=True)
        _git(workspace, "init", "-q")
        (workspace / "file").write_text("x")
        _git(workspace, "add", "file")
        program = workspace / "evil/run"
        program.write_text(f"#!/bin/sh\ntouch {base}/ran-{mode}\n")
        program.chmod(0o755)
        command = f"export HOME=$PWD; {PLANTS[plant]}"
        result = tool(mode).run_sync(command, ctx=limpet.ToolContext(workspace))
        _git(workspace, "status")
        _git(workspace, "add", "file")
        _git(workspace, "commit", "-m", "x")
        is_told = result.sandbox is not None and result.sandbox.changed != ()
        return (base / f"ran-{mode}").exists(), is_told

    with scratch(user) as base:
        assert as_user(user, lambda: act(base, "off"))[0] == (plant != "nothing")
        ran, is_told = as_user(user, lambda: act(base, "workspace"))
        assert not ran or is_told


# Repositories that are not the workspace's own: where each is, and where its configuration is.
FURTHER = {
    "in a directory below": ("inner", "inner/.git/config"),
    "a worktree elsewhere in it": ("tree", ".git/worktrees/tree/commondir"),
    "a submodule": ("module", ".git/modules/module/config"),
}


def _make_further(workspace: Path) -> None:
    _git(workspace, "init", "-q")
    _git(workspace, "commit", "--allow-empty", "-m", "x")
    _git(workspace, "worktree", "add", "tree")
    for name in ("inner", "module"):
        (workspace / name).mkdir()
        _git(workspace / name, "init", "-q")
    (workspace / ".git/modules").mkdir()
    (workspace / "module/.git").rename(workspace / ".git/modules/module")
    (workspace / "module/.git").write_text("gitdir: ../.git/modules/module\n")


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("place", FURTHER)
def test_git_outside_runs_nothing_planted_in_further_repositories(user: str, place: str) -> None:
    directory, file = FURTHER[place]

    def act(base: Path, mode: str) -> tuple[bool, bool]:
        workspace = base / mode
        workspace.mkdir()
        _make_further(workspace)
        program = workspace / "run"
        program.write_text(f"#!/bin/sh\ntouch {base}/ran-{mode}\n")
        program.chmod(0o755)
        setting = f"printf '[core]\\n\\tfsmonitor = %s/run\\n' $PWD >> {file}"
        if file.endswith("commondir"):
            setting = (
                f"cp -r .git evil; printf '[core]\\n\\tfsmonitor = %s/run\\n' $PWD >> evil/config;"
                f" echo $PWD/evil > {file}"
            )
        result = tool(mode).run_sync(setting, ctx=limpet.ToolContext(workspace))
        _git(workspace / directory, "status")
        is_told = result.sandbox is not None and result.sandbox.changed != ()
        return (base / f"ran-{mode}").exists(), is_told

    with scratch(user) as base:
        assert as_user(user, lambda: act(base, "off"))[0]
        ran, is_told = as_user(user, lambda: act(base, "workspace"))
        assert not ran or is_told
