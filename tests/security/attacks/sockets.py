"""Ways to reach a listener outside."""

# The calls themselves are what is tried.
# ruff: noqa: PTH115, PTH119

from __future__ import annotations

import array
import ctypes
import os
import socket
import struct
from collections.abc import Callable

from security.attacks import races, uring
from security.attacks.calls import Aim, call, int80, libc

_WORD = b"escaped"
_FAST_OPEN = 0x2000_0000
_UDPLITE, _MPTCP = 136, 262


def _stream(family: int, address: object, kind: int = socket.SOCK_STREAM, protocol: int = 0) -> int:
    with socket.socket(family, kind, protocol) as one:
        one.connect(address)  # type: ignore[arg-type]  # of whatever family it is
        return one.send(_WORD)


def _datagram(family: int, address: tuple[str, int] | str | bytes, protocol: int = 0) -> int:
    with socket.socket(family, socket.SOCK_DGRAM, protocol) as one:
        return one.sendto(_WORD, address)


def _from_a_pair(a: Aim, kind: int) -> int:
    one, _ = socket.socketpair(socket.AF_UNIX, kind)
    return one.sendto(_WORD, a.address)


def _message_from_a_pair(a: Aim, kind: int) -> int:
    one, _ = socket.socketpair(socket.AF_UNIX, kind)
    return one.sendmsg([_WORD], [], 0, a.address)


def _many_from_a_pair(a: Aim) -> int:
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    name = ctypes.create_string_buffer(
        struct.pack("=H", socket.AF_UNIX) + a.address.encode() + b"\0"
    )
    part = array.array("Q", [ctypes.addressof(text := ctypes.create_string_buffer(_WORD)), 7])
    header = struct.pack("=QI4xQQQQi4xI4x", ctypes.addressof(name), len(name) - 1,
                         part.buffer_info()[0], 1, 0, 0, 0, 0)  # fmt: skip
    return int(libc.sendmmsg(one.fileno(), header, 1, 0)) if text else 0


def _connect_a_pair(a: Aim, kind: int) -> int:
    one, _ = socket.socketpair(socket.AF_UNIX, kind)
    one.connect(a.address)
    return one.send(_WORD)


def _fast_open(a: Aim) -> int:
    with socket.socket() as one:
        return one.sendto(_WORD, _FAST_OPEN, ("127.0.0.1", a.port))


def _by_directory(a: Aim) -> int:
    fd = os.open(os.path.dirname(a.address), os.O_PATH)
    return _stream(socket.AF_UNIX, f"/proc/self/fd/{fd}/{os.path.basename(a.address)}")


def _made(family: int, kind: int, protocol: int = 0) -> str:
    socket.socket(family, kind, protocol).close()
    return "made"


def _on_this_network(a: Aim, kind: int, protocol: int = 0) -> str:
    """Make a socket that others of the machine could send to."""
    with socket.socket(socket.AF_INET, kind, protocol) as one:
        if kind == socket.SOCK_STREAM:
            one.listen()
    # In a network of the jail's own there is nobody.
    return "made" if os.readlink("/proc/self/ns/net") == a.address else ""


def _named(name: str) -> bytes:
    return b"\0" + name.encode()


