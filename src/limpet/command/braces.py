"""Brace expansion: `{a,b}` and `{1..3}` in a word, before anything else in it is expanded."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

MOST_CHOICES = 64
_SEQUENCE = re.compile(r"(-?\d{1,6}|[a-zA-Z])\.\.(-?\d{1,6}|[a-zA-Z])\Z")
_BRACE_SIGN = re.compile(r"\\.|'[^']*+'|\"(?:[^\"\\]|\\.)*+\"|\$\{[^}]*+\}|[{},]", re.S)
_MOST_BRACES = 16


class Braces(NamedTuple):
    """`{a,b}` or `{1..3}` in a word."""

    start: int
    end: int
    choices: list[str]


def find_braces(text: str, start: int, end: int) -> Braces | None:
    """Return the first braces of a word that are to be expanded."""
    opened: list[list[int]] = []
    """The place of each `{`, and of the commas in it."""
    for found in _BRACE_SIGN.finditer(text, start, end):
        match found[0]:
            case "{" if len(opened) < _MOST_BRACES:
                opened.append([found.start()])
            case "," if opened:
                opened[-1].append(found.start())
            case "}" if opened:
                places = [*opened.pop(), found.start()]
                inside = text[places[0] + 1 : places[-1]]
                sequence = _SEQUENCE.match(inside)
                if sequence is not None:
                    return Braces(places[0], found.end(), _sequence(sequence[1], sequence[2]))
                if len(places) > 2 and not opened:
                    choices = [text[one + 1 : next_] for one, next_ in pairwise(places)]
                    return Braces(places[0], found.end(), choices)
    return None


def _sequence(first: str, last: str) -> list[str]:
    numbers = not (first.isalpha() or last.isalpha())
    low, high = (int(first), int(last)) if numbers else (ord(first[0]), ord(last[0]))
    step = 1 if low <= high else -1
    places = range(low, high + step, step)[:MOST_CHOICES]
    return [str(place) if numbers else chr(place) for place in places]
