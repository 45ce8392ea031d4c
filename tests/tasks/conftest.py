"""Tests of background tasks leave tasks running: these are ended before leaks are looked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.helpers import end_all


@pytest.fixture(autouse=True)
def end_tasks(no_leaks: None, state_dir: Path) -> Iterator[None]:
    """End what a test leaves running."""
    yield
    end_all()
