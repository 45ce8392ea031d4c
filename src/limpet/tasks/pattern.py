"""Regular expressions over lines of output: given by a model, so bounded in time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

_SEARCH_S = 1.0
"""How long one search may take; what takes longer would take forever."""
_LOOKS_AROUND = re.compile(r"\(\?|\\[AZzbB]")
"""What may match in a line by itself, and not where other lines follow: then each is looked at."""


class Pattern:
    """A regular expression that a line matches, or does not."""

    def __init__(self, given: str | re.Pattern[str]) -> None:
        """Take an expression, or one of the program's own, which is trusted.

        Raises:
            TypeError: It is neither.
            ValueError: It is not a regular expression.
        """
        self._own: re.Pattern[str] | None = None
        self._compiled: regex.Pattern[str] | None = None
        self._quick: regex.Pattern[str] | None = None
        if isinstance(given, re.Pattern):
            if not isinstance(given.pattern, str):
                raise TypeError(f"a pattern of text is needed, not of bytes: {given.pattern!r}")
            self._own = given
            return
        if not isinstance(given, str):
            raise TypeError(f"a regular expression is text, not {type(given).__name__}")
        import regex  # slow to import, for those who search

        try:
            self._compiled = regex.compile(given)
            if not _LOOKS_AROUND.search(given):
                self._quick = regex.compile(given, regex.MULTILINE)
        except regex.error as error:
            raise ValueError(f"not a regular expression: {given!r}: {error}") from None

    def matches(self, line: str) -> bool:
        """True if a line matches.

        Raises:
            ValueError: It takes too long to tell.
        """
        if self._own is not None:
            return self._own.search(line) is not None
        return self._search(self._compiled, line)

    def may_match(self, lines: str) -> bool:
        """False if it is certain that none of several lines matches."""
        return self._quick is None or self._search(self._quick, lines)

    @staticmethod
    def _search(compiled: regex.Pattern[str] | None, text: str) -> bool:
        assert compiled is not None  # noqa: S101 -- for the type checker
        try:
            return compiled.search(text, timeout=_SEARCH_S) is not None
        except TimeoutError:
            raise ValueError(
                f"the expression {compiled.pattern!r} takes too long: make it simpler"
            ) from None
