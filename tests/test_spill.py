from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support import as_ordinary_user

import limpet
from limpet import state
from limpet.events import Stream
from limpet.output import spill
from limpet.output.capture import Capture, Captured, Pipe
from limpet.output.spill import Spill
from limpet.policy import OutputPolicy

SMALL = OutputPolicy(head_bytes=100, tail_bytes=200)
DAY_S = 86400


def captured(
    pieces: Iterable[bytes], policy: OutputPolicy = SMALL, secrets: tuple[bytes, ...] = ()
) -> Captured:
    """Write pieces of at most 64 KiB to a real pipe, and return what a capture makes of them."""
    capture = Capture("run", policy)
    read_end, write_end = os.pipe()
    pipe = Pipe(read_end, "stdout", secrets)
    for piece in pieces:
        assert os.write(write_end, piece) == len(piece)
        while capture.read(pipe):
            pass
    os.close(write_end)
    assert capture.read(pipe) == 0
    pipe.close()
    return capture.close()


@contextmanager
def in_use(path: Path) -> Iterator[None]:
    """Hold the lock that whoever writes a saved output holds."""
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def saved_earlier(size: int, *, age_s: float, name: str = "earlier") -> Path:
    path = state.directory("output") / f"bash-{name}.log"
    path.write_bytes(b"x" * size)
    path.chmod(0o600)
    at = time.time() - age_s
    os.utime(path, (at, at))
    return path


@pytest.fixture
def sweep_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "_last_sweeps_s", {})


# Capture


def test_short_output_touches_no_disk(state_dir: Path) -> None:
    kept = captured([b"x" * 100, b"\n" * 200])
    assert kept.output == "x" * 100 + "\n" * 200
    assert (kept.spill_path, kept.truncated, kept.total_bytes) == (None, False, 300)
    assert not state_dir.exists()


@pytest.mark.parametrize(
    "pieces",
    [
        [b"x" * 301],
        [b"x" * 300, b"\n"],
        [b"line %d\n" % number for number in range(500)],
        [random.Random(1).randbytes(size) for size in (1, 299, 1, 4096, 65536, 65536, 7)],  # noqa: S311
    ],
)
def test_long_output_is_saved_byte_for_byte(state_dir: Path, pieces: list[bytes]) -> None:
    kept = captured(pieces)
    path = state_dir / "output" / "bash-run.log"
    assert kept.spill_path == str(path)
    assert path.read_bytes() == b"".join(pieces)
    assert kept.total_bytes == len(b"".join(pieces))
    assert kept.save_error is None


def test_a_flood_is_saved_byte_for_byte(bash: limpet.Bash) -> None:
    result = bash.run_sync("seq 1 700000")
    assert result.spill_path is not None
    expected = b"".join(b"%d\n" % number for number in range(1, 700_001))
    assert Path(result.spill_path).read_bytes() == expected
    assert (result.truncated, result.total_bytes) == (True, len(expected))
    shown = result.output.encode()
    assert shown.startswith(expected[:9000])
    assert shown.endswith(expected[-19_000:])


def test_the_marker_counts_what_is_omitted_and_says_where_it_is() -> None:
    data = b"".join(b"line %04d\n" % number for number in range(100))
    kept = captured([data])
    omitted = data[100:-190]
    expected_marker = f"[… 71 lines / 710 bytes omitted; full: {kept.spill_path} …]\n"
    assert kept.output == f"{data[:100].decode()}{expected_marker}{data[-190:].decode()}"
    assert (kept.omitted_bytes, kept.omitted_lines) == (len(omitted), omitted.count(b"\n"))


def test_the_marker_stands_on_a_line_of_its_own_within_an_endless_line() -> None:
    lines = captured([b"x" * 1000]).output.split("\n")
    assert [lines[0], lines[2]] == ["x" * 100, "x" * 200]
    assert lines[1].startswith("[… 0 lines / 700 bytes omitted; full: ")


def test_the_file_is_private_whatever_the_umask(state_dir: Path) -> None:
    before = os.umask(0)
    try:
        kept = captured([b"x" * 1000])
    finally:
        os.umask(before)
    assert kept.spill_path is not None
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (state_dir, *state_dir.rglob("*"))]
    assert modes == [0o700, 0o700, 0o600]


