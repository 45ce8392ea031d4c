from __future__ import annotations

import random

import pytest

from limpet.output.mask import MASK, Mask

TOKEN = b"tok-12345678"
PASSWORD = b"correct horse battery"


def masked(secrets: tuple[bytes, ...], pieces: list[bytes]) -> bytes:
    mask = Mask(secrets)
    return b"".join(mask.feed(piece) for piece in pieces) + mask.feed(b"", final=True)


def splits(data: bytes) -> list[list[bytes]]:
    """Return the data whole, in two pieces at every position, and byte by byte."""
    halves = [[data[:at], data[at:]] for at in range(1, len(data))]
    return [[data], *halves, [bytes([byte]) for byte in data]]


@pytest.mark.parametrize(
    ("secrets", "data", "expected"),
    [
        ((TOKEN,), b"nothing to hide\n", b"nothing to hide\n"),
        ((TOKEN,), TOKEN, MASK),
        ((TOKEN,), b"at the end: " + TOKEN, b"at the end: " + MASK),
        ((TOKEN,), TOKEN + b" at the start", MASK + b" at the start"),
        ((TOKEN,), b"a " + TOKEN + TOKEN + b" b", b"a " + MASK + MASK + b" b"),
        ((TOKEN,), b"begins only: " + TOKEN[:-1], b"begins only: " + TOKEN[:-1]),
        ((TOKEN,), TOKEN[:5] + TOKEN, TOKEN[:5] + MASK),
        ((PASSWORD, TOKEN), TOKEN + PASSWORD + b"\n", MASK + MASK + b"\n"),
        ((b"abababab",), b"abababababx", MASK + b"abx"),
        ((b"line one\nline two",), b"> line one\nline two\n", b"> " + MASK + b"\n"),
        (
            (b"\xff\x00\xfe\x00\xfd\x00\xfc\x00",),
            b"\xff\x00\xfe\x00\xfd\x00\xfc\x00\xfb",
            b"%b\xfb" % MASK,
        ),
    ],
)
def test_a_secret_is_masked_wherever_the_stream_is_split(
    secrets: tuple[bytes, ...], data: bytes, expected: bytes
) -> None:
    for pieces in splits(data):
        assert masked(secrets, pieces) == expected, pieces


@pytest.mark.parametrize(
    ("longer", "shorter"),
    [
        (b"password1-and-more", b"password1"),
        (b"user:password1", b"password1"),
        (b"user:password1@host", b"password1"),
    ],
)
def test_a_secret_that_holds_another_is_masked_whole_wherever_the_stream_is_split(
    longer: bytes, shorter: bytes
) -> None:
    for pieces in splits(b"> " + longer + b" <"):
        assert masked((longer, shorter), pieces) == b"> " + MASK + b" <", pieces


@pytest.mark.parametrize(
    "secrets", [(b"def123456789", b"abcdef123456"), (b"abcdef123456789", b"789abcdef123")]
)
def test_secrets_that_overlap_are_masked_the_same_wherever_the_stream_is_split(
    secrets: tuple[bytes, ...],
) -> None:
    data = b"> abcdef123456789abcdef123 <"
    whole = masked(secrets, [data])
    assert not any(secret in whole for secret in secrets)
    for pieces in splits(data):
        assert masked(secrets, pieces) == whole, pieces


@pytest.mark.parametrize(
    ("piece", "held"),
    [
        (b"ordinary words", 0),
        (b"text that ends in t", 1),
        (b"text that ends in tok-", 4),
        (b"tok-1234567", 11),
        (b"tok-12345678", 0),
        (b"tok-9", 0),
    ],
)
def test_only_what_may_begin_a_secret_is_held_back(piece: bytes, held: int) -> None:
    whole = Mask((TOKEN,)).feed(piece, final=True)
    assert Mask((TOKEN,)).feed(piece) == whole[: len(whole) - held]


def test_the_last_piece_lets_go_of_what_was_held_back() -> None:
    mask = Mask((TOKEN,))
    assert mask.feed(b"tok-") == b""
    assert mask.feed(b"", final=True) == b"tok-"
    assert mask.feed(b"", final=True) == b""


@pytest.mark.parametrize("seed", range(4))
def test_random_pieces_give_what_one_replacement_of_the_whole_gives(seed: int) -> None:
    choice = random.Random(seed)  # noqa: S311 -- reproducible, not secret
    words = [TOKEN, PASSWORD, TOKEN[:7], PASSWORD[:9], b"t", b"c", b" ", b"\n", b"text"]
    for _ in range(100):
        data = b"".join(choice.choices(words, k=30))
        cuts = sorted(choice.sample(range(len(data) + 1), k=10))
        pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        expected = data.replace(PASSWORD, MASK).replace(TOKEN, MASK)
        assert masked((PASSWORD, TOKEN), pieces) == expected
