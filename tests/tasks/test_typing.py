"""Typing into a task, and what its terminal shows."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
from contextlib import suppress

import pytest
from support import python, wait_until

import limpet
from limpet.tasks.input import Frame
from limpet.tasks.record import TaskStatus
from limpet.tasks.task import Task
from tasks.helpers import ended, kill_supervisor, printed


def test_text_is_typed_and_the_input_ended(bash: limpet.Bash) -> None:
    task = bash.start_sync("while read -r line; do echo got $line; done; echo over", stdin=True)
    task.send_sync("one\n")
    printed(task, "got one")
    task.send_sync("two\nthr")
    task.send_sync("ee\n")
    printed(task, "got three")
    task.send_sync(eof=True)
    assert ended(task).text == "got one\ngot two\ngot three\nover\n"


@pytest.mark.parametrize("kind", ["pipe", "terminal"])
def test_ctrl_c_interrupts(bash: limpet.Bash, kind: str) -> None:
    task = bash.start_sync(
        "trap 'echo interrupted; exit 9' INT; echo ready; sleep 60; echo",
        stdin=True if kind == "pipe" else None,
        pty=kind == "terminal",
    )
    printed(task, "ready")
    task.send_sync(key="ctrl-c")
    waited = task.wait_sync(timeout_s=5)
    assert waited.exit_code == 9
    assert "interrupted\n" in waited.text


@pytest.mark.parametrize("kind", ["pipe", "terminal"])
def test_ctrl_d_ends_the_input(bash: limpet.Bash, kind: str) -> None:
    task = bash.start_sync(
        "cat; echo over", stdin=True if kind == "pipe" else None, pty=kind == "terminal"
    )
    task.send_sync("line\n", key="Ctrl-D")
    assert "over\n" in ended(task).text


def test_keys_send_what_a_terminal_sends(bash: limpet.Bash) -> None:
    task = bash.start_sync("stty raw -echo; echo ready; head -c 8 | od -An -tx1", pty=True)
    printed(task, "ready")
    for key in ("up", "enter", "tab", "page-up"):
        task.send_sync(key=key)
    assert "1b 5b 41 0d 09 1b 5b 35" in ended(task).text


def test_much_input_arrives_whole(bash: limpet.Bash) -> None:
    """More than the pipes hold, to a task that begins to read late."""
    data = os.urandom(300_000)
    task = bash.start_sync("sleep 0.3; sha256sum", stdin=True)
    task.send_sync(data, eof=True)
    assert ended(task).text.split()[0] == hashlib.sha256(data).hexdigest()


def test_who_does_not_read_bounds_who_sends(
    bash: limpet.Bash, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("limpet.tasks.input.SEND_S", 0.3)
    task = bash.start_sync("sleep 60", stdin=True)
    with pytest.raises(ValueError, match="has read nothing"):
        task.send_sync(b"x" * (4 << 20))
    assert task.status is TaskStatus.RUNNING


def test_many_type_at_once_and_no_line_is_torn(bash: limpet.Bash) -> None:
    task = bash.start_sync("cat", stdin=True)
    lines = [f"{letter * 200}\n" for letter in "abcdefghij"]

    async def main() -> None:
        await asyncio.gather(*(task.send(line) for line in lines * 5))

    asyncio.run(main())
    task.send_sync(eof=True)
    assert sorted(ended(task).text.splitlines(keepends=True)) == sorted(lines * 5)


def test_text_that_is_no_text_is_passed_on_as_it_is(bash: limpet.Bash) -> None:
    task = bash.start_sync("od -An -tx1", stdin=True)
    task.send_sync("\udcffé", eof=True)
    assert ended(task).text.split() == ["ff", "c3", "a9"]


def test_a_task_without_input_says_so(bash: limpet.Bash) -> None:
    task = bash.start_sync("sleep 60")
    with pytest.raises(ValueError, match="takes no input: start it with"):
        task.send_sync("x")


@pytest.mark.parametrize("pty", [False, True])
def test_an_ended_task_says_so(bash: limpet.Bash, pty: bool) -> None:
    task = bash.start_sync("true", stdin=True, pty=pty)
    ended(task)
    with pytest.raises(ValueError, match="takes no input: it has ended"):
        task.send_sync("x")


def test_after_the_end_of_the_input_there_is_no_more(bash: limpet.Bash) -> None:
    task = bash.start_sync("cat; sleep 60", stdin=True)
    task.send_sync("last\n", eof=True)

    def is_told() -> bool:
        try:
            task.send_sync("more\n")
        except ValueError as error:
            return "its input has ended" in str(error)
        return False

    assert wait_until(is_told)
    printed(task, "last")
    assert task.output().text == "last\n"


def test_a_lost_task_takes_no_input(bash: limpet.Bash) -> None:
    task = bash.start_sync("sleep 60", stdin=True)
    kill_supervisor(task)
    with pytest.raises(ValueError, match="takes no input"):
        task.send_sync("x")


def test_there_is_no_such_key(bash: limpet.Bash) -> None:
    task = bash.start_sync("cat", stdin=True)
    with pytest.raises(ValueError, match="no such key: 'hyper-x'; there are: enter"):
        task.send_sync(key="hyper-x")


# Terminals


def shown(task: Task) -> tuple[str, ...]:
    """Return the rows of a terminal that say something."""
    return tuple(line for line in task.screen().lines if line)


def test_a_terminal_is_real_and_has_its_size(bash: limpet.Bash) -> None:
    command = "tty; stty size; echo $TERM; [ -t 0 ] && [ -t 1 ] && echo both; : < /dev/tty"
    task = bash.start_sync(command, pty=True, size=(101, 31))
    text = ended(task).text
    assert text.startswith("/dev/pts/")
    assert text.endswith("31 101\nxterm-256color\nboth\n")


def test_what_it_prints_is_kept_raw_and_read_clean(bash: limpet.Bash) -> None:
    task = bash.start_sync(r"printf '\033[31mred\033[0m\n'", pty=True)
    assert ended(task).text == "red\n"
    with open(task.output_path, "rb") as file:
        assert file.read().startswith(b"\x1b[31mred\x1b[0m\r\n")


SCREENS = {
    "colours": (r"\033[1;31mred\033[0m \033[38;5;200mpink\033[0m", ("red pink",)),
    "cursor": (r"\033[3;5Hthere\033[1;1Hhere", ("here", "    there")),
    "redrawn": (r"10%%\r100%%\n", ("100%",)),
    "erased": (r"gone\033[2J\033[Hkept", ("kept",)),
    "erased to the end": (r"abcdef\033[4D\033[K", ("ab",)),
    "wide": (r"漢字 é\n", ("漢字 é",)),
    "other screen, and back": (r"mine\n\033[?1049h\033[Htheirs\033[?1049l", ("mine",)),
    "other screen": (r"mine\n\033[?1049h\033[Htheirs", ("theirs",)),
    "title": (r"\033]0;a title\007text", ("text",)),
    "link": (r"\033]8;;http://x\033\\link\033]8;;\033\\", ("link",)),
    "garbage": (r"\033[999;999;999z\033[>4;2m\033[?9999h\033[38;2mok\377", ("ok�",)),
    "device control": (r"\033P1q\033\\\033_Ga=q;\033\\ok", ("ok",)),
    "keyboard protocol": (r"\033[<u\033[=5u\033[?u\033[>1uok", ("ok",)),
    "margins": (r"\033[1;2;3;4;5rok\033[r", ("ok",)),
    "half a sequence": (r"ok\033[3", ("ok",)),
    "scrolled": (
        "".join(f"{n}\\n" for n in range(1, 40)) + "40",
        tuple(str(n) for n in range(33, 41)),
    ),
}


def test_the_screen_is_what_a_person_would_see(bash: limpet.Bash) -> None:
    tasks = {
        name: bash.start_sync(f"printf '{text}'; sleep 60", pty=True, size=(40, 8))
        for name, (text, _) in SCREENS.items()
    }
    expected = {name: rows for name, (_, rows) in SCREENS.items()}

    def seen() -> dict[str, tuple[str, ...]]:
        return {name: shown(task) for name, task in tasks.items()}

    wait_until(lambda: seen() == expected)
    assert seen() == expected
    assert {len(task.screen().lines) for task in tasks.values()} == {8}


def test_the_cursor_is_where_it_is(bash: limpet.Bash) -> None:
    task = bash.start_sync(r"printf 'one\ntwo> '; read line", pty=True)
    assert wait_until(lambda: shown(task) == ("one", "two>"))
    assert (task.screen().row, task.screen().column) == (1, 5)
    assert task.screen().text == "one\ntwo>\n"
    task.send_sync("seen")
    assert wait_until(lambda: shown(task) == ("one", "two> seen"))


def test_a_terminal_takes_another_size(bash: limpet.Bash) -> None:
    task = bash.start_sync(
        "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done", pty=True, size=(80, 24)
    )
    printed(task, "ready")
    asyncio.run(task.resize(120, 40))
    printed(task, "40 120")
    assert wait_until(lambda: len(task.screen().lines) == 40)


@pytest.mark.parametrize("size", [(0, 10), (10, 0), (-1, 5), (10**6, 10)])
def test_a_size_that_is_none_is_refused(bash: limpet.Bash, size: tuple[int, int]) -> None:
    task = bash.start_sync("echo ready; cat", pty=True)
    printed(task, "ready")
    with pytest.raises(ValueError, match="columns and rows"):
        asyncio.run(task.resize(*size))
    assert task.status is TaskStatus.RUNNING
    assert "ready" in shown(task)


def test_a_full_screen_program_is_typed_into_and_seen(bash: limpet.Bash) -> None:
    code = (
        "import tty, os; tty.setraw(0); w = lambda s: os.write(1, s.encode())\n"
        "w('\\x1b[?1049h\\x1b[2J\\x1b[1;1H-- MENU --')\n"
        "while (key := os.read(0, 8)) != b'q': w(f'\\x1b[3;1H\\x1b[K{key!r}')\n"
        "w('\\x1b[?1049l')"
    )
    task = bash.start_sync(f"echo before; {python(code)}; echo after", pty=True)
    assert wait_until(lambda: shown(task) == ("-- MENU --",))
    task.send_sync(key="down")
    assert wait_until(lambda: shown(task) == ("-- MENU --", r"b'\x1b[B'"))
    task.send_sync("q")
    ended(task)
    assert shown(task) == ("before", "after")


NONSENSE = {
    "nothing": b"",
    "no frame": b"x",
    "no kind": Frame(b"?", b"x").packed(),
    "no size": Frame(b"s", b"x").packed(),
    "an empty size": Frame(b"s", b"").packed(),
    "a negative size": Frame(b"s", b"-1 5").packed(),
    "a huge size": Frame(b"s", b"1000000 1000000").packed(),
    "half a frame": Frame(b"t", b"text").packed()[:-2],
    "noise": os.urandom(1000),
}


@pytest.mark.parametrize("kind", ["pipe", "terminal"])
def test_nonsense_in_its_input_is_no_end_of_a_task(bash: limpet.Bash, kind: str) -> None:
    task = bash.start_sync(
        "echo ready; sleep 60", stdin=True if kind == "pipe" else None, pty=kind == "terminal"
    )
    printed(task, "ready")
    directory = os.open(task.directory, os.O_PATH)
    for name, data in NONSENSE.items():
        with socket.socket(socket.AF_UNIX) as sender:
            sender.connect(f"/proc/self/fd/{directory}/input")
            with suppress(BrokenPipeError):
                sender.sendall(data)
        assert task.wait_sync(timeout_s=0.1).matched == "timeout", name
    os.close(directory)
    task.send_sync("it still takes input\n")
    assert task.stop_sync().status is TaskStatus.STOPPED


def test_without_a_terminal_there_is_no_screen(bash: limpet.Bash) -> None:
    task = bash.start_sync("sleep 60", stdin=True)
    with pytest.raises(ValueError, match="has no terminal: start it with pty=True"):
        task.screen()
    with pytest.raises(ValueError, match="has no terminal"):
        asyncio.run(task.resize(80, 24))


def test_a_terminal_ends_when_its_task_does(bash: limpet.Bash) -> None:
    task = bash.start_sync("echo hi; exit 3", pty=True)
    waited = ended(task)
    assert (waited.text, waited.exit_code) == ("hi\n", 3)


def test_a_terminal_that_is_hung_up_ends_what_runs_in_it(bash: limpet.Bash) -> None:
    task = bash.start_sync("echo begun; sleep 60", pty=True)
    printed(task, "begun")
    assert task.stop_sync().status is TaskStatus.STOPPED
    assert ended(task).text == "begun\n"
