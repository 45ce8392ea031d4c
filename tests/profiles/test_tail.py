from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest
from support import python, wait_until

import limpet
from limpet.profiles import Toolbox, profile
from limpet.profiles.tail import seconds


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Return where long outputs are saved: it does not exist yet."""
    return tmp_path / "out" / "puts"


@pytest.fixture
def box(saved: Path) -> Toolbox:
    return profile("tail", output_dir=str(saved))


def the_file(saved: Path) -> Path:
    (path,) = saved.iterdir()
    assert path.name.startswith("bash-")
    assert path.suffix == ".log"
    return path


def test_short_output_comes_inline_and_leaves_no_file(box: Toolbox, saved: Path) -> None:
    answer = box.call_sync({"command": "echo hello; echo err >&2"})
    assert answer.data == {
        "summary": "$ echo hello; echo err >&2",
        "content": "hello\nerr\n",
    }
    assert answer.text == "$ echo hello; echo err >&2\nhello\nerr\n"
    assert not answer.is_error
    assert not saved.exists() or not list(saved.iterdir())


def test_no_output_is_no_content(box: Toolbox) -> None:
    answer = box.call_sync({"command": "true"})
    assert answer.data == {"summary": "$ true", "content": None}
    assert answer.text == "$ true"


def test_the_summary_says_how_it_ended(box: Toolbox) -> None:
    cases: list[tuple[str, str]] = [
        ("exit 7", "$ exit 7 (exit 7)"),
        ("kill -9 $$", "$ kill -9 $$ (terminated by signal)"),
        ("kill -TERM $$", "$ kill -TERM $$ (terminated by signal)"),
        ("(exit 130)", "$ (exit 130) (exit 130)"),
    ]
    for command, summary in cases:
        answer = box.call_sync({"command": command})
        assert answer.data == {"summary": summary, "content": None}
        assert not answer.is_error


def test_a_long_command_is_shortened_in_the_summary(box: Toolbox) -> None:
    cases: list[int] = [79, 80, 81, 200]
    for length in cases:
        command = ": ".ljust(length, "é")
        shown = command if length <= 80 else f"{command[:77]}..."
        assert box.call_sync({"command": command}).data["summary"] == f"$ {shown}"


def test_the_summary_is_the_first_line_by_newlines_only(box: Toolbox) -> None:
    for char in "\x0b\x0c\x1c\x85\u2028":
        command = f": a{char}b"
        assert box.call_sync({"command": f"{command}\n: c"}).data["summary"] == f"$ {command}"
    assert box.call_sync({"command": "\n: c"}).data["summary"] == "$ "


def test_eighty_lines_come_inline(box: Toolbox, saved: Path) -> None:
    expected = "".join(f"{number}\n" for number in range(1, 81))
    assert box.call_sync({"command": "seq 1 80"}).data["content"] == expected
    assert not list(saved.iterdir())


def test_more_lines_are_saved_and_the_last_eighty_shown(box: Toolbox, saved: Path) -> None:
    content = box.call_sync({"command": "for i in $(seq 200); do echo line $i; done"}).data[
        "content"
    ]
    path = the_file(saved)
    header, _, rest = content.partition("\n")
    size = path.stat().st_size
    assert header == f"[showing last 80 of 200 lines — full output ({size} bytes) at {path}]"
    assert rest == "".join(f"line {number}\n" for number in range(121, 201))
    assert path.read_text() == "".join(f"line {number}\n" for number in range(1, 201))


def test_eighty_one_lines_are_too_many(box: Toolbox, saved: Path) -> None:
    content = box.call_sync({"command": "seq 1 81"}).data["content"]
    assert content.startswith("[showing last 80 of 81 lines — full output (234 bytes) at ")
    assert content.endswith(f"{the_file(saved)}]\n" + "".join(f"{n}\n" for n in range(2, 82)))


def test_a_last_line_without_its_end_counts(box: Toolbox) -> None:
    content = box.call_sync({"command": "seq 1 80; printf last"}).data["content"]
    assert content.startswith("[showing last 80 of 81 lines — ")
    assert content.endswith("]\n" + "".join(f"{n}\n" for n in range(2, 81)) + "last")


def test_twelve_kib_come_inline(box: Toolbox, saved: Path) -> None:
    exact = box.call_sync({"command": python("print('x' * 12288, end='')")})
    assert exact.data["content"] == "x" * 12_288
    assert not list(saved.iterdir())
    more = box.call_sync({"command": python("print('x' * 12289, end='')")}).data["content"]
    path = the_file(saved)
    header = f"[showing last 80 of 1 lines — full output (12289 bytes) at {path}]"
    assert more == f"{header}\n{'x' * 12_289}"


def test_bytes_are_counted_not_characters(box: Toolbox) -> None:
    content = box.call_sync({"command": python("print('é' * 6145, end='')")}).data["content"]
    assert "full output (12290 bytes)" in content


@pytest.mark.parametrize("size", [262_144, 262_145])
def test_of_very_long_output_only_the_end_is_looked_at(
    box: Toolbox, saved: Path, size: int
) -> None:
    lines = f"print('\\n'.join(f'{{i:09}}' for i in range({size} // 10)), end='\\n')"
    command = python(f"{lines}; print('x' * ({size} % 10), end='')")
    content = box.call_sync({"command": command}).data["content"]
    path = the_file(saved)
    assert path.stat().st_size == size
    header, _, rest = content.partition("\n")
    if size <= 262_144:
        counts = f"80 of {size // 10 + 1} lines — full output ({size} bytes) at {path}"
        assert header == f"[showing last {counts}]"
    else:
        assert header == (f"[showing last 80 lines (tail of {size}-byte output) — full at {path}]")
    assert len(rest.splitlines()) == 80
    assert rest.endswith("x" * (size % 10))


def test_a_very_long_line_shows_its_end(box: Toolbox, saved: Path) -> None:
    content = box.call_sync({"command": python("print('a' + 'x' * 300000 + 'z')")}).data["content"]
    header, _, rest = content.partition("\n")
    assert header.startswith("[showing last 80 lines (tail of 300003-byte output) — full at ")
    assert rest.endswith("xz\n")
    assert "a" not in rest
    assert len(rest) == 256 * 1024


def test_lines_that_end_with_carriage_returns_count_once(box: Toolbox) -> None:
    content = box.call_sync({"command": r"for i in $(seq 200); do printf 'a\u2028%s\r\n' $i; done"})
    header, _, rest = content.data["content"].partition("\n")
    assert header.startswith("[showing last 80 of 200 lines")
    assert rest.count("\n") == 80
    assert rest.startswith("a\u2028121\n")


# The time limit


def test_the_time_limit_is_clamped() -> None:
    cases: list[tuple[int | None, int]] = [
        (None, 120),
        (0, 1),
        (-5, 1),
        (1, 1),
        (600, 600),
        (601, 600),
        (10**30, 600),
    ]
    for given, holds in cases:
        assert seconds(given) == holds


def test_a_time_out_keeps_what_was_printed(box: Toolbox, saved: Path) -> None:
    """A job that does not end is waited for until then."""
    answer = box.call_sync({"command": "echo before; sleep 60 &", "timeout": 0})
    path = the_file(saved)
    assert answer.data == {
        "summary": "$ echo before; sleep 60 & (timed out after 1s)",
        "content": f"[partial output before timeout — full at {path}]\nbefore\n",
    }
    assert path.read_text() == "before\n"
    assert not answer.is_error


def test_a_time_out_before_any_output_has_no_content(box: Toolbox) -> None:
    (tool,) = box.profile.tools
    given = tool.input(command="sleep 60", timeout=5)
    result = limpet.Result(command="sleep 60", outcome=limpet.Outcome.TIMED_OUT)
    answer = tool.tell(given, result)
    assert answer.data == {"summary": "$ sleep 60 (timed out after 5s)", "content": None}


# Jobs, directories, rules


def test_background_jobs_of_the_command_are_waited_for(box: Toolbox) -> None:
    answer = box.call_sync({"command": "(sleep 0.05; echo bg) & echo fg", "timeout": 5})
    assert answer.data["content"] == "fg\nbg\n"
    assert "timed out" not in answer.data["summary"]


def test_the_exit_code_is_the_commands_not_the_jobs(box: Toolbox) -> None:
    answer = box.call_sync({"command": "(sleep 0.05; exit 9) & (exit 4)"})
    assert answer.data["summary"].endswith(" (exit 4)")


def test_each_call_starts_in_the_workspace(box: Toolbox, work: Path) -> None:
    (work / "nested").mkdir()
    box.call_sync({"command": "cd nested"})
    assert box.call_sync({"command": "pwd"}).data["content"] == f"{work}\n"


def test_git_is_left_to_the_host_but_not_what_destroys(box: Toolbox) -> None:
    assert not box.call_sync({"command": "git add -A"}).is_error
    ctx = limpet.ToolContext(restricted=True)  # where it could do no harm
    answer = box.call_sync({"command": "rm -rf /"}, ctx)
    assert (answer.is_error, answer.can_retry) == (True, True)


def test_invalid_input_is_an_error(box: Toolbox) -> None:
    cases: list[str] = ["not json", "[]", "{}", '{"command": 5}', '{"command": "x"']
    for given in cases:
        answer = box.call_sync(given)
        assert answer.is_error
        assert answer.data["error"] == "invalid_input"


# Saved files


def test_saved_files_live_until_the_tool_is_closed(box: Toolbox, saved: Path) -> None:
    box.call_sync({"command": "seq 1 200"})
    box.call_sync({"command": "seq 1 300"})
    assert len(list(saved.iterdir())) == 2
    box.close()
    assert not list(saved.iterdir())
    box.close()


def test_a_closed_tool_can_go_on_and_be_closed_again(box: Toolbox, saved: Path) -> None:
    box.close()
    box.call_sync({"command": "seq 1 200"})
    assert the_file(saved).exists()
    box.close()
    assert not list(saved.iterdir())


def test_saved_files_go_with_the_tool(saved: Path) -> None:
    with profile("tail", output_dir=str(saved)) as box:
        box.call_sync({"command": "seq 1 200"})
        assert the_file(saved).exists()
    assert not list(saved.iterdir())
    box.call_sync({"command": "seq 1 200"})
    assert the_file(saved).exists()
    del box
    gc.collect()
    assert not list(saved.iterdir())


def test_what_was_kept_is_not_removed(box: Toolbox, saved: Path) -> None:
    box.call_sync({"command": "seq 1 200"})
    box.keep()
    box.close()
    assert the_file(saved).exists()


def test_a_cancelled_call_leaves_no_file_behind(box: Toolbox, saved: Path, work: Path) -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(box.call({"command": "echo hi; touch begun; sleep 60"}))
        await asyncio.to_thread(wait_until, (work / "begun").exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    box.close()
    assert not saved.exists() or not list(saved.iterdir())


def test_a_stream_that_is_left_leaves_no_file_behind(box: Toolbox, saved: Path) -> None:
    async def left() -> None:
        events = box.stream({"command": "echo hi; sleep 60"})
        async for event in events:
            if getattr(event, "text", "") == "hi\n":
                break
        await events.aclose()

    asyncio.run(left())
    box.close()
    assert not saved.exists() or not list(saved.iterdir())


def test_a_saved_file_can_be_searched_by_a_later_command(box: Toolbox, saved: Path) -> None:
    box.call_sync({"command": "seq 1 200"})
    answer = box.call_sync({"command": f"grep -c 1 {the_file(saved)}"})
    assert answer.data["content"] == "119\n"


def test_without_a_directory_limpets_own_is_used(state_dir: Path) -> None:
    with profile("tail") as box:
        content = box.call_sync({"command": "seq 1 200"}).data["content"]
        assert f" at {state_dir}/" in content


def test_an_output_directory_that_cannot_be_made_is_told(work: Path) -> None:
    (work / "file").touch()
    box = profile("tail", output_dir=str(work / "file"))
    answer = box.call_sync({"command": "seq 1 200"})
    assert "None" not in answer.text
    assert str(work / "file") in answer.text or answer.is_error


def test_output_that_is_capped_says_so(saved: Path) -> None:
    policy = limpet.Policy(output=limpet.OutputPolicy(spill_bytes=100_000))
    with profile("tail", policy, output_dir=str(saved)) as box:
        answer = box.call_sync({"command": "yes"})
    assert answer.is_error
    assert answer.data["summary"] == "$ yes (output capped)"
    assert answer.data["content"].startswith("[partial output before it was stopped — full at ")


def test_a_restricted_conversation_has_its_output_saved_too(
    box: Toolbox, saved: Path, work: Path
) -> None:
    """What it prints is still saved: the host writes that file."""
    ctx = limpet.ToolContext(work, restricted=True)
    answer = box.call_sync({"command": "seq 1 200; touch x"}, ctx)
    assert the_file(saved).read_text().startswith("1\n2\n")
    assert not (work / "x").exists()
    assert answer.data["summary"].endswith("(exit 1)")
