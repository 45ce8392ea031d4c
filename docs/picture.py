"""Draws docs/terminal.svg: real commands, run by limpet on a terminal, as Rich shows them."""

from __future__ import annotations

import io
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

COMMANDS = [
    ["run", "--summary", "python3 -m http.server 8765 --bind 127.0.0.1 & echo started"],
    ["run", "--timeout", "0.5", "echo before; setsid sleep 600 & sleep 600"],
    ["run", "make 2>&1 | tail -1"],
    ["check", "cd app && rm -rf node_modules .git && git init"],
    ["run", "git push --force"],
]


def on_terminal(arguments: list[str], directory: str) -> str:
    """Return what limpet shows on a terminal."""
    controller, terminal = pty.openpty()
    program = Path(sys.executable).with_name("limpet")
    process = subprocess.Popen(
        [program, *arguments], stdout=terminal, stderr=terminal, cwd=directory
    )
    os.close(terminal)
    seen = b""
    while True:
        try:
            seen += os.read(controller, 65536)
        except OSError:  # the terminal's last user has closed it
            break
    process.wait()
    os.close(controller)
    return seen.decode().replace("\r\n", "\n")


def main() -> None:
    """Run the commands and write the picture."""
    console = Console(record=True, width=104, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as directory:
        for arguments in COMMANDS:
            line = shlex.join(["limpet", *arguments])
            console.print(Text("$ ", style="bold green") + Text(line, style="bold"))
            shown = on_terminal(arguments, directory)
            for task_id in re.findall(r"as task (bash-\w+)", shown):
                on_terminal(["stop", task_id], directory)
            shown = re.sub(r"/\S+/(?=tasks/bash-)", "~/.local/state/limpet/", shown)
            console.print(Text.from_ansi(shown))
    target = Path(__file__).with_name("terminal.svg")
    console.save_svg(str(target), title="limpet")
    print(f"wrote {target}")


if __name__ == "__main__":
    main()
