"""One operation through io_uring, by raw system calls."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct

from security.attacks.calls import AT_FDCWD, call

OPEN, UNLINK, MKDIR, SOCKET = 18, 36, 37, 45
_SUBMISSIONS, _ENTRIES = 0, 0x1000_0000
_GET_EVENTS = 1


def make_socket(family: int, kind: int) -> int:
    """Make a socket, and return its descriptor."""
    return _submit(struct.pack("=BBHiQQIIQ24x", SOCKET, 0, 0, family, kind, 0, 0, 0, 7))


def submit(operation: int, path: str, length: int, flags: int = 0) -> int:
    """Do one operation on a path, and return its result.

    Raises:
        OSError: It failed.
    """
    name = ctypes.create_string_buffer(os.fsencode(path))
    place = ctypes.addressof(name)
    fields = operation, 0, 0, AT_FDCWD, 0, place, length, flags, 7
    return _submit(struct.pack("=BBHiQQIIQ24x", *fields))


def _submit(entry: bytes) -> int:
    parameters = ctypes.create_string_buffer(120)
    ring = call("io_uring_setup", 1, parameters)
    words = struct.unpack("=30I", parameters.raw)
    submission, completion = words[10:20], words[20:30]
    size = max(submission[6] + 4 * words[0], completion[5] + 16 * words[1])
    rings = mmap.mmap(ring, size, offset=_SUBMISSIONS)
    mmap.mmap(ring, 64 * words[0], offset=_ENTRIES)[:64] = entry
    rings[submission[6] : submission[6] + 4] = struct.pack("=I", 0)
    rings[submission[1] : submission[1] + 4] = struct.pack("=I", 1)
    call("io_uring_enter", ring, 1, 1, _GET_EVENTS, None, 0)
    _, result = struct.unpack_from("=Qi", rings, completion[5])
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return int(result)