def test_a_directory_that_others_could_read_is_closed_to_them(state_dir: Path) -> None:
    state_dir.mkdir(mode=0o700)
    (state_dir / "output").mkdir(mode=0o755)
    captured([b"x" * 1000])
    assert stat.S_IMODE((state_dir / "output").stat().st_mode) == 0o700


def test_binary_output_is_named_and_not_shown() -> None:
    data = random.Random(1).randbytes(1000)  # noqa: S311 -- reproducible, not secret
    kept = captured([data])
    assert kept.output == f"[binary output: 1000 bytes; full: {kept.spill_path}]\n"
    assert captured([data[:200]]).output == "[binary output: 200 bytes]\n"


def test_capped_binary_output_is_not_called_full() -> None:
    data = random.Random(1).randbytes(1000)  # noqa: S311 -- reproducible, not secret
    kept = captured([data], OutputPolicy(head_bytes=100, tail_bytes=200, spill_bytes=500))
    assert kept.spill_path is not None
    assert kept.spill_path in kept.output
    assert "full: " not in kept.output


def test_secrets_reach_neither_the_result_nor_the_file() -> None:
    secret = b"tok-12345678"
    data = b"a %b\n" % secret * 100
    pieces = [data[at : at + 7] for at in range(0, len(data), 7)]
    kept = captured(pieces, secrets=(secret,))
    assert kept.spill_path is not None
    assert Path(kept.spill_path).read_bytes() == b"a [masked]\n" * 100
    assert secret.decode() not in kept.output


def test_separate_streams_are_kept_apart_and_saved_together() -> None:
    policy = OutputPolicy(head_bytes=100, tail_bytes=200, streams="separate")
    capture = Capture("run", policy)
    streams: tuple[Stream, ...] = ("stdout", "stderr")
    for stream in streams:
        read_end, write_end = os.pipe()
        os.write(write_end, stream.encode() * 40)
        os.close(write_end)
        pipe = Pipe(read_end, stream, ())
        assert capture.read(pipe) == 240
        pipe.close()
    kept = capture.close()
    assert (kept.stdout, kept.stderr) == ("stdout" * 40, "stderr" * 40)
    assert kept.spill_path is not None
    assert Path(kept.spill_path).read_text() == "stdout" * 40 + "stderr" * 40
    assert (kept.total_bytes, kept.omitted_bytes) == (480, 180)


def test_progress_is_known_while_output_arrives() -> None:
    capture = Capture("run", SMALL)
    read_end, write_end = os.pipe()
    pipe = Pipe(read_end, "stdout", ())
    os.write(write_end, b"one\n 10%\r\x1b[32m 20%\x1b[0m")
    assert capture.read(pipe) == 22
    assert capture.read(pipe) is None
    assert (capture.total_bytes, capture.total_lines, capture.last_line()) == (22, 1, " 20%")
    os.close(write_end)
    pipe.close()


# The cap on one file


def test_the_file_ends_at_its_cap_and_the_marker_says_so() -> None:
    policy = OutputPolicy(head_bytes=100, tail_bytes=200, spill_bytes=1000)
    data = random.Random(1).randbytes(2000).hex().encode()  # noqa: S311 -- not secret
    kept = captured([data[:600], data[600:900], data[900:1500], data[1500:]], policy)
    assert kept.spill_path is not None
    assert Path(kept.spill_path).read_bytes() == data[:1000]
    assert f"bytes omitted; up to the cap: {kept.spill_path} …]" in kept.output
    assert kept.output.endswith(data[-200:].decode())
    assert (kept.total_bytes, kept.save_error) == (4000, None)


def test_output_that_ends_at_the_cap_exactly_is_full() -> None:
    policy = OutputPolicy(head_bytes=100, tail_bytes=200, spill_bytes=1000)
    assert "bytes omitted; full: " in captured([b"x" * 600, b"x" * 400], policy).output


@pytest.mark.usefixtures("state_dir")
def test_a_capped_file_stays_capped() -> None:
    file = Spill("run", OutputPolicy(spill_bytes=10))
    for data in (b"x" * 8, b"y" * 8, b"z", b""):
        file.write(data)
    file.close()
    assert file.is_capped
    assert file.path.read_bytes() == b"x" * 8 + b"yy"


