"""Any volume of output is taken in constant memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

GROWTH_LIMIT = 20 << 20

# A process of its own, so that memory another test has used and freed does not hide growth.
PROBE = """
import asyncio, resource, sys
sys.path[:0] = {path!r}
import limpet
from limpet.events import Output
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
bash = limpet.Bash()
bash.run_sync('seq 100000')
async def slow():
    async for event in bash.stream({command!r}):
        await asyncio.sleep(0.01)
asyncio.run(bash.run('true'))
before = peak()
if {streamed}: asyncio.run(slow())
else: bash.run_sync({command!r})
print(peak() - before)
"""

FLOODS = {
    "lines": "yes | head -c 100M",
    "one endless line": "head -c 100M /dev/zero | tr '\\0' x",
    "zeros": "head -c 100M /dev/zero",
    "tiny writes": "for i in $(seq 20000); do echo x; done",
}


@pytest.mark.parametrize("command", FLOODS.values(), ids=FLOODS.keys())
@pytest.mark.parametrize("streamed", [False, True], ids=["run", "stream to a slow consumer"])
def test_memory_does_not_grow_with_the_output(command: str, streamed: bool) -> None:
    code = PROBE.format(path=sys.path, command=command, streamed=streamed)
    probe = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert probe.returncode == 0, probe.stderr
    assert int(probe.stdout) < GROWTH_LIMIT
