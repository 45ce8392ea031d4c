"""Every example runs as it is: no key, no network, nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from test_readme import FRAMEWORKS, PAGES, run_examples

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
ALL_OF_THEM = """
import runpy, socket, sys, traceback

def refuse(self, address, *_):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1"):
        raise OSError(f"an example must not use the network: {address}")
    return connect(self, address)

connect, socket.socket.connect = socket.socket.connect, refuse
for path in sys.argv[1:]:
    print(f"# {path}", file=sys.stderr)
    runpy.run_path(path, run_name="__main__")
"""


def test_every_example_runs_without_a_key_or_a_network(tmp_path: Path, state_dir: Path) -> None:
    """In one process, since to import a framework takes longer than to run its example."""
    assert len(EXAMPLES) >= 6
    keep = ("PATH", "LANG", "TMPDIR", "LIMPET_TEST_SESSION")
    env = {name: os.environ[name] for name in keep if name in os.environ}
    env |= {"HOME": str(tmp_path), "LIMPET_STATE_DIR": str(state_dir)}
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ALL_OF_THEM, *map(str, EXAMPLES)],
        capture_output=True, text=True, timeout=55, cwd=tmp_path, env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_every_block_of_the_page_runs(tmp_path: Path) -> None:
    run_examples(next(page for page in PAGES if page.stem == FRAMEWORKS), tmp_path)
