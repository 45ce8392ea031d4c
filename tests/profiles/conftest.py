"""Tools run in a directory of their own, and what they leave running is ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from limpet.sandbox import ground
from tasks.helpers import end_all


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory that commands start in."""
    path = (tmp_path / "work").resolve()
    path.mkdir()
    monkeypatch.chdir(path)
    return path


@pytest.fixture(autouse=True)
def end_tasks(no_leaks: None, state_dir: Path) -> Iterator[None]:
    """End what a test leaves running."""
    yield
    if (state_dir / "tasks").exists():
        end_all()


@pytest.fixture
def force() -> Iterator[Callable[..., None]]:
    """Return a function that makes the kernel look other than it is."""

    def put(**facts: Any) -> None:  # noqa: ANN401 -- any of its fields
        ground._forced.append(ground._look(os.geteuid())._replace(**facts))

    yield put
    ground._forced.clear()
