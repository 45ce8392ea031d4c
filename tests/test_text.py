from __future__ import annotations

import random
import re
import sys
from pathlib import Path

import pytest

from limpet.output.text import TerminalText, clean, is_binary

SGR = re.compile(r"\x1b\[[0-9;:]*m")
FUZZ_ALPHABET = [
    *(bytes([byte]) for byte in range(256)),
    *[b"\x1b", b"\x1b[", b"\x1b]", b"\x1bP", b"\x1b\\", b"\x07", b"\0", b"\r", b"\n", b"\b"] * 8,
    *["\x9b".encode(), "\x9d".encode(), "\x9c".encode(), "é中😀".encode(), b"m", b"31", b";"] * 8,
]


def fuzz(seed: int) -> bytes:
    choice = random.Random(seed)  # noqa: S311 -- reproducible, not secret
    return b"".join(choice.choices(FUZZ_ALPHABET, k=choice.randrange(60)))


def terminal_text(data: bytes, *, piece: int) -> str:
    text = TerminalText()
    parts = [text.feed(data[at : at + piece]) for at in range(0, len(data), piece)]
    return "".join(parts) + text.feed(b"", final=True)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", ""),
        (b"plain\ttext\n", "plain\ttext\n"),
        ("é中😀\n".encode(), "é中😀\n"),
        (b"\x1b[1;31mred\x1b[0m\n", "red\n"),
        (b"\x1b[38:2::1:2:3mred\x1b[m\n", "red\n"),
        (b"a\x1b[2J\x1b[10;20Hb\x1b[?25l\n", "ab\n"),
        (b"\x1b]0;title\x07a\x1b]2;title\x1b\\b\n", "ab\n"),
        (b"\x1b]52;c;ZXZpbA==\x07after\n", "after\n"),
        (b"\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\\n", "link\n"),
        (b"a\x1bPq#0;2;0;0;0#0~~\x1b\\b\n", "ab\n"),
        (b"a\x1b_apc\x1b\\b\x1b^pm\x1b\\c\x1bXsos\x1b\\d\n", "abcd\n"),
        (b"\x1b(Ba\x1b7b\x1b=c\x1bMd\n", "abcd\n"),
        (b"\x1b]0;never ended\nnext line\n", "\nnext line\n"),
        (b"a\x1b", "a"),
        (b"bell\x07 and \x0e\x0f shifts\x7f\n", "bell and  shifts\n"),
    ],
)
def test_clean_text_keeps_the_words_and_drops_the_control_sequences(
    data: bytes, expected: str
) -> None:
    assert clean(data) == expected


@pytest.mark.parametrize(
    "sequence",
    [
        "\x9b31m",
        "\x9d0;title\x9c",
        "\x9d0;title\x07",
        "\x90q;payload\x9c",
        "\x98payload\x9c",
        "\x9epayload\x9c",
        "\x9fpayload\x9c",
    ],
)
def test_one_character_introducers_of_sequences_are_known_too(sequence: str) -> None:
    assert clean(f"a{sequence}b".encode()) == "ab"
    assert terminal_text(f"a{sequence}b".encode(), piece=100) == "ab"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"one\r\ntwo\r\n", "one\ntwo\n"),
        (b" 10%\r 50%\r100%\ndone\n", "100%\ndone\n"),
        (b"50%\r\x1b[K100%\r\n", "100%\n"),
        (b"100%\r", "100%"),
        (b"\r\r\n", "\n"),
    ],
)
def test_of_a_line_redrawn_with_carriage_returns_the_last_frame_is_kept(
    data: bytes, expected: str
) -> None:
    assert clean(data) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"N\bNA\bAM\bME\bE\n", "NAME\n"),
        (b"_\bf_\bi_\bl_\be\n", "file\n"),
        (b"+\bo item\n", "o item\n"),
        (b"wait |\b/\b-\bdone\n", "wait done\n"),
        (b"a\n\b\bb", "a\nb"),
        (b"\b\bstart", "start"),
    ],
)
def test_what_was_struck_over_is_gone(data: bytes, expected: str) -> None:
    assert clean(data) == expected


def test_backspaces_that_nothing_is_written_over_erase_nothing() -> None:
    """A counter moves the cursor back after each number; the last one stays on the screen."""
    assert clean(b"50%\b\b\b75%\b\b\b100%\b\b\b\b\n") == "100%\n"


def test_a_nul_in_text_is_shown() -> None:
    data = b"HOME=/home/someone\0PATH=/usr/bin:/bin\0"
    assert clean(data) == "HOME=/home/someone␀PATH=/usr/bin:/bin␀"
    assert not is_binary(data)


def test_bytes_that_are_not_utf8_become_replacement_characters() -> None:
    assert clean(b"caf\xe9\n") == "caf\N{REPLACEMENT CHARACTER}\n"


