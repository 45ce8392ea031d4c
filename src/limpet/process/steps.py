"""A child that makes a list of system calls of ours, and then becomes a program.

Limits and a Landlock domain must be a process's own before it runs a single instruction of anybody
else's, and its parent must have neither. Python has no way to do something in a child before it
becomes another program but `preexec_fn`, which copies all memory for it. So here the child is given
a table of system calls, and a few instructions that make them one by one. It shares our memory and
this thread waits for it, as after vfork; it writes to nothing but the table and its own stack.
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import mmap
import os
import signal
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from limpet.process import kernel

Argument = int | bytes | tuple[bytes, ...]
Step = tuple[str, tuple[Argument, ...]]
"""The name of a system call, and its arguments: of bytes the address is passed, of a tuple that of
a list of addresses of strings."""

# A row of the table is the number of the call, six arguments, and place for what it returns. A
# number below 0 ends the table; it is never come to, as the last call is execve.
_ROW = 8
_WORD = 8
_END = b"\xff" * _WORD
_LARGEST_WORD = 2**64 - 1
_INSTRUCTIONS = {
    "x86_64": bytes.fromhex(
        "4889fb"  # mov  rbx, rdi         the table
        "488b03"  # mov  rax, [rbx]       next:
        "4885c078 2c"  # test rax, rax; js end
        "488b7b08 488b7310 488b5318"  # mov rdi, rsi, rdx
        "4c8b5320 4c8b4328 4c8b4b30"  # mov r10, r8, r9
        "0f05"  # syscall
        "48894338"  # mov  [rbx+56], rax
        "483d01f0ffff 7306"  # cmp  rax, -4095; jae end: it failed
        "4883c340 ebcc"  # add  rbx, 64; jmp next
        "b8e7000000 bf7f000000 0f05"  # end: exit_group(127)
    ),
    "aarch64": bytes.fromhex(
        "f30300aa"  # mov  x19, x0        the table
        "680240f9"  # ldr  x8, [x19]      next:
        "4801f8b7"  # tbnz x8, #63, end
        "608640a9 628e41a9 649642a9"  # ldp x0 to x5
        "010000d4"  # svc  #0
        "601e00f9"  # str  x0, [x19, #56]
        "1ffc3fb1 62000054"  # cmn  x0, #4095; b.hs end: it failed
        "73020191 f6ffff17"  # add  x19, x19, #64; b next
        "c80b80d2 e00f80d2 010000d4"  # end: exit_group(127)
    ),
}
_MFD_EXEC = 0x10
_STACK_BYTES = 16384
_MASK_BYTES = 128
_ALL_SIGNALS = b"\xff" * _MASK_BYTES
_CLONE_VM, _CLONE_VFORK = 0x100, 0x4000
_F_SETFD = 2
_ON_EXEC = 4
_SET_MASK = 2
_RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)
"""Python ignores these, and no other program expects that."""
_LARGEST_ERROR = 4095


@functools.cache
def _code() -> int:
    """Return where the instructions are, made executable once.

    Raises:
        OSError: The system does not allow that.
    """
    instructions = _INSTRUCTIONS[os.uname().machine]
    try:
        fd = os.memfd_create("limpet", os.MFD_CLOEXEC | _MFD_EXEC)
    except OSError:
        fd = os.memfd_create("limpet")  # before Linux 6.3 there is no such flag, nor need for it
    try:
        os.write(fd, instructions)
        libc = kernel.libc()
        libc.mmap.restype = ctypes.c_void_p
        flags = (mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE)
        address = libc.mmap(None, ctypes.c_size_t(mmap.PAGESIZE), *flags, fd, ctypes.c_long(0))
        if address in (None, ctypes.c_void_p(-1).value):
            code = ctypes.get_errno()
            raise OSError(code, f"no executable memory: {os.strerror(code)}")
    finally:
        os.close(fd)
    return int(address)


def can_be_made() -> bool:
    """True if this machine is known and lets us have the instructions."""
    try:
        return kernel.machine() is not None and _code() != 0
    except OSError:
        return False


def start(
    program: str,
    argv: Sequence[bytes],
    environment: list[bytes],
    cwd: str,
    streams: tuple[int, int, int],
    keep: tuple[int, ...],
    steps: Sequence[Step],
    by: Callable[[Callable[[], int]], int] | None,
) -> int:
    """Start a program in a session of its own, after some steps, and return its pid.

    Args:
        program: Its path.
        argv: Its name and its arguments.
        environment: All it gets.
        cwd: Where it starts.
        streams: Its first three descriptors.
        keep: Further ones.
        steps: What the child does just before it becomes the program.
        by: Has something done by the thread that is to be its parent; None is this one.

    Raises:
        OSError: A step failed, or the program could not be run; nothing is left behind.
    """
    low = [fd for fd in streams if fd < 3]
    moved = {fd: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in low}
    try:
        sources = [moved.get(fd, fd) for fd in streams]
        ours: list[Step] = [
            *(("dup3", (fd, target, 0)) for target, fd in enumerate(sources)),
            *(("fcntl", (fd, _F_SETFD, 0)) for fd in keep),
            ("chdir", (os.fsencode(cwd) + b"\0",)),
        ]
        program_step: Step = (
            "execve",
            (os.fsencode(program) + b"\0", tuple(argv), tuple(environment)),
        )
        table = _Table(
            [
                _compiled_once(_FIRST),
                _compiled(ours),
                _compiled_once((*steps, _UNBLOCK)),
                _compiled([program_step]),
            ]
        )
        pid = table.run() if by is None else by(table.run)
    finally:
        for fd in moved.values():
            os.close(fd)
    table.check(pid, program)
    return pid


_FIRST: tuple[Step, ...] = (
    *(("rt_sigaction", (int(number), bytes(32), 0, 8)) for number in _RESTORED),
    ("setsid", ()),
    ("close_range", (3, 0xFFFF_FFFF, _ON_EXEC)),
)
_UNBLOCK: Step = ("rt_sigprocmask", (_SET_MASK, bytes(8), 0, 8))


class _Rows(NamedTuple):
    """A part of a table."""

    packed: bytes
    names: list[str]
    memory: object
    """What the arguments point to, to be kept for as long."""


def _compiled(steps: Sequence[Step]) -> _Rows:
    words: list[int] = []
    moved: list[int] = []
    """Which words are places in the memory, that its address must be added to."""
    lists: list[tuple[int, list[int]]] = []
    data = bytearray()
    for name, arguments in steps:
        words.append(kernel.number(name))
        for argument in arguments:
            if isinstance(argument, int):
                words.append(argument & _LARGEST_WORD)
            elif isinstance(argument, bytes):
                moved.append(len(words))
                words.append(len(data))
                data += argument
            else:
                lists.append((len(words), _addresses(argument, data)))
                words.append(0)
        words += [0] * (_ROW - 1 - len(arguments))
    lists_at = -(-len(data) // _WORD) * _WORD
    data += bytes(lists_at - len(data))
    size = lists_at + sum((len(found) + 1) * _WORD for _, found in lists)
    memory = ctypes.create_string_buffer(size)
    base = ctypes.addressof(memory)
    for place in moved:
        words[place] += base
    for place, found in lists:
        words[place] = base + len(data)
        # Those below 0 are in the data.
        addresses = [one if one >= 0 else base - one - 1 for one in found]
        data += struct.pack(f"={len(found) + 1}Q", *addresses, 0)
    ctypes.memmove(base, bytes(data), size)
    return _Rows(struct.pack(f"={len(words)}Q", *words), [name for name, _ in steps], memory)


_known: dict[bytes, ctypes.Array[ctypes.c_char]] = {}
_addresses_of_known: dict[bytes, int] = {}
_KNOWN_AT_MOST = 4096
_OF_ONE_RUN = (b"LIMPET_RUN=", b"PWD=", b"BASH_ENV=")
"""What an environment has anew each time; the rest is kept, as it is the same in most runs."""


def _addresses(strings: tuple[bytes, ...], data: bytearray) -> list[int]:
    """Return where strings are: those that are not known are added to the data, at -1 - place."""
    find = _addresses_of_known.get
    found = [find(string, 0) for string in strings]
    for place, string in enumerate(strings):
        if found[place]:
            continue
        is_variable = b"=" in string and not string.startswith(_OF_ONE_RUN)
        if is_variable and len(_known) < _KNOWN_AT_MOST:
            _known[string] = buffer = ctypes.create_string_buffer(string)
            found[place] = _addresses_of_known[string] = ctypes.addressof(buffer)
        else:
            found[place] = -len(data) - 1
            data += string + b"\0"
    return found


@functools.lru_cache(maxsize=256)
def _compiled_once(steps: tuple[Step, ...]) -> _Rows:
    return _compiled(steps)


class _Table:
    """The calls, as the instructions read them."""

    def __init__(self, parts: list[_Rows]) -> None:
        self._parts = parts
        packed = b"".join(part.packed for part in parts) + _END
        self._memory = ctypes.create_string_buffer(packed, len(packed))

    def run(self) -> int:
        """Have a child go through it, and return its pid when it is another program, or ended."""
        libc = kernel.libc()
        stack = ctypes.create_string_buffer(_STACK_BYTES)
        top = (ctypes.addressof(stack) + _STACK_BYTES) & ~15
        before = ctypes.create_string_buffer(_MASK_BYTES)
        # Our handlers must not run in the child, whose memory is ours.
        libc.pthread_sigmask(_SET_MASK, _ALL_SIGNALS, before)
        try:
            pid = int(
                libc.clone(
                    ctypes.c_void_p(_code()),
                    ctypes.c_void_p(top),
                    ctypes.c_int(_CLONE_VM | _CLONE_VFORK | signal.SIGCHLD),
                    ctypes.c_void_p(ctypes.addressof(self._memory)),
                )
            )
            code = ctypes.get_errno()
        finally:
            libc.pthread_sigmask(_SET_MASK, before, None)
        if pid < 0:
            raise OSError(code, os.strerror(code))
        return pid

    def check(self, pid: int, program: str) -> None:
        """Raise the error of the call that failed, if one did."""
        words = len(self._memory) // _WORD - 1
        results = struct.unpack_from(f"={words}q", self._memory)[_ROW - 1 :: _ROW]
        if min(results) >= 0 or min(results) < -_LARGEST_ERROR:
            return
        os.waitpid(pid, 0)
        names = [name for part in self._parts for name in part.names]
        name, result = next((n, r) for n, r in zip(names, results, strict=True) if r < 0)
        raise OSError(-result, os.strerror(-result), program if name == "execve" else name)
