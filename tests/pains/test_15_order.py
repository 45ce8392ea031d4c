"""Output comes back in the order in which it was written, or apart on request."""

from __future__ import annotations

import pytest
from support import python

import limpet

INTERLEAVED = python(
    "import os\nfor i in range(200): os.write(1, b'o%d\\n' % i); os.write(2, b'e%d\\n' % i)"
)


def test_merged_output_is_in_exact_order(bash: limpet.Bash) -> None:
    result = bash.run_sync(INTERLEAVED)
    assert result.output == "".join(f"o{i}\ne{i}\n" for i in range(200))
    assert result.stdout == result.output
    assert result.stderr == ""


def test_separate_streams_are_separate_and_complete() -> None:
    result = limpet.Bash(output=limpet.OutputPolicy(streams="separate")).run_sync(INTERLEAVED)
    assert result.stdout == "".join(f"o{i}\n" for i in range(200))
    assert result.stderr == "".join(f"e{i}\n" for i in range(200))
    assert sorted(result.output.split()) == sorted((result.stdout + result.stderr).split())


@pytest.mark.parametrize("streams", ["merged", "separate"])
def test_reopening_a_standard_stream_truncates_nothing(streams: str) -> None:
    bash = limpet.Bash(output=limpet.OutputPolicy(streams=streams))  # type: ignore[arg-type]
    result = bash.run_sync("echo a; echo b > /dev/stderr; echo c > /dev/stdout")
    assert sorted(result.output) == sorted("a\nb\nc\n")