@pytest.mark.parametrize("seed", range(4))
def test_clean_takes_any_bytes_and_leaves_no_control_but_newline_and_tab(seed: int) -> None:
    for number in range(250):
        text = clean(fuzz(seed * 250 + number))
        left = {char for char in text if ord(char) < 32 or 127 <= ord(char) < 160}
        assert left <= {"\n", "\t"}, (seed * 250 + number, text)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"plain text\n",
        "tschüß, 你好, 😀\n".encode(),
        "你好，世界\n".encode("cp936") * 20,
        "tschüß\n".encode("latin-1"),
        b"\x1b[31mred\x1b[0m\r\nbell\x07\b\f\v\n",
        b"first line of a file\0second\n" * 10,
        b"./a\0./b\0./c\0",
    ],
)
def test_text_in_any_common_encoding_is_not_binary(data: bytes) -> None:
    assert not is_binary(data)


@pytest.mark.parametrize(
    "data",
    [
        b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\0\x3e\0\x01\0\0\0" + bytes(40),
        random.Random(1).randbytes(10_000),  # noqa: S311 -- reproducible, not secret
        bytes(range(256)) * 4,
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\x08\x06\0\0\0",
    ],
)
def test_data_is_binary(data: bytes) -> None:
    assert is_binary(data)


def test_a_program_is_binary() -> None:
    assert is_binary(Path(sys.executable).resolve().read_bytes()[:10_000])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"plain\ttext\r\n", "plain\ttext\r\n"),
        (b" 10%\r 50%\r", " 10%\r 50%\r"),
        ("é中😀\n".encode(), "é中😀\n"),
        ("é中".encode()[:-1], "é\N{REPLACEMENT CHARACTER}"),
        (b"\x1b[1;31mred\x1b[0m\n", "\x1b[1;31mred\x1b[0m\n"),
        (b"\x1b[38:2::1:2:3mred\x1b[m", "\x1b[38:2::1:2:3mred\x1b[m"),
        (b"\x1b[>4;2ma\x1b[?1mb", "ab"),
        (b"a\x1b[2J\x1b[10;20H\x1b[Ab\x1b[?1049h", "ab"),
        (b"\x1b]52;c;ZXZpbA==\x07after", "after"),
        (b"\x1b]0;title\x1b\\after", "after"),
        (b"\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x07", "link"),
        (b"a\x1bPq#0;2;0;0;0\x1b\\b", "ab"),
        (b"a\x1bPbell \x07 inside\x1b\\b", "ab"),
        (b"a\x1b_apc\x1b\\b\x1b^pm\x1b\\c\x1bXsos\x1b\\d", "abcd"),
        ("a\x9b2Jb\x9d0;title\x9cc\x90q\x9cd".encode(), "abcd"),
        (b"\x1b(Ba\x1b7b\x1bcc", "abc"),
        (b"\x1b]0;never ended\nnext", "\nnext"),
        (b"\x1b]0;cut short\x1b[31mred", "\x1b[31mred"),
        (b"bell\x07, \x0e, \x7f, \b and \0", "bell, , ,  and "),
        ("\x85\x8d\n".encode(), "\n"),
        ("你好".encode("cp936"), "你好".encode("cp936").decode(errors="replace")),
    ],
)
def test_terminal_text_keeps_colour_only_however_it_is_cut_into_pieces(
    data: bytes, expected: str
) -> None:
    for piece in (1000, 3, 2, 1):
        assert terminal_text(data, piece=piece) == expected, piece


@pytest.mark.parametrize(
    "data",
    [
        b"\x1b\x00c",
        b"\x1b[\x002J",
        b"\x1b\nc",
        b"\x1b\x1b[2Jc",
        b"\x1bPtmux;\x1b\x1b]52;c;ZXZpbA==\x07\x1b\\c",
        "\x1b\x85]52;c;ZXZpbA==\x07".encode(),
        b"\x1b[12",
        b"\x1b",
    ],
)
def test_no_escape_is_left_that_could_begin_a_sequence_with_what_follows(data: bytes) -> None:
    """To remove what lies between an ESC and other text must not join them into a new sequence."""
    for piece in (1000, 1):
        assert "\x1b" not in SGR.sub("", terminal_text(data, piece=piece)), piece


@pytest.mark.parametrize("seed", range(4))
def test_terminal_text_of_any_bytes_has_no_control_but_colour_and_layout(seed: int) -> None:
    for number in range(250):
        data = fuzz(seed * 250 + number)
        for piece in (1, 7, 1000):
            text = SGR.sub("", terminal_text(data, piece=piece))
            left = {char for char in text if ord(char) < 32 or 127 <= ord(char) < 160}
            assert left <= {"\n", "\t", "\r"}, (data, text)


@pytest.mark.parametrize("seed", range(4))
def test_any_bytes_give_the_same_terminal_text_however_they_are_cut_into_pieces(seed: int) -> None:
    for number in range(250):
        data = fuzz(seed * 250 + number)
        whole = terminal_text(data, piece=1000)
        assert terminal_text(data, piece=1) == terminal_text(data, piece=7) == whole, data


def test_nothing_is_held_back_of_ordinary_text() -> None:
    text = TerminalText()
    assert [text.feed(bytes([byte])) for byte in b"abc\n"] == ["a", "b", "c", "\n"]


def test_a_sequence_without_an_end_does_not_hold_back_the_output_forever() -> None:
    text = TerminalText()
    shown = text.feed(b"\x1b]0;") + "".join(text.feed(b"x" * 100) for _ in range(100))
    assert shown != ""
