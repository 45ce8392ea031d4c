"""What the README and the other pages show is true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FRAMEWORKS = "integrations"
"""The page whose examples need the frameworks: `tests/integrations` runs them."""
BLOCKS = {
    f"{page.stem}_{number}": block
    for page in PAGES
    for number, block in enumerate(
        re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S)
    )
}


EACH = """
import sys
for place, block in enumerate(sys.argv[1:]):
    exec(compile(block, f"block {place}", "exec"), {"__name__": "__main__"})
"""


def run_examples(page: Path, work: Path) -> None:
    """Run all examples of a page in one process: to import them takes longer than to run them."""
    blocks = [block for name, block in BLOCKS.items() if name.startswith(f"{page.stem}_")]
    done = subprocess.run(
        [sys.executable, "-c", EACH, *blocks], capture_output=True, text=True, timeout=50, cwd=work
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.stem != FRAMEWORKS], ids=lambda page: page.stem
)
def test_every_python_example_runs(page: Path, tmp_path: Path) -> None:
    run_examples(page, tmp_path)


def test_a_python_example_is_typed(tmp_path: Path) -> None:
    for name, block in BLOCKS.items():
        if not name.startswith(FRAMEWORKS):
            (tmp_path / f"example_{name}.py").write_text(block)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=50,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_it_links_to_exists(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert links or page.stem != "README"
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_file_of_pains_is_named_as_a_proof() -> None:
    proofs = {path.name[:7] for path in (ROOT / "tests" / "pains").glob("test_*.py")}
    assert {proof for proof in proofs if proof not in README} == set()


def test_every_requirement_of_modes_is_proven_by_a_test_that_exists() -> None:
    page = (ROOT / "docs" / "profiles.md").read_text()
    tests = (ROOT / "tests" / "profiles" / "test_modes.py").read_text()
    named = re.findall(r"`(test_req_bash_\w+)`", page)
    assert [name for name in named if f"def {name}(" not in tests] == []
    assert {name[14:17] for name in named} == {f"{number:03}" for number in range(1, 12)}
    assert set(re.findall(r"REQ-BASH-(\d+)", page)) == {f"{number:03}" for number in range(1, 12)}