def test_a_command_that_reaches_the_cap_is_stopped() -> None:
    bash = limpet.Bash(output=OutputPolicy(spill_bytes=100_000))
    result = bash.run_sync("yes")
    assert result.outcome is limpet.Outcome.OUTPUT_CAPPED
    assert result.spill_path is not None
    assert Path(result.spill_path).read_bytes() == b"y\n" * 50_000
    assert "the cap of 100000 bytes" in (result.hint or "")


# The cap on the directory


def test_the_oldest_finished_files_make_room() -> None:
    files = [
        saved_earlier(400, age_s=1000 - number, name=f"earlier-{number}") for number in range(4)
    ]
    kept = captured(
        [b"x" * 500], OutputPolicy(head_bytes=10, tail_bytes=10, spill_directory_bytes=1200)
    )
    assert kept.spill_path is not None
    assert Path(kept.spill_path).stat().st_size == 500
    assert [path.exists() for path in files] == [False, False, False, True]


@pytest.mark.parametrize("earlier_bytes", [1000, 999, 700])
def test_finished_files_make_room_also_where_the_directory_is_not_yet_over_its_cap(
    earlier_bytes: int,
) -> None:
    """A directory that an earlier run filled exactly would cap every later run at nothing."""
    earlier = saved_earlier(earlier_bytes, age_s=1000)
    kept = captured(
        [b"x" * 500], OutputPolicy(head_bytes=10, tail_bytes=10, spill_directory_bytes=1000)
    )
    assert kept.spill_path is not None
    assert Path(kept.spill_path).stat().st_size == 500
    assert not earlier.exists()


def test_a_file_in_use_never_makes_room() -> None:
    busy = saved_earlier(600, age_s=2000, name="busy")
    finished = saved_earlier(600, age_s=1000, name="finished")
    policy = OutputPolicy(head_bytes=10, tail_bytes=10, spill_directory_bytes=1000)
    with in_use(busy):
        kept = captured([b"x" * 500], policy)
    assert busy.stat().st_size == 600
    assert not finished.exists()
    assert kept.spill_path is not None
    assert Path(kept.spill_path).stat().st_size == 400
    assert "up to the cap" in kept.output


def test_a_run_does_not_make_room_by_removing_its_own_file() -> None:
    policy = OutputPolicy(head_bytes=10, tail_bytes=10, spill_directory_bytes=300)
    kept = captured([b"x" * 200, b"y" * 200], policy)
    assert kept.spill_path is not None
    assert Path(kept.spill_path).read_bytes() == b"x" * 200 + b"y" * 100


# Sweeping


@pytest.mark.usefixtures("sweep_is_due")
def test_files_older_than_the_policy_keeps_them_are_removed() -> None:
    old = saved_earlier(10, age_s=7 * DAY_S + 60, name="old")
    young = saved_earlier(10, age_s=7 * DAY_S - 60, name="young")
    captured([b"x" * 1000])
    assert not old.exists()
    assert young.exists()


@pytest.mark.usefixtures("sweep_is_due")
def test_an_old_file_in_use_is_not_removed() -> None:
    old = saved_earlier(10, age_s=30 * DAY_S)
    with in_use(old):
        captured([b"x" * 1000])
    assert old.exists()


@pytest.mark.usefixtures("sweep_is_due")
def test_a_link_among_the_files_leads_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("precious")
    link = state.directory("output") / "bash-link.log"
    link.symlink_to(outside)
    os.utime(link, (0, 0), follow_symlinks=False)
    captured([b"x" * 1000])
    assert outside.read_text() == "precious"
    link.unlink()


@pytest.mark.usefixtures("sweep_is_due")
def test_the_directory_is_swept_once_an_hour_only() -> None:
    spill.sweep(state.directory("output"), SMALL)
    old = saved_earlier(10, age_s=30 * DAY_S)
    spill.sweep(state.directory("output"), SMALL)
    assert old.exists()


# Where nothing can be saved


def not_a_directory(tmp_path: Path) -> Path:
    (tmp_path / "file").touch()
    return tmp_path / "file" / "state"


