from __future__ import annotations

from limpet.backlog import BACKLOG_BYTES, Backlog
from limpet.events import Finished, Output, Progress, Started, Written
from limpet.result import Outcome, Result

RESULT = Result(command="x", outcome=Outcome.EXITED)


def _backlog() -> Backlog:
    return Backlog(lambda: None)


def test_events_come_out_in_order() -> None:
    backlog = _backlog()
    backlog.put(Started(1, "a"))
    backlog.put(Written("stdout", b"out"))
    backlog.put(Written("stderr", b"err"))
    backlog.put(Finished(RESULT))
    taken = [backlog.take() for _ in range(5)]
    assert taken == [
        Started(1, "a"),
        Output("stdout", b"out", "out"),
        Output("stderr", b"err", "err"),
        Finished(RESULT),
        None,
    ]


def test_small_pieces_are_joined_and_only_the_latest_progress_is_kept() -> None:
    backlog = _backlog()
    for i in range(1000):
        backlog.put(Written("stdout", b"x"))
        backlog.put(Progress(float(i), i, i, ""))
    events = []
    while (event := backlog.take()) is not None:
        events.append(event)
    assert sum(isinstance(event, Progress) for event in events) == 1
    assert sum(len(event.data) for event in events if isinstance(event, Output)) == 1000


def test_what_is_too_much_is_skipped_from_the_front_and_counted() -> None:
    backlog = _backlog()
    piece = 100_000
    for i in range(50):
        backlog.put(Written("stdout", b"%d" % (i % 10) * piece))
    taken: list[Output] = []
    while (event := backlog.take()) is not None:
        assert isinstance(event, Output)
        taken.append(event)
    kept = sum(len(event.data) for event in taken)
    assert kept <= BACKLOG_BYTES
    assert taken[0].skipped_bytes + kept == 50 * piece
    assert taken[-1].text.endswith("9")


def test_an_unfinished_character_is_told_before_the_end() -> None:
    backlog = _backlog()
    backlog.put(Written("stdout", "é".encode()[:1]))
    backlog.put(Finished(RESULT))
    assert backlog.take() == Output("stdout", b"\xc3", "")
    assert backlog.take() == Output("stdout", b"", "\N{REPLACEMENT CHARACTER}")
    assert backlog.take() == Finished(RESULT)


def test_whoever_waits_is_told() -> None:
    told: list[bool] = []
    Backlog(lambda: told.append(True)).put(Started(1, "a"))
    assert told == [True]
