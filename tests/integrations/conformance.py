"""`make conformance`: the protocol's public suite and inspector, from npm, and limpet mcp."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PLACE = Path(".conformance")
SUITE = "@modelcontextprotocol/conformance@0.1.13"  # the last that runs on Node 20
INSPECTOR = "@modelcontextprotocol/inspector"
SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-error",
    "resources-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)
"""Those that ask nothing of a server but the protocol: the others need the suite's own tools."""
LIMPET = str(Path(sys.executable).with_name("limpet"))


def main() -> int:
    """Run all, and return 1 if something failed."""
    if not (PLACE / "node_modules" / ".bin" / "conformance").exists():
        PLACE.mkdir(exist_ok=True)
        (PLACE / "package.json").write_text("{}")
        subprocess.run(["npm", "install", "--silent", SUITE, INSPECTOR], cwd=PLACE, check=True)
    programs = PLACE / "node_modules" / ".bin"
    with tempfile.TemporaryDirectory() as work:
        failed = [*suite(programs / "conformance", work), *inspector(programs / "mcp-inspector")]
    print(f"{len(failed)} failed: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


def suite(program: Path, work: str) -> list[str]:
    """Return the scenarios that fail over HTTP."""
    server = subprocess.Popen(
        [LIMPET, "mcp", "--http", "127.0.0.1:0", "--cwd", work],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    found = re.search(r"at (http\S+)", server.stderr.readline())
    assert found is not None
    failed = []
    try:
        for name in SCENARIOS:
            done = subprocess.run(
                [program, "server", "--url", found[1], "--scenario", name],
                capture_output=True,
                text=True,
                timeout=60,
            )
            said = re.search(r"Passed: .*", done.stdout + done.stderr)
            print(f"{name}: {said[0] if said else 'no answer'}")
            if done.returncode:
                failed.append(name)
    finally:
        server.terminate()
        server.wait()
    return failed


def inspector(program: Path) -> list[str]:
    """Return what fails when the inspector lists and calls tools on stdio."""
    failed = []
    for name, arguments in {
        "inspector tools/list": ["--method", "tools/list"],
        "inspector tools/call": [
            "--method", "tools/call", "--tool-name", "bash", "--tool-arg", "command=echo hi",
        ],
    }.items():  # fmt: skip
        done = subprocess.run(
            [program, "--cli", LIMPET, "mcp", *arguments],
            capture_output=True,
            text=True,
            timeout=60,
        )
        answer = json.loads(done.stdout or "{}")
        is_right = "tools" in answer or answer.get("content", [{}])[0].get("text") == "hi\n"
        print(f"{name}: {'passed' if is_right else 'failed'}")
        if not is_right:
            failed.append(name)
    return failed


if __name__ == "__main__":
    sys.exit(main())
