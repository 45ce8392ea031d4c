"""A task is jailed and limited like any command, and stays so when its host is dead."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import limpet
from limpet.confinement import SandboxMode
from limpet.tasks.record import TaskStatus
from limpet.tasks.shelf import Shelf
from limpet.tasks.task import Task
from security.host import MODES, OUTSIDE, scratch
from tasks.helpers import ended, finished_text

IS_ROOT = os.geteuid() == 0
USERS = ("root", "ordinary") if IS_ROOT else ("ordinary",)
UID = 65533
_READS_ALL = "+dac_read_search"
"""The interpreter may lie where only root can read."""


@contextmanager
def place(user: str) -> Iterator[Path]:
    """Give a workspace, beside a state directory, that belongs to a user."""
    with scratch("root") as path:
        (path / "work").mkdir()
        (path / "state").mkdir(mode=0o700)
        if IS_ROOT and user == "ordinary":
            for one in (path, path / "work", path / "state"):
                os.chown(one, UID, UID)
        yield path


def host_of(user: str, path: Path, code: str) -> list[str]:
    """Run a host of a user to its end, which comes by SIGKILL, and return what it printed."""
    words = [sys.executable, "-c", code]
    if IS_ROOT and user == "ordinary":
        drop = ["--reuid", str(UID), "--regid", str(UID), "--clear-groups"]
        keep = ["--inh-caps", f"-all,{_READS_ALL}", "--ambient-caps", _READS_ALL]
        words = ["setpriv", *drop, *keep, *words]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=30,
        cwd=path / "work",
        env={**os.environ, "LIMPET_STATE_DIR": str(path / "state"), "HOME": str(path)},
    )
    assert done.returncode == -9, done.stderr
    return done.stdout.split()


BEGIN = """
import limpet, os, signal
bash = limpet.Bash(sandbox={mode!r}, rules="none")
command = {command!r}
if {how!r} == "started":
    task_id = bash.start_sync(command).id
else:
    task_id = bash.run_sync(command, timeout_s=0.3, on_timeout="background").task_id
