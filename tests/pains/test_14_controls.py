"""Control sequences reach neither the model nor, but for colour, the terminal."""

from __future__ import annotations

import asyncio

import pytest
from support import python

import limpet
from limpet.events import Output

HOSTILE = {
    "colour": (r"\033[1;31mred\033[0m\n", "red\n"),
    "cursor": (r"a\033[2J\033[Hb\n", "ab\n"),
    "title": (r"\033]0;gotcha\007text\n", "text\n"),
    "clipboard": (r"\033]52;c;aGk=\007text\n", "text\n"),
    "link": (r"\033]8;;http://x\033\\here\033]8;;\033\\\n", "here\n"),
    "device control": (r"\033P1;2|payload\033\\text\n", "text\n"),
    "bell": (r"a\007b\n", "ab\n"),
    "progress": (r"10%%\r50%%\r100%%\ndone\n", "100%\ndone\n"),
    "progress, erased": (r"10%%\r\033[K50%%\r\033[K\ndone\n", "50%\ndone\n"),
    "windows lines": (r"a\r\nb\r\n", "a\nb\n"),
    "overstrike": (r"N\bNA\bAM\bME\bE\n", "NAME\n"),
    "spinner": (r"|\b/\b-\bok\n", "ok\n"),
    "eight-bit": (r"a\xc2\x9b31mb\n", "ab\n"),
}


@pytest.mark.parametrize(("written", "read"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_model_reads_text(bash: limpet.Bash, written: str, read: str) -> None:
    assert bash.run_sync(f"printf '{written}'").output == read


def test_a_sequence_split_between_writes_is_removed_whole_and_colour_is_kept(
    bash: limpet.Bash,
) -> None:
    written = b"\033[31mred\033[0m \033]52;c;aGk=\007safe\033[2J\n"
    code = (
        f"import os, time\nfor byte in {written!r}:\n"
        "    os.write(1, bytes([byte])); time.sleep(0.001)"
    )

    async def main() -> str:
        text = ""
        async for event in bash.stream(python(code)):
            if isinstance(event, Output):
                text += event.text
        return text

    assert asyncio.run(main()) == "\033[31mred\033[0m safe\n"


def test_colour_is_not_asked_for(bash: limpet.Bash, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert bash.run_sync('echo "$TERM ${NO_COLOR}${FORCE_COLOR-}"').output == "dumb 1\n"
