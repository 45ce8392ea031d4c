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
    {
        "errors",
        "verdict",
        "result",
        "events",
        "confinement",
        "policy",
        "context",
        "state",
        "loop",
        "turns",
    },
    {"command"},
    {"safety"},
    {"process"},
    {"output"},
    {"sandbox"},
    {"hint", "backlog"},
    {"launch"},
    {"conclude", "handover", "teller"},
    {"run"},
    {"tasks"},
    {"attempt"},
    {"starting"},
    {"login"},
    {"tool"},
    {"settings"},
    {"profiles"},
    {"__init__"},
    {"render"},
    {"integrations"},
    {"cli"},
]
"""Each may import itself and what stands before it."""

MODULES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))


def _place(part: str) -> int:
    return next(place for place, parts in enumerate(FLOW) if part in parts)


def _imported(path: Path) -> set[str]:
    """Return what a module imports when it runs: what is named in types only does not count."""
    found = set()
    tree = ast.parse((ROOT / path).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("limpet"):
            names = [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
            parts = {name.split(".")[1] for name in names if name.count(".")}
            found |= {
                part for part in parts if (ROOT / part).is_dir() or (ROOT / f"{part}.py").exists()
            }
    return found


def test_a_module_imports_only_from_its_left() -> None:
    wrong = []
    for path in MODULES:
        own, imported = path.parts[0].removesuffix(".py"), _imported(path)
        wrong += [f"{path}: {part}" for part in imported if _place(part) > _place(own)]
        # Modules of one step do not lean on each other either, but for packages on themselves.
        peers = {part for part in imported if _place(part) == _place(own) and part != own}
        leaning = peers - {"errors", "verdict", "result", "events", "confinement", "policy"}
        wrong += [f"{path}: {part}" for part in leaning]
    assert wrong == []


def _run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    return done.stdout


EACH_ALONE = """
import argparse, asyncio, ctypes, importlib, json, os, platformdirs, pydantic, pyte, regex, sys
import rich.console, rich.syntax, rich.table, tree_sitter, tree_sitter_bash, uuid
for name in sys.argv[1:]:
    pid = os.fork()
    if not pid:
        try:
            importlib.import_module(name)
        except BaseException as error:
            print(f"{name}: {error!r}", flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
"""


def test_a_module_can_be_imported_alone() -> None:
    """Each in a process that has imported nothing of limpet yet, though what others wrote."""
    names = [
        ".".join(("limpet", *path.with_suffix("").parts)).removesuffix(".__init__")
        for path in MODULES
        # An integration is imported by who has its framework, which takes a second each.
        if path.name != "__main__.py" and path.parts[0] != "integrations"
    ]
    done = subprocess.run(
        [sys.executable, "-c", EACH_ALONE, *names], capture_output=True, text=True, timeout=50
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


@pytest.mark.parametrize(
    ("command", "third_parties"),
    [("false", set()), ("echo hi; exit 1", {"tree_sitter"})],
)
def test_a_run_imports_only_the_parser_and_only_for_syntax(
    command: str, third_parties: set[str]
) -> None:
    """asyncio alone takes longer to import than all of `limpet run true` takes."""
    code = (
        "import sys; before = set(sys.modules)\n"
        f"import limpet; limpet.Bash().run_sync({command!r})\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    imported = set(_run(code).split())
    assert imported - sys.stdlib_module_names == {"limpet", *third_parties}
    assert imported.isdisjoint({"asyncio", "subprocess", "tempfile", "shutil", "pathlib"})


def test_windows_is_refused_at_import_with_the_way_out() -> None:
    code = (
        "import sys; sys.platform = 'win32'\n"
        "try: import limpet\n"
        "except ImportError as error: print(error)"
    )
    assert "inside WSL" in _run(code)
