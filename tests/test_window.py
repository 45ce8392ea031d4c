from __future__ import annotations

import random

import pytest

from limpet.output.window import Cut, Window


def feed(window: Window, data: bytes) -> None:
    window.feed(data, data.count(b"\n"))


def cut(data: bytes, head_bytes: int, tail_bytes: int) -> Cut:
    window = Window(head_bytes, tail_bytes)
    feed(window, data)
    return window.cut()


def random_stream(choice: random.Random) -> bytes:
    kinds = [
        lambda: choice.randbytes(choice.randrange(40)),
        lambda: b"\n" * choice.randrange(4),
        lambda: b"a line of text\n" * choice.randrange(6),
        lambda: "é中😀".encode() * choice.randrange(10),
    ]
    return b"".join(choice.choice(kinds)() for _ in range(choice.randrange(40)))


def random_pieces(choice: random.Random, data: bytes) -> list[bytes]:
    pieces = []
    while data:
        size = choice.choice([1, 2, 7, 50, 500])
        pieces.append(data[:size])
        data = data[size:]
    return pieces


@pytest.mark.parametrize("seed", range(4))
def test_head_omitted_and_tail_account_for_every_byte_and_newline(seed: int) -> None:
    choice = random.Random(seed)  # noqa: S311 -- reproducible, not secret
    for _ in range(100):
        data = random_stream(choice)
        head_bytes, tail_bytes = choice.randrange(200), choice.randrange(200)
        window = Window(head_bytes, tail_bytes)
        for piece in random_pieces(choice, data):
            feed(window, piece)
        head, tail, omitted_bytes, omitted_lines = window.cut()
        assert data.startswith(head)
        assert data.endswith(tail)
        omitted = data[len(head) : len(data) - len(tail)]
        assert (omitted_bytes, omitted_lines) == (len(omitted), omitted.count(b"\n"))
        assert (window.total_bytes, window.total_lines) == (len(data), data.count(b"\n"))
        assert (omitted_bytes > 0) == (len(data) > head_bytes + tail_bytes) == window.overflowed
        if omitted:
            assert len(head) <= head_bytes
            assert len(tail) <= tail_bytes


@pytest.mark.parametrize("seed", range(4))
def test_what_is_kept_does_not_depend_on_how_the_stream_is_cut_into_pieces(seed: int) -> None:
    choice = random.Random(seed)  # noqa: S311 -- reproducible, not secret
    for _ in range(100):
        data = random_stream(choice)
        window = Window(60, 90)
        for piece in random_pieces(choice, data):
            feed(window, piece)
        assert window.cut() == cut(data, 60, 90)


@pytest.mark.parametrize(("head_bytes", "tail_bytes"), [(10, 20), (0, 30), (30, 0)])
def test_nothing_is_omitted_up_to_head_and_tail_exactly(head_bytes: int, tail_bytes: int) -> None:
    whole = b"123456789\n" * 3
    assert cut(whole, head_bytes, tail_bytes) == Cut(whole, b"", 0, 0)
    assert cut(whole + b"x", head_bytes, tail_bytes).omitted_bytes > 0


def test_a_window_of_nothing_omits_everything() -> None:
    assert cut(b"a\nb\n", 0, 0) == Cut(b"", b"", 4, 2)


def test_an_empty_stream_is_whole() -> None:
    assert Window(10, 20).cut() == Cut(b"", b"", 0, 0)


def test_cuts_fall_between_lines() -> None:
    lines = [b"line %04d\n" % number for number in range(100)]
    for extra in range(12):
        head, tail, *_ = cut(b"".join(lines), 100 + extra, 200 + extra)
        assert head == b"".join(lines[: len(head) // 10])
        assert tail == b"".join(lines[100 - len(tail) // 10 :])
        assert len(head) > 100 - 10
        assert len(tail) >= 200 - 10


@pytest.mark.parametrize("char", ["x", "é", "中", "😀"])
def test_one_endless_line_is_cut_between_characters(char: str) -> None:
    for extra in range(5):
        head, tail, *_ = cut(char.encode() * 1000, 100 + extra, 200 + extra)
        assert set(head.decode()) == set(tail.decode()) == {char}
        assert len(head) > 100 + extra - 4
        assert len(tail) > 200 + extra - 4


def test_most_of_the_window_is_not_given_up_for_a_line_border() -> None:
    data = b"short\n" + b"x" * 1000 + b"\nshort"
    head, tail, *_ = cut(data, 100, 100)
    assert head == b"short\n" + b"x" * 94
    assert tail == b"x" * 94 + b"\nshort"


def test_bytes_that_are_no_characters_are_kept_as_they_are() -> None:
    assert cut(b"\x80" * 100, 10, 20) == Cut(b"\x80" * 10, b"\x80" * 20, 70, 0)


@pytest.mark.parametrize("piece_bytes", [1, 99, 100, 101, 200, 5000])
def test_memory_is_bounded_however_long_the_stream_is(piece_bytes: int) -> None:
    window = Window(50, 100)
    piece = b"x" * piece_bytes
    for _ in range(max(1000, 20_000 // piece_bytes)):
        feed(window, piece)
        held = len(window._head) + len(window._tail or b"")
        assert held <= 50 + 2 * 100 + piece_bytes
    assert window.overflowed
    assert len(window._head) + len(window._tail or b"") <= 50 + 2 * 100


def test_a_stream_is_whole_until_it_overflows() -> None:
    window = Window(2, 3)
    for byte in b"abcde":
        feed(window, bytes([byte]))
    assert window.whole() == b"abcde"
    assert not window.overflowed
    feed(window, b"f")
    assert window.overflowed


def test_a_buffer_that_the_reader_uses_again_is_copied() -> None:
    window = Window(4, 4)
    buffer = bytearray(b"abc\n")
    for text in (b"abc\n", b"def\n", b"ghi\n", b"jkl\n"):
        buffer[:] = text
        window.feed(memoryview(buffer), 1)
    buffer[:] = b"????"
    head, tail, *_ = window.cut()
    assert head == b"abc\n"
    assert tail == b"jkl\n"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", b""),
        (b"\n\n", b""),
        (b"one\ntwo", b"two"),
        (b"one\ntwo\n", b"two"),
        (b"one\ntwo\n\n  \n", b"two"),
        (b"one\n" * 1000 + b"last\n", b"last"),
        (b"x" * 5000 + b"end", b"x" * 509 + b"end"),
    ],
)
@pytest.mark.parametrize(("head_bytes", "tail_bytes"), [(10, 2000), (10_000, 20_000)])
def test_the_last_line_that_is_not_blank_is_known_at_any_time(
    data: bytes, expected: bytes, head_bytes: int, tail_bytes: int
) -> None:
    window = Window(head_bytes, tail_bytes)
    feed(window, data)
    assert window.last_line() == expected
