"""The program around the jail: limpet, as root or as an ordinary user, and a place for both."""

from __future__ import annotations

import asyncio
import ctypes
import functools
import importlib
import os
import pickle
import pkgutil
import shutil
import struct
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import limpet
from limpet.sandbox import ground

Answer = TypeVar("Answer")

ORDINARY = 65533
"""A user that nothing else runs as, so that what is done to all of a user's processes hits none."""
STRANGER = 65532
"""Whose files only those with privileges can read."""
IS_ROOT = os.geteuid() == 0
USERS = ("root", "ordinary") if IS_ROOT else ("ordinary",)
OUTSIDE = "/var/tmp"
"""Not one of the temporary places that a workspace may write to."""
MODES = ("read-only", "workspace")
_PR_SET_DUMPABLE = 4


def tool(mode: str, **fields: object) -> limpet.Bash:
    """Return limpet with a sandbox and without rules, which would refuse some attempts."""
    always: dict[str, object] = {
        "rules": limpet.RulePolicy(pack="none"),
        "sandbox": mode,
        "timeout_s": 50,
        "survivors": "kill",
        "output": limpet.OutputPolicy(head_bytes=1 << 20),
    }
    return limpet.Bash(limpet.Policy(**always | fields))  # type: ignore[arg-type]  # it checks


@functools.cache
def warm_up() -> None:
    """Have everything imported that an ordinary user may not be able to read."""
    for module in pkgutil.walk_packages(limpet.__path__, "limpet."):
        # The frameworks are not what is attacked, and take longer to load than all attacks.
        if "__main__" not in module.name and not module.name.startswith("limpet.integrations."):
            importlib.import_module(module.name)
    for mode in MODES:
        tool(mode, hide=["/nowhere"]).run_sync("true | true", ctx=limpet.ToolContext("/usr"))
    tool("off").run_sync("echo x; no-such-program")

    async def stream() -> None:
        async for _ in tool("off").stream("true"):
            pass

    asyncio.run(stream())
    importlib.import_module("encodings.idna")


def as_user(user: str, action: Callable[[], Answer]) -> Answer:
    """Return what an action returns that is done by a user, in a process forked for it.

    Raises:
        AssertionError: It raised.
    """
    warm_up()
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        pid = os.fork()
    if pid == 0:
        os.close(read_end)
        try:
            _become(user)
            answer: tuple[bool, object] = True, action()
        except BaseException:
            answer = False, traceback.format_exc()
        with open(write_end, "wb") as file:
            pickle.dump(answer, file)
        os._exit(0)
    os.close(write_end)
    with open(read_end, "rb") as file:
        data = file.read()
    os.waitpid(pid, 0)
    succeeded, found = pickle.loads(data)  # noqa: S301 -- our own
    assert succeeded, found
    return found  # type: ignore[no-any-return]


def _become(user: str) -> None:
    os.chdir("/")
    if IS_ROOT and user == "ordinary":
        os.setgroups([])
        os.setgid(ORDINARY)
        os.setuid(ORDINARY)
        # Who changes users is out of reach through /proc, for their own processes too.
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
        ground._look.cache_clear()


@contextmanager
def scratch(user: str = "ordinary") -> Iterator[Path]:
    """Give a directory outside all temporary places that belongs to a user, for a while."""
    path = Path(tempfile.mkdtemp(prefix="security-", dir=OUTSIDE))
    try:
        if IS_ROOT and user == "ordinary":
            os.chown(path, ORDINARY, ORDINARY)
        path.chmod(0o755)
        yield path
    finally:
        shutil.rmtree(path)


def make_tools(path: Path) -> None:
    """Put the attempts where every user can run them, and programs with rights beside them."""
    here = Path(__file__).parent / "attacks"
    shutil.copytree(here, path / "security/attacks", ignore=shutil.ignore_patterns("__pycache__"))
    for found in [path, *path.rglob("*")]:
        found.chmod(0o755)
    if IS_ROOT:
        sealed = path / "sealed"
        sealed.write_text("unsealed")
        os.chown(sealed, STRANGER, STRANGER)
        sealed.chmod(0o600)
        for name in ("setuid", "capable"):
            shutil.copy("/bin/cat", path / name)
        (path / "setuid").chmod(0o4755)
        dac_override, effective = 1 << 1, 1
        rights = struct.pack("<IIIII", 0x0200_0000 | effective, dac_override, 0, 0, 0)
        os.setxattr(path / "capable", "security.capability", rights)
