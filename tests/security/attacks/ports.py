"""Ways to a closed port from a socket that may connect to another."""

from __future__ import annotations

import ctypes
import socket
import struct
import sys
from contextlib import suppress

allowed, closed = map(int, sys.argv[1:])
_FAST_OPEN, _FAST_OPEN_CONNECT = 0x2000_0000, 30

for address, family in (("127.0.0.1", socket.AF_INET), ("::ffff:127.0.0.1", socket.AF_INET6)):
    one = socket.socket(family)
    with suppress(OSError):
        one.connect((address, allowed))
    with suppress(OSError):
        one.connect((address, closed))
    # An address of no family disconnects; then it may be connected again.
    ctypes.CDLL(None).connect(one.fileno(), struct.pack("=H26x", 0), 28)
    with suppress(OSError):
        one.connect((address, closed))
    for flags in (_FAST_OPEN, 0):
        with suppress(OSError):
            socket.socket(family).sendto(b"escaped", flags, (address, closed))
        with suppress(OSError):
            socket.socket(family).sendmsg([b"escaped"], [], flags, (address, closed))
    two = socket.socket(family)
    with suppress(OSError):
        two.setsockopt(socket.IPPROTO_TCP, _FAST_OPEN_CONNECT, 1)
        two.connect((address, closed))
        two.send(b"escaped")
    with suppress(OSError):
        three = socket.socket(family)
        three.setblocking(False)
        three.connect_ex((address, closed))
    with suppress(OSError):
        socket.create_connection((address, closed), source_address=(address, 0))
