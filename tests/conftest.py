"""Every test runs in a state directory of its own and must leave nothing behind."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import uvloop
from support import marked_processes, open_descriptors, wait_until, zombie_children

import limpet
from limpet.sandbox import jail
from limpet.tasks import nursery

# What another worker leaves for a moment is nobody's stray file here.
worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
tempfile.tempdir = os.environ["TMPDIR"] = tempfile.mkdtemp(prefix=f"{worker}-")
Path(tempfile.tempdir).chmod(0o1777)
atexit.register(shutil.rmtree, tempfile.tempdir, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def warmed_up() -> None:
    """Open what limpet and libuv keep open for good, so that it does not count as leaked."""
    limpet.Bash().run_sync("true")
    limpet.Bash(sandbox="read-only").run_sync("true")
    jail.close_all()
    uvloop.new_event_loop().close()


@pytest.fixture
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where limpet keeps its files in this test."""
    path = tmp_path / "state"
    monkeypatch.setenv("LIMPET_STATE_DIR", str(path))
    return path


PURE = {"command", "safety", "render"}
"""Folders of tests that start nothing, but for these."""
IMPURE = {
    "test_differential.py",
    "test_display.py",
    "test_found.py",
    "test_panels.py",
    "test_permissions.py",
    "test_refused.py",
    "test_terminal.py",
}


@pytest.fixture(autouse=True)
def no_leaks(state_dir: Path, request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a process, a zombie, a descriptor, a thread or a stray file."""
    if request.path.parent.name in PURE and request.path.name not in IMPURE:
        yield  # to look costs more than such a test
        return
    descriptors = open_descriptors()
    processes = marked_processes()
    threads = set(threading.enumerate())
    strays = set(Path(tempfile.gettempdir()).glob("limpet-*"))
    yield
    jail.close_all()
    nursery.close()
    assert wait_until(lambda: marked_processes().keys() <= processes.keys()), marked_processes()
    assert wait_until(lambda: not zombie_children()), zombie_children()
    assert wait_until(lambda: set(threading.enumerate()) <= threads), threading.enumerate()
    after = open_descriptors()
    assert after.keys() <= descriptors.keys(), {fd: after[fd] for fd in after.keys() - descriptors}
    assert set(Path(tempfile.gettempdir()).glob("limpet-*")) <= strays
    for path in [state_dir, *state_dir.rglob("*")] if state_dir.exists() else []:
        with suppress(FileNotFoundError):  # a supervisor is still at it
            mode = stat.S_IMODE(path.stat().st_mode)
            assert mode == (0o700 if path.is_dir() else 0o600), (path, oct(mode))


@pytest.fixture
def bash() -> limpet.Bash:
    """Return a tool with the default policy."""
    return limpet.Bash()
