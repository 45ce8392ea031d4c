"""Programs that run another once for each of many: xargs, parallel, find."""

from __future__ import annotations

from collections.abc import Iterable

from limpet.command import options
from limpet.command.inner import Inner, as_words
from limpet.command.model import Command, Word
from limpet.command.printed import read_find
from limpet.command.words import UNKNOWN

_MOST_VALUES = 16
"""How many of the many are tried."""
_MOST_WORDS = 500


def xargs(command: Command) -> list[Inner]:
    """`xargs words`, with what it reads added or put in their place."""
    given = options.read(
        command.arguments,
        "aEILnPsd",
        ("arg-file", "delimiter", "max-lines", "max-args", "max-procs", "max-chars", "replace"),
        is_permuted=False,
    )
    words = given.operands
    if not words:
        return []
    values = [UNKNOWN] if command.feed is None else command.feed.replace("\0", "\n").split()
    origin = Word("", command.start, command.end)
    mark = given.value("I") or ("{}" if given.has("i", "replace") else None)
    if mark is None:
        return as_words(words + [origin._replace(value=value) for value in values])
    lines = [line for line in (command.feed or UNKNOWN).splitlines() if line]
    return [
        Inner([word._replace(value=word.value.replace(mark, line)) for word in words])
        for line in lines[:_MOST_VALUES]
    ]


def parallel(command: Command) -> list[Inner]:
    """`parallel words ::: values`: joined, then read by a shell."""
    words, sources = _split_at(command.arguments, (":::", ":::+", "::::"))
    given = options.read(
        words,
        "jnNSaIPdLX",
        (
            "jobs",
            "arg-file",
            "delay",
            "joblog",
            "results",
            "retries",
            "timeout",
            "workdir",
            "max-args",
        ),
        is_permuted=False,
    )
    values = [word.value for source in sources for word in source]
    if not sources:
        values = (command.feed or UNKNOWN).splitlines()
    template = " ".join(word.value for word in given.operands)
    scripts = []
    for value in values[:_MOST_VALUES] or [""]:
        replaced = template.replace("{}", value)
        scripts.append(replaced if replaced != template or not value else f"{template} {value}")
    origin = Word("", command.start, command.end)
    return [Inner(script=script.strip(), origin=origin, reads_input=False) for script in scripts]


def _split_at(words: list[Word], marks: Iterable[str]) -> tuple[list[Word], list[list[Word]]]:
    first: list[Word] = []
    parts = [first]
    for word in words:
        if word.value in marks:
            parts.append([])
        else:
            parts[-1].append(word)
    return first, parts[1:]


def find(command: Command) -> list[Inner]:
    """`find … -exec words ;`, on what is found."""
    search = read_find(command)
    narrowed = search.tests - {"-exec", "-execdir", "-ok", "-okdir", "-mindepth", "-maxdepth"}
    roots = search.roots[:_MOST_VALUES]
    if narrowed:
        roots = [f"{root}/{UNKNOWN}" for root in roots]
    found: list[Inner] = []
    words = iter(command.arguments)
    for word in words:
        if word.value not in ("-exec", "-execdir", "-ok", "-okdir"):
            continue
        inner: list[Word] = []
        for following in words:
            if following.value in (";", "+"):
                break
            if "{}" in following.value and len(inner) < _MOST_WORDS:
                value = following.value
                inner += [following._replace(value=value.replace("{}", root)) for root in roots]
            else:
                inner.append(following)
        found += as_words(inner)
    return found
