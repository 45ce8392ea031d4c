"""Whatever bytes a command writes, the call returns text, and the file has the bytes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support import python

import limpet
from limpet.events import Output

STREAMS = {
    "latin-1": (rb"caf\xe9", "caf\N{REPLACEMENT CHARACTER}"),
    "cp936": (rb"\xc4\xe3\xba\xc3", None),
    "a lone surrogate": (rb"a\xed\xa0\x80b", None),
    "an overlong form": (rb"a\xc0\xafb", None),
    "a split character": (rb"abc\xf0\x9f\x90", "abc\N{REPLACEMENT CHARACTER}"),
    "a NUL among text": (rb"one\0two", "one␀two"),
    "a byte order mark": (rb"\xef\xbb\xbfhi", "\ufeffhi"),
}


@pytest.mark.parametrize(("data", "text"), STREAMS.values(), ids=STREAMS.keys())
def test_odd_bytes_become_text(bash: limpet.Bash, data: bytes, text: str | None) -> None:
    result = bash.run_sync(f"printf '{data.decode()}'")
    assert result.ok
    assert text is None or result.output == text
    result.output.encode()  # no surrogates are left in it


def test_random_bytes_are_named_as_binary_and_kept(bash: limpet.Bash) -> None:
    small = bash.run_sync("head -c 20000 /dev/urandom")
    assert small.output == "[binary output: 20000 bytes]\n"
    large = bash.run_sync("head -c 200000 /dev/urandom")
    assert large.output == f"[binary output: 200000 bytes; full: {large.spill_path}]\n"
    assert large.spill_path is not None
    assert Path(large.spill_path).stat().st_size == 200_000


def test_text_before_and_after_binary_output_is_kept(bash: limpet.Bash) -> None:
    result = bash.run_sync("seq 5000; head -c 200000 /dev/urandom; seq 5000")
    assert result.output.startswith("1\n2\n3\n")
    assert result.output.endswith("4999\n5000\n")


def test_a_character_split_between_two_writes_arrives_whole(bash: limpet.Bash) -> None:
    snail = "🐚".encode()
    pieces = "; ".join(
        f"os.write(1, {snail[i : i + 1]!r}); time.sleep(0.02)" for i in range(len(snail))
    )

    async def main() -> tuple[str, str]:
        text = ""
        async for event in bash.stream(python(f"import os, time; {pieces}")):
            if isinstance(event, Output):
                text += event.text
        return text, (await bash.run(python(f"import os, time; {pieces}"))).output

    assert asyncio.run(main()) == ("🐚", "🐚")
