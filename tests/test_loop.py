from __future__ import annotations

import os
import time

from limpet.loop import SelectorLoop


def test_timers_run_in_order_and_not_before_their_time() -> None:
    loop = SelectorLoop()
    started = time.monotonic()
    ran: list[tuple[str, float]] = []
    for name, delay in (("late", 0.05), ("early", 0.01), ("same", 0.01)):
        loop.call_later(delay, lambda name=name: ran.append((name, time.monotonic() - started)))
    loop.run_until(lambda: len(ran) == 3)
    assert [name for name, _ in ran] == ["early", "same", "late"]
    assert ran[0][1] >= 0.01
    assert ran[2][1] >= 0.05


def test_a_cancelled_timer_does_not_run() -> None:
    loop = SelectorLoop()
    ran: list[str] = []
    loop.call_later(0.0, ran.append, "never").cancel()
    loop.call_later(0.01, ran.append, "always")
    loop.run_until(lambda: bool(ran))
    assert ran == ["always"]


def test_a_descriptor_removed_by_an_earlier_callback_is_not_called() -> None:
    loop = SelectorLoop()
    ends = [os.pipe(), os.pipe()]
    called: list[int] = []

    def read(own: int, other: int) -> None:
        called.append(own)
        loop.remove_reader(other)
        loop.remove_reader(own)

    (first, first_write), (second, second_write) = ends
    loop.add_reader(first, read, first, second)
    loop.add_reader(second, read, second, first)
    os.write(first_write, b"x")
    os.write(second_write, b"x")
    loop.run_until(lambda: bool(called))
    assert len(called) == 1
    for fd in (first, first_write, second, second_write):
        os.close(fd)


def test_removing_what_is_not_watched_is_no_error() -> None:
    assert SelectorLoop().remove_reader(12345) is False
