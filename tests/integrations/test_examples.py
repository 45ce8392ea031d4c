"""Every example runs as it is: no key, no network, nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
NO_NETWORK = (
    "import socket, sys, runpy\n"
    "def refuse(self, address, *_):\n"
    "    if self.family != socket.AF_UNIX and address[0] not in ('127.0.0.1', '::1'):\n"
    "        raise OSError(f'an example must not use the network: {address}')\n"
    "    return connect(self, address)\n"
    "connect, socket.socket.connect = socket.socket.connect, refuse\n"
    "runpy.run_path(sys.argv[1], run_name='__main__')"
)


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs_without_a_key_or_a_network(
    path: Path, tmp_path: Path, state_dir: Path
) -> None:
    keep = ("PATH", "LANG", "TMPDIR", "LIMPET_TEST_SESSION")
    env = {name: os.environ[name] for name in keep if name in os.environ}
    env |= {"HOME": str(tmp_path), "LIMPET_STATE_DIR": str(state_dir)}
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", NO_NETWORK, str(path)],
        capture_output=True, text=True, timeout=50, cwd=tmp_path, env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.strip(), "it shows what happened"
