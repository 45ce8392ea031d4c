"""What `Bash.stream` yields, in order: Started, then Output and Progress, then Finished."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from limpet.result import Result

Stream = Literal["stdout", "stderr"]
"""In merged mode everything arrives as stdout."""


@dataclass(frozen=True, slots=True)
class Started:
    """The shell runs."""

    pid: int
    """Also the process group and the session of the run."""
    run_id: str


class Written(NamedTuple):
    """A piece of output as it was read; whoever shows it makes an `Output` of it."""

    stream: Stream
    data: bytes


@dataclass(frozen=True, slots=True)
class Output:
    """The command wrote something."""

    stream: Stream
    data: bytes
    """The raw bytes."""
    text: str
    """Safe to print: characters are never split, every control sequence but colour is removed."""
    skipped_bytes: int = 0
    """Left out before this event because the consumer was slow; the result's output has them."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A sign of life, at most once a second."""

    elapsed_s: float
    bytes: int
    lines: int
    last_line: str
    """The last line so far; empty while nothing was written, which may be due to buffering."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The command ended."""

    result: Result


Event = Started | Output | Progress | Finished
RawEvent = Started | Written | Progress | Finished
