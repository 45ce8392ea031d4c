"""A command gets descriptors 0 to 2 and nothing else of its host."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import limpet


def test_no_other_descriptor_is_inherited(bash: limpet.Bash) -> None:
    leaky = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(leaky, True)
    try:
        for command in ("ls /proc/self/fd", "ls /proc/self/fd | cat", "ls /proc/self/fd <&0"):
            # 3 is the listing's own.
            assert bash.run_sync(command).output.split() == ["0", "1", "2", "3"]
        persistent = limpet.Bash(persist_cwd=True)
        assert persistent.run_sync("ls /proc/self/fd", stdin="x").output.split() == list("0123")
    finally:
        os.close(leaky)


def test_a_host_without_standard_streams_can_run_commands(tmp_path: Path) -> None:
    """A server that speaks on its own standard streams may have moved them away."""
    code = (
        "import os\nfor fd in (0, 1, 2): os.close(fd)\n"
        "import limpet\nr = limpet.Bash().run_sync('cat; echo out; echo err >&2')\n"
        f"open({str(tmp_path / 'result')!r}, 'w').write(r.output)"
    )
    subprocess.run([sys.executable, "-c", code], timeout=20, check=False)
    assert (tmp_path / "result").read_text() == "out\nerr\n"


def test_a_command_neither_reads_nor_writes_its_hosts_streams() -> None:
    code = "import limpet; limpet.Bash().run_sync('cat; echo leaked; echo leaked >&2')"
    host = subprocess.run(
        [sys.executable, "-c", code], input=b'{"jsonrpc": "2.0"}', capture_output=True, timeout=20
    )
    assert (host.stdout, host.stderr) == (b"", b"")
