"""What is cut is counted exactly, cut cleanly, and kept on disk in full."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import limpet

MARKER = re.compile(r"^\[… (\d+) lines / (\d+) bytes omitted; full: (.+) …\]$", re.M)


def test_a_million_lines_keep_their_first_and_last_and_an_exact_count(bash: limpet.Bash) -> None:
    result = bash.run_sync("seq 1000000")
    whole = "".join(f"{i}\n" for i in range(1, 1_000_001))
    match = MARKER.search(result.output)
    assert match is not None
    head, tail = result.output[: match.start()], result.output[match.end() + 1 :]
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert head.endswith("\n")
    assert len(head) + len(tail) + result.omitted_bytes == len(whole) == result.total_bytes
    assert head.count("\n") + tail.count("\n") + result.omitted_lines == 1_000_000
    assert match.groups() == (
        str(result.omitted_lines), str(result.omitted_bytes), result.spill_path
    )  # fmt: skip
    assert result.truncated
    assert Path(match.group(3)).read_text() == whole


def test_the_limit_itself_is_not_cut(bash: limpet.Bash) -> None:
    inline = bash.policy.output.head_bytes + bash.policy.output.tail_bytes
    whole = bash.run_sync(f"head -c {inline} /dev/zero | tr '\\0' x")
    assert not whole.truncated
    assert whole.spill_path is None
    assert len(whole.output) == inline
    cut = bash.run_sync(f"head -c {inline + 1} /dev/zero | tr '\\0' x")
    assert cut.truncated
    assert cut.omitted_bytes == 1
    assert cut.omitted_lines == 0


@pytest.mark.parametrize("shift", range(4))
def test_one_endless_line_is_cut_between_characters(bash: limpet.Bash, shift: int) -> None:
    result = bash.run_sync(f"printf {'x' * shift or '%s'}; yes '🐚' | head -n 50000 | tr -d '\\n'")
    assert "\N{REPLACEMENT CHARACTER}" not in result.output
    kept = MARKER.sub("", result.output).replace("\n", "")
    assert len(kept.encode()) + result.omitted_bytes == result.total_bytes


def test_the_exit_code_is_kept_when_output_is_cut(bash: limpet.Bash) -> None:
    assert bash.run_sync("seq 100000; exit 7").exit_code == 7


def test_the_end_of_a_failing_build_is_what_is_kept(bash: limpet.Bash) -> None:
    result = bash.run_sync("seq 100000; echo 'error: it does not compile'; exit 1")
    assert result.output.endswith("100000\nerror: it does not compile\n")


def test_the_file_is_the_raw_stream(bash: limpet.Bash, tmp_path: Path) -> None:
    source = tmp_path / "source"
    command = f"head -c 3M /dev/urandom > {source}; printf '\\033[31m\\r\\n' >> {source}"
    bash.run_sync(command).check()
    result = bash.run_sync(f"cat {source}")
    assert result.spill_path is not None
    assert Path(result.spill_path).read_bytes() == source.read_bytes()


def test_separate_streams_are_cut_each_on_its_own_and_saved_in_order_of_arrival() -> None:
    bash = limpet.Bash(output=limpet.OutputPolicy(streams="separate"))
    result = bash.run_sync("seq 100000; echo fatal >&2; exit 3")
    assert MARKER.search(result.stdout)
    assert result.stderr == "fatal\n"
    assert result.spill_path is not None
    saved = Path(result.spill_path).read_text()
    assert len(saved) == result.total_bytes
    assert saved.replace("fatal\n", "") == "".join(f"{i}\n" for i in range(1, 100_001))
