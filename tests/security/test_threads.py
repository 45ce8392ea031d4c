"""The host's own threads are out of reach, also those that start commands, while they start them.

Whoever may signal or read one thread of the host, by its id, may do so to all of it.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import threading
from pathlib import Path

import pytest

import limpet
from security.attacks.processes import SECRET
from security.host import MODES, USERS, as_user, make_tools, scratch, tool

_OTHERS = 12
"""Commands that the host starts meanwhile, each from a thread of its own."""


def _attack(user: str, mode: str) -> tuple[int, int, dict[str, list[str]]]:
    """Return how often the attempts were made, how many signals came, and what was read."""
    with scratch("root") as tools, scratch(user) as base:
        make_tools(tools)
        return as_user(user, lambda: _host(mode, tools, base))


def _host(mode: str, tools: Path, base: Path) -> tuple[int, int, dict[str, list[str]]]:
    heard = []
    signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
    secret = ctypes.create_string_buffer(SECRET)
    (base / "file").write_text("secret")
    (base / "own").write_text("own")
    file = os.open(base / "file", os.O_RDONLY)
    aim = {"group": os.getpid(), "at": ctypes.addressof(secret), "fd": file, "inside": str(base)}
    bash, ctx = tool(mode), limpet.ToolContext(base)
    if mode == "off":
        (base / "stop").touch()  # once is enough, and disturbs the host no longer than needed
    found: list[limpet.Result] = []
    command = f"PYTHONPATH={tools} /usr/bin/python3 -sB -m security.attacks.threads '{{}}' stop"
    attack = command.format(json.dumps(aim))
    attacker = threading.Thread(target=lambda: found.append(bash.run_sync(attack, ctx=ctx)))
    attacker.start()
    for _ in range(_OTHERS if mode != "off" else 0):
        assert bash.run_sync("true", ctx=ctx).exit_code == 0
    (base / "stop").touch()
    attacker.join()
    assert found[0].exit_code == 0, found
    rounds, answers = json.loads(found[0].stdout)
    return rounds, len(heard), answers


@pytest.mark.parametrize("user", USERS)
def test_without_a_sandbox_the_host_can_be_signalled_and_read(user: str) -> None:
    _, signals, answers = _attack(user, "off")
    assert signals > 0
    assert answers["/proc mem"][0] == answers["process_vm_readv"][0] == SECRET.decode()
    assert {"/proc environ", "/proc task environ", "/proc fd", "/proc cwd", "/proc maps",
            "PTRACE_SEIZE", "pidfd_getfd", "kcmp"} <= answers.keys()  # fmt: skip


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mode", MODES)
def test_no_thread_of_the_host_can_be_signalled_or_read(user: str, mode: str) -> None:
    rounds, signals, answers = _attack(user, mode)
    assert rounds >= 1
    assert (signals, answers) == (0, {})