def linked_elsewhere(tmp_path: Path) -> Path:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "output").symlink_to(tmp_path / "elsewhere")
    return tmp_path / "linked"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (not_a_directory, "not saved in full: Not a directory"),
        (linked_elsewhere, "not saved in full: not a directory of this user"),
    ],
)
def test_without_a_place_to_save_it_output_is_cut_and_the_marker_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], Path], reason: str
) -> None:
    monkeypatch.setenv("LIMPET_STATE_DIR", str(make(tmp_path)))
    kept = captured([b"x" * 1000, b"y" * 1000])
    assert kept.spill_path is None
    assert isinstance(kept.save_error, OSError)
    assert (kept.total_bytes, kept.omitted_bytes) == (2000, 1700)
    head, marker, tail = kept.output.split("\n")
    assert (head, tail) == ("x" * 100, "y" * 200)
    assert marker.startswith("[… 0 lines / 1700 bytes omitted; not saved in full: ")
    assert reason in marker


def test_a_directory_that_this_user_may_not_write_is_named_in_the_marker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "closed").mkdir(mode=0o555)
    for parent in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        parent.chmod(0o755)
    monkeypatch.setenv("LIMPET_STATE_DIR", str(tmp_path / "closed"))
    said = as_ordinary_user(lambda: captured([b"x" * 1000]).output)
    (tmp_path / "closed").rmdir()
    assert "not saved in full: Permission denied …]" in said


def test_a_run_whose_output_cannot_be_saved_says_so_in_its_hint(
    bash: limpet.Bash, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMPET_STATE_DIR", str(not_a_directory(tmp_path)))
    result = bash.run_sync("seq 1 20000")
    assert result.ok
    assert result.spill_path is None
    assert "could not be saved" in (result.hint or "")


def run_python(code: str, **environment: str) -> dict[str, object]:
    """Run Python code in a process of its own, and return the JSON it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        stdout=subprocess.PIPE,
        check=True,
    )
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_a_full_disk_ends_the_file_and_neither_the_command_nor_the_result(state_dir: Path) -> None:
    code = """
import json, resource
import limpet
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
print(json.dumps(limpet.Bash().run_sync("seq 1 20000; exit 3").to_dict()))
"""
    result = run_python(code, LIMPET_STATE_DIR=str(state_dir))
    expected = "".join(f"{number}\n" for number in range(1, 20_001))
    assert (result["outcome"], result["exit_code"]) == ("exited", 3)
    assert result["total_bytes"] == len(expected)
    path, output = str(result["spill_path"]), str(result["output"])
    assert Path(path).read_text() == expected[:50_000]
    assert f"not saved in full: {os.strerror(errno.EFBIG)}: {path} …]" in output
    assert output.endswith("19999\n20000\n")
    assert "could not be saved" in str(result["hint"])


# Where files are kept


def test_where_the_state_directory_cannot_be_used_a_private_temporary_one_is(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LIMPET_STATE_DIR")
        patch.delenv("HOME", raising=False)
        patch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
        patch.setattr(tempfile, "tempdir", str(tmp_path))
        kept = captured([b"x" * 1000])
    root = tmp_path / f"limpet-{os.geteuid()}"
    assert kept.spill_path == str(root / "output" / "bash-run.log")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (root, root / "output")] == [0o700] * 2


def test_the_user_state_directory_is_used_where_none_is_chosen(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LIMPET_STATE_DIR")
        patch.delenv("HOME", raising=False)
        patch.setenv("XDG_STATE_HOME", str(tmp_path))
        assert state.directory("output") == tmp_path / "limpet" / "output"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user without a home")
def test_a_user_without_a_home_or_a_passwd_entry_saves_in_the_temporary_directory() -> None:
    code = """
import json, os, tempfile
import platformdirs
from limpet import state
with tempfile.TemporaryDirectory() as root:
    os.chown(root, 54321, 54321)
    os.setuid(54321)
    tempfile.tempdir = root
    path = state.directory("output")
    print(json.dumps({"path": str(path.relative_to(root)), "is_dir": path.is_dir()}))
"""
    assert run_python(code) == {"path": "limpet-54321/output", "is_dir": True}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's directory")
@pytest.mark.parametrize("foreign", ["limpet-0", "limpet-0/output"])
def test_a_temporary_directory_that_another_user_made_is_not_used(
    tmp_path: Path, foreign: str
) -> None:
    """Its owner could exchange what lies in it at any time."""
    (tmp_path / foreign).mkdir(parents=True)
    os.chown(tmp_path / foreign, 54321, 54321)
    (tmp_path / "file").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LIMPET_STATE_DIR")
        patch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
        patch.setattr(tempfile, "tempdir", str(tmp_path))
        with pytest.raises(OSError, match=r"file|not a directory of this user"):
            state.directory("output")
