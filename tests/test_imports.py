"""Imports point one way along the flow, and importing limpet is cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import limpet

ROOT = Path(limpet.__file__).parent

FLOW = [
    {"_platform"},
    {"errors", "result", "events", "policy", "context", "state", "loop", "turns"},
    {"command"},
    {"process"},
    {"output"},
    {"hint", "backlog"},
    {"launch"},
    {"conclude"},
    {"run"},
    {"attempt"},
    {"login"},
    {"tool"},
    {"__init__"},
    {"render"},
    {"cli"},
]
"""Each may import itself and what stands before it."""

MODULES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))


def _place(part: str) -> int:
    return next(place for place, parts in enumerate(FLOW) if part in parts)


def _imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("limpet"):
            names = [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
            parts = {name.split(".")[1] for name in names if name.count(".")}
            found |= {
                part for part in parts if (ROOT / part).is_dir() or (ROOT / f"{part}.py").exists()
            }
    return found


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_a_module_imports_only_from_its_left(path: Path) -> None:
    own = path.parts[0].removesuffix(".py")
    assert {part for part in _imported(path) if _place(part) > _place(own)} == set()
    # Modules of one step do not lean on each other either, but for packages on themselves.
    peers = {part for part in _imported(path) if _place(part) == _place(own) and part != own}
    assert peers <= {"errors", "result", "events", "policy"}


def _run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_a_module_can_be_imported_alone(path: Path) -> None:
    if path.name == "__main__.py":
        return
    name = ".".join(("limpet", *path.with_suffix("").parts)).removesuffix(".__init__")
    _run(f"import {name}")


def test_a_run_imports_neither_a_third_party_nor_asyncio() -> None:
    """asyncio alone takes longer to import than all of `limpet run true` takes."""
    code = (
        "import sys; before = set(sys.modules)\n"
        "import limpet; limpet.Bash().run_sync('echo hi; exit 1')\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    imported = set(_run(code).split())
    assert imported - sys.stdlib_module_names == {"limpet"}
    assert imported.isdisjoint({"asyncio", "subprocess", "tempfile", "shutil", "pathlib"})


def test_windows_is_refused_at_import_with_the_way_out() -> None:
    code = (
        "import sys; sys.platform = 'win32'\n"
        "try: import limpet\n"
        "except ImportError as error: print(error)"
    )
    assert "inside WSL" in _run(code)
