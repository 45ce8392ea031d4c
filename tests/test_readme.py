"""What the README shows is true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.M | re.S)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_python_example_runs(block: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", block], capture_output=True, text=True, timeout=20, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr


def test_a_python_example_is_typed(tmp_path: Path) -> None:
    for number, block in enumerate(BLOCKS):
        (tmp_path / f"example_{number}.py").write_text(block)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=50,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout


def test_every_file_it_links_to_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_file_of_pains_is_named_as_a_proof() -> None:
    proofs = {path.name[:7] for path in (ROOT / "tests" / "pains").glob("test_*.py")}
    assert {proof for proof in proofs if proof not in README} == set()
