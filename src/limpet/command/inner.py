"""What one command runs besides itself."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from limpet.command import options
from limpet.command.model import Word


class Inner(NamedTuple):
    """One thing that a command runs: words as they are, or a script."""

    words: list[Word] | None = None
    script: str = ""
    origin: Word = Word("", 0, 0)
    """Where the script stands."""
    arguments: list[str] | None = None
    """The script's `$0`, `$1`, `$2` …, if it has its own."""
    reads_input: bool = True
    """True if it reads what its caller is fed."""
    is_same_shell: bool = False
    """True if what it assigns holds afterwards: eval, source."""


def as_words(words: list[Word]) -> list[Inner]:
    """Return words that are run as they are."""
    return [Inner(words)] if words else []


def as_script(words: list[Word], *, reads_input: bool = True) -> list[Inner]:
    """Return words that are joined by blanks and read by a shell."""
    if not words:
        return []
    origin = Word("", words[0].start, words[-1].end)
    script = " ".join(word.value for word in words)
    return [Inner(script=script, origin=origin, reads_input=reads_input)]


def after_options(words: list[Word], short: str, long: Collection[str]) -> list[Word]:
    """Return what follows a wrapper's own options."""
    return options.read(words, short, long, is_permuted=False).operands
