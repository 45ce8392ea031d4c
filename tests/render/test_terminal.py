"""The panels on a real terminal: `limpet run`, `check`, `tasks`, `output` as a person sees them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

import limpet
from limpet.render.width import cells
from render.emulator import LIMPET, Emulator, on_terminal, shown
from tasks.helpers import end_all

SGR = re.compile(r"\x1b\[[0-9;]*m")
OURS = re.compile(r"\x1b\[\?(?:25|7)[lh]|\r\x1b\[J|\r\x1b\[[1-9]A|\r")
"""What the live view uses: cursor and wrapping on and off, erasing below, going up its own rows."""
STATUS = re.compile(r"\x1b\[\?7l(.*?)\r(?:\x1b\[\dA)?\x1b\[\?7h", re.DOTALL)
LONG = "sleep 1.4"
WAIT = "while [ ! -e go ]; do sleep 0.05; done"
"""Until the live view was seen, however slow this machine is now."""


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def task(bash: limpet.Bash) -> limpet.Task:
    done = bash.start_sync("printf 'one\\ntw\u202eo\\033[2J'; exit 3", description="say it")
    done.wait_sync()
    return done


def statuses(written: str) -> list[list[str]]:
    """Return every frame of the live view, as rows."""
    return [SGR.sub("", frame).replace("\r", "").split("\n") for frame in STATUS.findall(written)]


def watched(*arguments: str, size: tuple[int, int] = (80, 24)) -> Emulator:
    """Run a command that waits to its end, when a few frames of its live view were drawn."""
    with on_terminal("run", *arguments, size=size) as terminal:
        assert terminal.read_until(lambda: len(statuses(terminal.written)) > 2)
        Path("go").touch()
        terminal.finish()
    return terminal


# Colour


def views(task: limpet.Task) -> list[list[str]]:
    return [
        ["run", "printf '\\033[31mred\\033[0m\\n'"],
        ["run", f"printf '\\033[31mred\\033[0m\\n'; {LONG}"],
        ["run", "cd x && git add -A"],
        ["run", "--background", "git add -A"],
        ["check", "git add -A"],
        ["tasks"],
        ["output", task.id],
        ["output", task.id, "-f"],
    ]


def test_there_is_colour_on_a_terminal_and_only_if_it_is_wanted(task: limpet.Task) -> None:
    for arguments in views(task):
        assert SGR.search(shown(*arguments).written), arguments
        assert SGR.search(shown(*arguments, NO_COLOR="").written), arguments
        assert not SGR.search(shown(*arguments, NO_COLOR="1").written), arguments


def test_a_dumb_terminal_gets_plain_text(task: limpet.Task) -> None:
    for arguments in views(task):
        text = shown(*arguments, TERM="dumb").written
        assert "\x1b" not in text, arguments
        assert text.strip()


def test_what_is_piped_is_plain_text(task: limpet.Task) -> None:
    """Whatever the terminal could do, and whatever else asks for colour."""
    for arguments in views(task)[2:]:
        done = subprocess.run([*LIMPET, *arguments], capture_output=True, text=True, timeout=30)
        assert "\x1b" not in done.stdout + done.stderr, arguments
        assert "─" not in done.stdout + done.stderr, arguments
    plain = subprocess.run([*LIMPET, "output", task.id], capture_output=True, timeout=30)
    assert plain.stdout.decode() == "one\ntw\u202eo"


# Start-up


COLD = [["run", "true"], ["run", "printf '日本\\n' # 日本"], ["tasks", "--json"]]


@pytest.mark.parametrize("arguments", COLD, ids=" ".join)
def test_what_is_short_does_not_wait_for_rich(arguments: list[str], task: limpet.Task) -> None:
    text = shown(*arguments, PYTHONPROFILEIMPORTTIME="1").written
    assert "limpet.cli" in text
    assert "rich" not in text
    done = subprocess.run(
        ["env", "PYTHONPROFILEIMPORTTIME=1", *LIMPET, *arguments], capture_output=True, timeout=30
    )
    assert b"limpet.cli" in done.stderr
    assert b"rich" not in done.stderr


# The live view


def test_a_long_command_has_a_live_view_that_goes_away() -> None:
    command = f"echo first; printf 'half a li'; {WAIT}; echo ne"
    words = "a description that is longer than the summary, " * 2 + "by far"
    with on_terminal("run", "--description", words, command, size=(140, 24)) as terminal:
        assert terminal.read_until(lambda: "⠙" in terminal.written)
        first, half, status = terminal.seen()
        assert (first, half) == ("first", "half a li")
        assert re.fullmatch(rf"[⠋⠙] {words} · \d\.\d s · 1 lines · 15 B", status)
        Path("go").touch()
        assert terminal.finish() == 0
    assert terminal.seen()[:2] == ["first", "half a line"]
    assert re.fullmatch(r"✓ exit 0 · .* of output", terminal.seen()[2])
    assert len(terminal.seen()) == 3
    assert terminal.written.rindex("\x1b[?25h") > terminal.written.rindex("\x1b[?25l")


def test_without_a_description_the_command_is_shown() -> None:
    (frame, *_) = statuses(watched(f"{WAIT} # a comment").written)
    assert re.match(rf"⠋ {re.escape(WAIT)} # a comment · \d\.\d s", frame[-1])


def test_all_that_was_written_is_in_the_scrollback_once() -> None:
    again = "for i in $(seq 201 400); do echo line $i; [ $((i % 20)) != 0 ] || sleep 0.1; done"
    terminal = watched(f"seq -f 'line %g' 200; {WAIT}; {again}", size=(40, 10))
    assert terminal.seen()[:400] == [f"line {number}" for number in range(1, 401)]
    assert len(statuses(terminal.written)) > 5


@pytest.mark.parametrize("size", [(20, 3), (7, 2), (200, 50), (1, 1)])
def test_the_live_view_follows_the_size_of_the_terminal(size: tuple[int, int]) -> None:
    with on_terminal("run", f"printf '日本語 %.0s' $(seq 50); {WAIT}") as terminal:
        assert terminal.read_until(lambda: len(statuses(terminal.written)) > 1)
        before = statuses(terminal.written)
        assert any(cells(row) > 70 for frame in before for row in frame)
        terminal.resize(*size)
        at = len(terminal.written)
        assert terminal.read_until(lambda: len(statuses(terminal.written[at:])) > 4)
        Path("go").touch()
        assert terminal.finish() == 0
    after = statuses(terminal.written[at:])[2:]  # one may have been on its way
    assert max(cells(row) for frame in after for row in frame) <= size[0]
    assert max(len(frame) for frame in after) <= size[1]


def test_a_resize_leaves_nothing_behind_and_takes_nothing_away() -> None:
    command = f"seq 5; printf '{'x' * 30}'; {WAIT}; echo; echo end"
    with on_terminal("run", "--description", "d" * 50, command) as terminal:
        assert terminal.read_until(lambda: len(statuses(terminal.written)) > 1)
        terminal.resize(30, 24)
        at = len(terminal.written)
        assert terminal.read_until(lambda: len(statuses(terminal.written[at:])) > 2)
        Path("go").touch()
        assert terminal.finish() == 0
    assert terminal.seen()[:7] == ["1", "2", "3", "4", "5", "x" * 30, "end"]
    assert terminal.seen()[7].startswith("✓ exit 0")


def test_a_colour_that_is_not_ended_goes_on_with_the_output_and_nowhere_else() -> None:
    written = watched(f"printf '\\033[31mred\\n'; {WAIT}; echo still").written
    assert "\x1b[31mred\x1b[0m\r\n" in written
    assert "\x1b[31mstill\x1b[0m\r\n" in written


# Hostile output

HOSTILE = {
    "clipboard": (r"\033]52;c;aGFja2Vk\007", "aGFja2Vk"),
    "clipboard ended otherwise": (r"\033]52;c;aGFja2Vk\033\\", "aGFja2Vk"),
    "title": (r"\033]0;hacked\007", "hacked"),
    "title by 8 bits": (r"\302\2350;hacked\302\234", "hacked"),
    "link": (r"\033]8;;http://evil\033\\x", "evil"),
    "cursor": (r"\033[37;2H\033[37A\033[2J\033[3J", "37"),
    "alternate screen": (r"\033[?1049h", "1049"),
    "status report": (r"\033[6n\033[c", "\x1b[6n"),
    "charset": (r"\033(0\016", "\x0e"),
    "reset": (r"\033c", "\x1bc"),
    "backspace": (r"abc\b\b\b\bxyz", "\x08"),
    "bidi": (r"\342\200\256gpj.exe\342\201\246", "\u202e"),
    "binary": (r"\000\001\002\377\376\200\033", "\x01"),
    "a long colour": (r"\033[%05000d;31m", "0" * 100),
    "device string": (r"\033Pq#0;evil\033\\", "evil"),
}


def is_harmless(terminal: Emulator) -> bool:
    left = OURS.sub("", SGR.sub("", terminal.written))
    return not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", left)


def test_output_does_nothing_to_the_terminal() -> None:
    lines = [f"printf '{text}\\n' 0;" for text, _ in HOSTILE.values()]
    partials = [f"printf 'partial {text}' 0; sleep 0.15; echo;" for text, _ in HOSTILE.values()]
    command = "\n".join([*lines, WAIT, *partials, "echo end"])
    terminal = watched("--description", "x", command)
    for name, (_, evil) in HOSTILE.items():
        assert evil not in terminal.written, name
    assert is_harmless(terminal)
    assert "end" in terminal.seen()
    assert sum(line.startswith("partial") for line in terminal.seen()) == len(HOSTILE)


def test_a_command_and_its_names_do_nothing_to_the_terminal(bash: limpet.Bash) -> None:
    texts = [text for text, _ in HOSTILE.values()]
    script = "".join(f"printf '{text}' 0; " for text in texts)
    raw = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
    hostile = raw.replace(b"\0", b"").decode("utf-8", "surrogateescape")
    done = bash.start_sync(f"{script} # {hostile}", description=hostile)
    done.wait_sync()
    for arguments in (
        ["tasks"],
        ["output", done.id],
        ["output", done.id, "--last", "1"],
        ["output", done.id, "-f"],
        ["check", f"git add -A # {hostile}"],
        ["run", f"git add -A {hostile}"],
        ["run", "--background", f"git add -A {hostile}"],
        ["run", "--description", hostile, f"{LONG} # {hostile}"],
        ["run", f"{LONG} # {hostile}"],
        ["run", f"sleep 60 {hostile} >/dev/null 2>&1 &"],
        ["run", "--cwd", f"/no/{hostile}", "true"],
        ["run", "--background", "--cwd", f"/no/{hostile}", "true"],
    ):
        terminal = shown(*arguments)
        assert terminal.seen(), arguments
        assert is_harmless(terminal), (arguments[0], terminal.written)
    end_all()


def test_a_huge_line_arrives_whole_and_never_fills_the_live_view() -> None:
    command = f"head -c 200000 /dev/zero | tr '\\0' x; {WAIT}; echo; echo end"
    terminal = watched(command, size=(100, 24))
    assert max(len(frame) for frame in statuses(terminal.written)) <= 6
    lines = terminal.seen()
    assert lines[-2] == "end"
    assert "".join(lines[:-2]).count("x") == 200_000


# The verbs


def test_check_marks_the_part() -> None:
    terminal = shown("check", "echo 日本 &&\tgit add -A && git status", size=(60, 24))
    lines = terminal.seen()
    assert lines[0] == "✗ refused"
    assert lines[3] == " " * cells(lines[2][: lines[2].index("-A")]) + "^^"


def test_run_shows_what_is_blocked_and_where(tmp_path: Path) -> None:
    terminal = shown("run", "touch ran && git add -A")
    lines = terminal.seen()
    assert terminal.process.returncode == 126
    assert lines[0].startswith("⚠")
    assert lines[0].endswith("Command Blocked")
    assert lines[2:4] == ["  touch ran && git add -A", "                       ^^"]
    assert "This command matches a blocked pattern:" in lines
    assert any(line.startswith("Name the paths") for line in lines)
    assert not (tmp_path / "ran").exists()
    again = shown("run", "--background", "touch ran && git add -A")
    assert (again.process.returncode, again.seen()) == (126, lines)


def test_what_cannot_start_is_not_called_blocked() -> None:
    for arguments in (["run"], ["run", "--background"]):
        terminal = shown(*arguments, "--cwd", "/no/such/place", "true")
        assert terminal.process.returncode == 125
        assert "Blocked" not in terminal.written
        assert "/no/such/place" in terminal.written


def test_run_says_how_to_allow_what_needs_approval(tmp_path: Path) -> None:
    (tmp_path / "limpet.toml").write_text('[permissions]\nask = ["echo *"]')
    text = " ".join(shown("run", "echo hi").seen())
    assert "This command needs approval:" in text
    assert "permissions' `allow`" in text


def test_run_background_shows_a_box_with_the_id(bash: limpet.Bash) -> None:
    terminal = shown("run", "--background", "echo hi")
    (started,) = bash.tasks()
    started.wait_sync()
    lines = terminal.seen()
    assert lines[0].startswith("┌─ Background Task Started ─")
    assert lines[1] == f"│ Task ID: {started.id}".ljust(79) + "│"
    assert lines[2] == "│ Command: echo hi".ljust(79) + "│"
    assert f"limpet output {started.id}" in "".join(lines)


def test_tasks_is_a_table_that_fits(task: limpet.Task) -> None:
    for columns in (120, 60, 30):
        header, _, row = shown("tasks", size=(columns, 24)).seen()
        assert header.startswith("ID            STATUS")
        assert row.startswith(f"{task.id}   exited 3")


def test_output_is_complete_between_two_lines(task: limpet.Task) -> None:
    for arguments in ([], ["-f"], ["--last", "5"]):
        lines = shown("output", task.id, *arguments).seen()
        assert lines[0].startswith(f"{task.id} · say it ───")
        assert lines[1:3] == ["one", "tw\N{REPLACEMENT CHARACTER}o"]
        assert re.match(r"exited 3 after \d+ ms ───", lines[3])
        assert len(lines) == 4


def test_output_of_what_runs_says_how_to_follow(bash: limpet.Bash) -> None:
    running = bash.start_sync("echo on; sleep 60")
    assert running.wait_sync("/on/").matched
    lines = shown("output", running.id).seen()
    assert lines[1] == "on"
    assert re.match(rf"running for \d+ ms · follow it: limpet output {running.id} -f", lines[2])
    running.stop_sync()


def test_json_has_no_lines_around_it(task: limpet.Task) -> None:
    text = shown("output", task.id, "--json", size=(2000, 24)).seen()
    assert json.loads("".join(text))["status"] == "exited"