_V4, _V6 = "127.0.0.1", "::1"
# Each reaches one kind of listener: the words before the colon name it.
ATTEMPTS: dict[str, Callable[[Aim], object]] = {
    "tcp: connect": lambda a: _stream(socket.AF_INET, (_V4, a.port)),
    "tcp: fast open": _fast_open,
    "tcp: MPTCP": lambda a: _stream(socket.AF_INET, (_V4, a.port), protocol=_MPTCP),
    "tcp: from IPv6": lambda a: _stream(socket.AF_INET6, (f"::ffff:{_V4}", a.port)),
    "tcp6: connect": lambda a: _stream(socket.AF_INET6, (_V6, a.port)),
    "udp: sendto": lambda a: _datagram(socket.AF_INET, (_V4, a.port)),
    "udp: connect and send": lambda a: _stream(
        socket.AF_INET, (_V4, a.port), socket.SOCK_DGRAM
    ),
    "udp6: sendto": lambda a: _datagram(socket.AF_INET6, (_V6, a.port)),
    "stream: connect": lambda a: _stream(socket.AF_UNIX, a.address),
    "stream: by its directory": _by_directory,
    "stream: through /proc/self/root": lambda a: _stream(
        socket.AF_UNIX, f"/proc/self/root{a.address}"
    ),
    "stream: an address that changes meanwhile": races.address_of_connect,
    "stream: from a pair": lambda a: _connect_a_pair(a, socket.SOCK_STREAM),
    "seqpacket: connect": lambda a: _stream(socket.AF_UNIX, a.address, socket.SOCK_SEQPACKET),
    "seqpacket: from a pair": lambda a: _message_from_a_pair(a, socket.SOCK_SEQPACKET),
    "datagram: sendto": lambda a: _datagram(socket.AF_UNIX, a.address),
    "datagram: connect and send": lambda a: _stream(
        socket.AF_UNIX, a.address, socket.SOCK_DGRAM
    ),
    "datagram: SOCK_RAW": lambda a: _stream(socket.AF_UNIX, a.address, socket.SOCK_RAW),
    "datagram: sendto from a pair": lambda a: _from_a_pair(a, socket.SOCK_DGRAM),
    "datagram: sendmsg from a pair": lambda a: _message_from_a_pair(a, socket.SOCK_DGRAM),
    "datagram: sendmmsg from a pair": _many_from_a_pair,
    "datagram: connect a pair": lambda a: _connect_a_pair(a, socket.SOCK_DGRAM),
    "datagram: from a raw pair": lambda a: _from_a_pair(a, socket.SOCK_RAW),
    "abstract: connect": lambda a: _stream(socket.AF_UNIX, _named(a.address)),
    "abstract datagram: sendto": lambda a: _datagram(socket.AF_UNIX, _named(a.address)),
    "made: listen": lambda a: _on_this_network(a, socket.SOCK_STREAM),
    "made: raw": lambda a: _made(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
    "made: ping": lambda a: _made(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP),
    "made: packet": lambda a: _made(socket.AF_PACKET, socket.SOCK_RAW, 0x300),
    "made: UDP-Lite": lambda a: _on_this_network(a, socket.SOCK_DGRAM, _UDPLITE),
    "made: netlink route": lambda a: _made(socket.AF_NETLINK, socket.SOCK_RAW, 0),
    "made: netlink events": lambda a: _made(socket.AF_NETLINK, socket.SOCK_DGRAM, 15),
    "made: netlink generic": lambda a: _made(socket.AF_NETLINK, socket.SOCK_RAW, 16),
    "made: vsock": lambda a: _made(socket.AF_VSOCK, socket.SOCK_STREAM),
    "made: crypto": lambda a: _made(socket.AF_ALG, socket.SOCK_SEQPACKET),
    "made: SCTP": lambda a: _made(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP),
    "made: unix datagram": lambda a: _made(socket.AF_UNIX, socket.SOCK_DGRAM),
    "made: 32 bit socketcall": lambda a: int80(102, 1, struct.pack("=III", 2, 1, 0)),
    "made: 32 bit socket": lambda a: int80(359, 2, 1, 0),
    "made: x32": lambda a: call(41 | 0x4000_0000, 2, 1, 0),
    "made: io_uring": lambda a: uring.make_socket(socket.AF_INET, 1),
}  # fmt: skip

COMMANDS = {
    "tcp: bash": 'echo escaped > "/dev/tcp/127.0.0.1/$PORT"',
    "udp: bash": 'echo escaped > "/dev/udp/127.0.0.1/$PORT"',
    "tcp: perl": 'perl -MIO::Socket::INET -e \'IO::Socket::INET->new("127.0.0.1:$ENV{PORT}")'
    '->print("escaped")\'',
    "tcp: git": 'GIT_TERMINAL_PROMPT=0 timeout 0.3 git ls-remote "git://127.0.0.1:$PORT/x"; true',
}
