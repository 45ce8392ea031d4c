"""Draws docs/terminal.svg: real commands, run by limpet on a terminal, as Rich shows them."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS, ROWS = 104, 40
PROGRAM = Path(sys.executable).with_name("limpet")
REPORTED = "python3 -c 'import json, sys; print(json.dumps(dict(pages=[1, 2, 3]))) or sys.exit(3)'"
WATCHED = "for page in 1 2 3; do echo built page $page; sleep 0.4; done; echo -n page 4; sleep 60"
COMMANDS = [
    ["run", "--timeout", "0.5", "echo before; setsid sleep 600 & sleep 600"],
    ["run", "make 2>&1 | tail -1"],
    ["run", "--background", "python3 -m http.server 8765 --bind 127.0.0.1"],
    ["tasks"],
    ["check", "cd app && rm -rf node_modules .git && git init"],
    ["run", "git add README.md && git push --force"],
    ["run", "--profile", "modes", REPORTED],
]
STATUS = re.compile(r"\x1b\[\?7l.*?\x1b\[\?7h", re.DOTALL)
MOVES = re.compile(r"\x1b\[(?:\?\d+[hl]|J|\d*A)|\r")


def on_terminal(arguments: list[str], directory: str) -> Iterator[str]:
    """Yield what limpet has shown on a terminal so far, each time that it shows more."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [PROGRAM, *arguments], stdout=terminal, stderr=terminal, cwd=directory
    )
    os.close(terminal)
    seen = b""
    try:
        while True:
            try:
                seen += os.read(controller, 65536)
            except OSError:  # the terminal's last user has closed it
                break
            yield seen.decode("utf-8", "ignore")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
        os.close(controller)


def shown(arguments: list[str], directory: str) -> str:
    """Return what limpet shows on a terminal when it is done."""
    return list(on_terminal(arguments, directory))[-1].replace("\r\n", "\n").rstrip("\n")


def shown_live(arguments: list[str], directory: str) -> str:
    """Return what limpet shows while a command runs: up to some frame of the live view."""
    for seen in on_terminal(arguments, directory):
        frames = list(STATUS.finditer(seen))
        if len(frames) > 6:
            before = STATUS.sub("", seen[: frames[-1].start()])
            return MOVES.sub("", before + frames[-1].group())
    raise RuntimeError("there was no live view")


def main() -> None:
    """Run the commands and write the picture."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True,
                      color_system="truecolor")  # fmt: skip
    os.environ |= {"TERM": "xterm-256color", "NO_COLOR": ""}

    def say(prompt: str, line: str) -> None:
        console.print(Text.assemble((prompt, "bold green"), (line, "bold")))

    with tempfile.TemporaryDirectory(prefix="limpet-") as directory:
        os.environ["LIMPET_STATE_DIR"] = f"{directory}/state"
        watched = ["run", "--description", "Build the site", WATCHED]
        say("$ ", shlex.join(["limpet", *watched]))
        console.print(Text.from_ansi(shown_live(watched, directory)))
        console.print()
        try:
            for arguments in COMMANDS:
                say("$ ", shlex.join(["limpet", *arguments]))
                console.print(Text.from_ansi(shown(arguments, directory)))
                console.print()
        finally:
            stop_all()
    target = Path(__file__).with_name("terminal.svg")
    console.save_svg(str(target), title="limpet")
    print(f"wrote {target}")


def stop_all() -> None:
    """End the tasks that were begun."""
    listed = subprocess.run([PROGRAM, "tasks", "--json"], stdout=subprocess.PIPE, check=True)
    ids = [task["id"] for task in json.loads(listed.stdout)]
    subprocess.run([PROGRAM, "stop", *ids], stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    main()