print(task_id, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
SOCKETS = (
    'perl -MSocket -e \'socket(S,AF_UNIX,SOCK_STREAM,0); bind(S,sockaddr_un("s")) or die "$!";'
    ' listen(S,1); socket(C,AF_UNIX,SOCK_STREAM,0); connect(C,sockaddr_un("s")) or die "$!";'
    ' print "connected\\n"\''
)
WORKS = (
    "until [ -e go ]; do sleep 0.05; done\n"
    "echo x > f && chmod 640 f && touch -d '2001-01-01 UTC' f; stat -c '%a %Y' f\n"
    f"{SOCKETS}\nexit 7"
)


@pytest.mark.parametrize("how", ["started", "promoted"])
@pytest.mark.parametrize("user", USERS)
def test_a_jailed_task_works_when_its_host_is_dead(user: str, how: str) -> None:
    with place(user) as path:
        (task_id,) = host_of(user, path, BEGIN.format(mode="workspace", command=WORKS, how=how))
        (path / "work/go").touch()
        task = task_in(path, task_id)
        waited = ended(task)
        assert waited.text == "640 978307200\nconnected\n"
        assert waited.exit_code == 7
        finished_text(task)


def task_in(path: Path, task_id: str) -> Task:
    """Return a task from a state directory that may be another user's."""
    return Task(Shelf(path / "state/tasks"), task_id)


TRIES = (
    "until [ -e go ]; do sleep 0.05; done\n"
    "echo x > ../outside; echo x > {outside}; echo x > inside; chmod 777 ..; kill -9 $PPID\n"
    "exec 3<>/dev/tcp/127.0.0.1/9; exit 8"
)


@pytest.mark.parametrize("how", ["started", "promoted"])
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mode", MODES)
def test_a_jailed_task_cannot_leave_its_jail_when_its_host_is_dead(
    user: str, mode: SandboxMode, how: str
) -> None:
    with place(user) as path:
        outside = Path(OUTSIDE, f"outside-{path.name}")
        command = TRIES.format(outside=outside)
        (task_id,) = host_of(user, path, BEGIN.format(mode=mode, command=command, how=how))
        (path / "work/go").touch()
        task = task_in(path, task_id)
        waited = ended(task)
        assert (waited.status, waited.exit_code) == (TaskStatus.EXITED, 8), waited
        assert not outside.exists()
        assert not (path / "outside").exists()
        assert (path / "work/inside").exists() == (mode == "workspace")
        assert path.stat().st_mode & 0o777 == 0o755
        assert task.to_dict()["sandbox"] == mode
        finished_text(task)


@pytest.mark.parametrize("mode", MODES)
def test_a_jailed_task_reads_its_input_and_has_its_terminal(
    mode: SandboxMode, tmp_path: Path
) -> None:
    bash = limpet.Bash(sandbox=mode)
    ctx = limpet.ToolContext(tmp_path)
    task = bash.start_sync("read line; echo got $line", stdin=True, ctx=ctx)
    task.send_sync("this\n")
    assert ended(task).text == "got this\n"
    task = bash.start_sync("stty size; [ -t 1 ] && echo terminal", pty=True, ctx=ctx)
    assert ended(task).text == "24 80\nterminal\n"
    assert ended(bash.start_sync(f"true {'x' * 200_000}", ctx=ctx)).exit_code == 0


def test_a_jailed_task_is_stopped_with_all_it_started(tmp_path: Path) -> None:
    bash = limpet.Bash(sandbox="workspace")
    task = bash.start_sync(
        "setsid sleep 60 & trap '' TERM; while :; do sleep 0.1; done",
        ctx=limpet.ToolContext(tmp_path),
    )
    assert task.stop_sync().status is TaskStatus.STOPPED


SERVER = (
    "import socket, time; s = socket.create_server(('127.0.0.1', 0));"
    " print(s.getsockname()[1], flush=True); time.sleep(60)"
)


@pytest.mark.skipif(not IS_ROOT, reason="needs a network of its own")
def test_the_port_of_a_server_with_a_network_of_its_own_is_seen(tmp_path: Path) -> None:
    bash = limpet.Bash(sandbox="workspace")
    task = bash.start_sync(f'/usr/bin/python3 -c "{SERVER}"', ctx=limpet.ToolContext(tmp_path))
    port = task.wait_sync(r"/^\d+$/", timeout_s=20).match
    assert task.wait_sync(f"port:{port}", timeout_s=20).matched == "port"


def test_a_promoted_pipeline_in_a_jail_has_a_true_exit_code_when_its_host_is_dead() -> None:
    with place("root") as path:
        command = "until [ -e go ]; do sleep 0.05; done; echo a | cat; exit 4"
        code = BEGIN.format(mode="workspace", command=command, how="promoted")
        (task_id,) = host_of("root", path, code)
        (path / "work/go").touch()
        waited = ended(task_in(path, task_id))
        assert (waited.status, waited.exit_code) == (TaskStatus.EXITED, 4)


LIMITS = {
    "files": (limpet.LimitPolicy(file_bytes=10_000), "head -c 20000 /dev/zero > f; stat -c %s f"),
    "descriptors": (limpet.LimitPolicy(open_files=50), "ulimit -n"),
    "memory": (limpet.LimitPolicy(memory_bytes=300 << 20), "ulimit -d"),
}
ANSWERS = {"files": "10000\n", "descriptors": "50\n", "memory": f"{300 << 10}\n"}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_hold_in_tasks(name: str, tmp_path: Path) -> None:
    limits, command = LIMITS[name]
    task = limpet.Bash(limits=limits).start_sync(command, ctx=limpet.ToolContext(tmp_path))
    assert ended(task).text.endswith(ANSWERS[name])


def test_a_limit_on_files_is_none_on_the_log() -> None:
    task = limpet.Bash(limits=limpet.LimitPolicy(file_bytes=10_000)).start_sync("seq 50000")
    assert ended(task).exit_code == 0
    assert task.output(last=1).text == "50000\n"


def test_a_limit_on_processes_holds_when_the_host_is_dead() -> None:
    command = "sleep 0.3; for i in $(seq 60); do sleep 0.5 & done; wait"
    code = (
        "import limpet, os, signal\n"
        "bash = limpet.Bash(limits=limpet.LimitPolicy(processes=30))\n"
        f"print(bash.start_sync({command!r}).id, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    with place("ordinary") as path:
        (task_id,) = host_of("ordinary", path, code)
        task = task_in(path, task_id)
        assert "fork" in ended(task).text
        finished_text(task)
