"""A small assembler for the programs by which the kernel decides on system calls.

A program is read from top to bottom and ends at the first answer. It holds the number of the call
until a rule looks at an argument; a rule that has looked at one always answers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

ALLOW = 0x7FFF0000
ASK = 0x7FC00000
"""Have whoever listens decide."""
_ERRNO = 0x00050000

_LOAD, _AND, _JUMP, _RETURN = 0x20, 0x54, 0x05, 0x06
_IF_EQUAL, _IF_GREATER, _IF_ANY_BIT = 0x15, 0x25, 0x45
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_FARTHEST = 255
"""A conditional jump has eight bits."""
_X32 = 0x4000_0000


class Op(NamedTuple):
    """One instruction: what to do, how far to jump if so and if not, and its operand."""

    code: int
    if_so: int
    if_not: int
    operand: int


def fail(code: int) -> int:
    """Return the answer that makes a call fail with an error of its own."""
    return _ERRNO | code


def answer(value: int) -> Op:
    """End with an answer."""
    return Op(_RETURN, 0, 0, value)


def argument(index: int, *, high: bool = False) -> Op:
    """Look at the lower or the upper half of an argument."""
    return Op(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * index + (4 if high else 0))


def keep_bits(mask: int) -> Op:
    """Look at some of the bits only."""
    return Op(_AND, 0, 0, mask)


def answer_if(values: Iterable[int], value: int) -> list[Op]:
    """Answer if what is looked at is one of these."""
    values = list(values)
    return [
        *(Op(_IF_EQUAL, len(values) - place, 0, one) for place, one in enumerate(values)),
        Op(_JUMP, 0, 0, 1),
        answer(value),
    ]


def answer_unless(values: Iterable[int], value: int) -> list[Op]:
    """Answer if what is looked at is none of these."""
    values = list(values)
    tests = [Op(_IF_EQUAL, len(values) - place, 0, one) for place, one in enumerate(values)]
    return [*tests, answer(value)]


def answer_if_any_bit(mask: int, value: int) -> list[Op]:
    """Answer if any of these bits is set."""
    return [Op(_IF_ANY_BIT, 0, 1, mask), answer(value)]


def on_call(numbers: list[int], block: list[Op]) -> list[Op]:
    """Go through a block, which must end with an answer, if the call is one of these."""
    if not numbers:
        return []
    assert block[-1].code == _RETURN  # noqa: S101 -- else the next rule would misread an argument
    assert max(len(block), len(numbers)) <= _FARTHEST  # noqa: S101
    tests = [Op(_IF_EQUAL, len(numbers) - place, 0, one) for place, one in enumerate(numbers)]
    return [*tests, Op(_JUMP, 0, 0, len(block)), *block]


def program(arch: int, newest: int, unknown: int, blocks: Iterable[list[Op]]) -> bytes:
    """Return a whole program: what the blocks leave unanswered is allowed.

    Args:
        arch: The kind of machine that the numbers are of. Calls in another's form (32 bit, x32)
            are answered with `unknown`, for they would pass by every rule.
        newest: The highest number known; a higher one is answered with `unknown` too.
        unknown: An answer.
        blocks: The rules.
    """
    ops = [
        Op(_LOAD, 0, 0, _ARCH_AT),
        Op(_IF_EQUAL, 1, 0, arch),
        answer(unknown),
        Op(_LOAD, 0, 0, _NUMBER_AT),
        *answer_if_any_bit(_X32, unknown),
        Op(_IF_GREATER, 0, 1, newest),
        answer(unknown),
        *(op for block in blocks for op in block),
        answer(ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *op) for op in ops)
