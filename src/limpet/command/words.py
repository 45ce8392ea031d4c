"""A word's literal value, as far as it can be known without running anything.

What cannot be written as text is marked by control characters, which no command line has: a rule
compares values as it would compare plain strings, and unknown parts match nothing by accident.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import islice

from limpet.command.braces import MOST_CHOICES, Braces, find_braces
from limpet.command.source import closing_bracket

UNKNOWN = "\x01"
"""Any text, also none."""
HOME = "\x02"
"""The user's home directory."""
HERE = "\x03"
"""The working directory."""
STAR = "\x04"
"""An unquoted `*`, which is a pattern; a quoted one is the character."""
ANY = "\x05"
"""An unquoted `?` or `[…]`."""
_SPLIT = "\x06"
"""Where an unquoted expansion falls apart into words."""
DOWNLOADED = "\x0e"
"""Text that came from the network."""
DECODED = "\x0f"
"""Text that was encoded."""
REMOTE = "\x10"
"""What the other end of a bare connection says."""
MARKS = UNKNOWN + HOME + HERE + STAR + ANY + _SPLIT + DOWNLOADED + DECODED + REMOTE
TAINTS = DOWNLOADED + DECODED + REMOTE

MOST_WORDS = 20_000
"""How many words of one command are looked at."""
_NO_MARKS = {ord(mark): "?" for mark in MARKS}

_PLAIN = re.compile(r"[A-Za-z0-9_./:=,@%+-]+\Z")
_SIMPLE = re.compile(r"""'([^']*)'\Z|"([^"$`\\]*)"\Z""")
_QUOTE = re.compile(r"['\"]")
_SPECIAL = re.compile(r"""\\|'|"|\$|`|[*?[]|[<>]\(""")
_IN_QUOTES = re.compile(r'\\|"|\$|`')
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_EXPANSION = re.compile(r"\$\{(!?)(#?)([A-Za-z_]\w*|[0-9@*#?$!-])(\[[^]]*\])?")

# Possessive (`++`): what was taken is never given back, so the time is linear.
_LITERAL = r"""(?:[A-Za-z0-9_./:=,@%+\x80-\xff-]++|'[^']*+'|"[^"$`\\]*+")++"""
_LITERAL_WORD = re.compile(_LITERAL)
_LITERAL_WORDS = re.compile(rf"({_LITERAL})(?:[ \t]++{_LITERAL})*+\Z")
_QUOTED = re.compile(r"""'([^']*)'|"([^"]*)\"""")

Lookup = Callable[[str], str]
"""The value of a variable."""
RunText = Callable[[str, int], str]
"""Reads a script that begins at a place of the text, and returns what it prints."""
Substitutions = dict[int, tuple[int, str]]
"""By the offset where it begins: where a `$(…)`, `` `…` `` or `<(…)` ends, and what it prints."""


def as_source(text: str) -> str:
    """Return text in which each character is one byte of its UTF-8, and no mark is."""
    if not text.isascii():
        text = text.encode("utf-8", "surrogatepass").decode("latin-1")
    return text.translate(_NO_MARKS | {0: "?"}) if _HAS_MARK.search(text) else text


_HAS_MARK = re.compile(f"[{MARKS}\0]")


def shown(text: str) -> str:
    """Return source text as it was written."""
    return text.encode("latin-1").decode("utf-8", "replace")


def is_connection(path: str) -> bool:
    """Tell whether bash opens a connection where a redirect names this."""
    return path.startswith(("/dev/tcp/", "/dev/udp/"))


def first_literal(text: str, start: int, end: int) -> str | None:
    """Return the first word's value if text has nothing but plain and quoted words, else None."""
    found = _LITERAL_WORDS.match(text, start, end)
    return None if found is None else _unquoted(found[1])


def literal_words(text: str, start: int, end: int) -> list[tuple[str, int, int]]:
    """Return the words of such a text, with their places."""
    found = islice(_LITERAL_WORD.finditer(text, start, end), MOST_WORDS)
    return [(_unquoted(word[0]), *word.span()) for word in found]


def _unquoted(word: str) -> str:
    if "'" in word or '"' in word:
        return _QUOTED.sub(lambda found: found[1] or found[2] or "", word)
    return word


def join(values: Iterable[str]) -> str:
    """Return one value that falls apart into several words wherever it is expanded: an array."""
    return _SPLIT.join(values)


def expand(
    text: str,
    start: int,
    end: int,
    lookup: Lookup,
    substitutions: Substitutions | None = None,
    run: RunText | None = None,
) -> list[str]:
    """Return the values of a word: none, one, or several where it falls apart."""
    if _PLAIN.match(text, start, end):
        return [text[start:end]]
    if (simple := _SIMPLE.match(text, start, end)) is not None:
        return [simple[1] or simple[2] or ""]
    if substitutions is None and text.find("{", start, end) >= 0:
        braces = find_braces(text, start, end)
        if braces is not None:
            return _expand_braces(text, start, end, lookup, braces)
    value = _Word(text, lookup, substitutions or {}, run).read(start, end)
    if not value:
        return [""] if _QUOTE.search(text, start, end) else []  # an empty expansion vanishes
    if _SPLIT not in value:
        return [value]
    return [piece for piece in value.split(_SPLIT) if piece]


def expand_body(text: str, start: int, end: int, lookup: Lookup, run: RunText) -> str:
    """Return the value of a here-document's body, in which `"` is a character."""
    return _Word(text, lookup, {}, run).read_body(start, end).replace(_SPLIT, " ")


def _expand_braces(text: str, start: int, end: int, lookup: Lookup, braces: Braces) -> list[str]:
    before, after = text[start : braces.start], text[braces.end : end]
    values: list[str] = []
    for choice in braces.choices[:MOST_CHOICES]:
        word = before + choice + after
        values += expand(word, 0, len(word), lookup) if word else []
        if len(values) > MOST_CHOICES:
            break
    return values


class _Word:
    """Reads one word: quotes, escapes, variables, tildes and patterns."""

    def __init__(
        self, text: str, lookup: Lookup, substitutions: Substitutions, run: RunText | None
    ) -> None:
        self._text = text
        self._lookup = lookup
        self._substitutions = substitutions
        self._run = run
        self._pieces: list[str] = []

    def read(self, start: int, end: int) -> str:
        text, place = self._text, start
        if text[start : start + 1] == "~":
            place = self._tilde(start, end)
        while place < end:
            found = _SPECIAL.search(text, place, end)
            if found is None:
                self._add(text[place:end])
                break
            if found.start() > place:
                self._add(text[place : found.start()])
            place = self._special(found[0], found.start(), end)
        return "".join(self._pieces)

    def read_body(self, start: int, end: int) -> str:
        self._quoted(start, end, closer="")
        return "".join(self._pieces)

    def _add(self, value: str) -> None:
        self._pieces.append(value)

    def _tilde(self, start: int, end: int) -> int:
        name = re.compile(r"~([\w.+-]*)").match(self._text, start, end)
        if name is None or self._text[name.end() : min(end, name.end() + 1)] not in ("", "/"):
            return start
        match name[1]:
            case "":
                self._add(HOME)
            case "+":
                self._add(HERE)
            case "-":
                self._add(UNKNOWN)
            case "root":
                self._add("/root")
            case user:
                self._add("/home/" + user)
        return name.end()

    def _special(self, token: str, place: int, end: int) -> int:
        text = self._text
        match token:
            case "\\":
                if text[place + 1 : place + 2] != "\n":
                    self._add(text[place + 1 : place + 2])
                return place + 2
            case "'":
                close = text.find("'", place + 1, end)
                close = end if close < 0 else close
                self._add(text[place + 1 : close])
                return close + 1
            case '"':
                return self._quoted(place + 1, end, closer='"')
            case "$":
                return self._dollar(place, end, in_quotes=False)
            case "*":
                self._add(STAR)
            case "?":
                self._add(ANY)
            case "[":
                close = text.find("]", place + 2, end)
                if close < 0:
                    self._add("[")
                    return place + 1
                negated = text[place + 1] in "!^"
                self._add(ANY if negated else text[place : close + 1])
                return close + 1
            case _:
                return self._substitution(place, end, in_quotes=False)
        return place + 1

    def _quoted(self, place: int, end: int, closer: str) -> int:
        """Read to the closing quote, or the whole of a body that needs none."""
        text = self._text
        while place < end:
            found = _IN_QUOTES.search(text, place, end)
            if found is None:
                break
            self._add(text[place : found.start()])
            place = found.start()
            match found[0]:
                case '"' if closer:
                    return place + 1
                case '"':
                    self._add('"')
                    place += 1
                case "\\":
                    place = self._escape_in_quotes(place)
                case "$":
                    place = self._dollar(place, end, in_quotes=True)
                case _:
                    place = self._substitution(place, end, in_quotes=True)
        self._add(text[place:end])
        return end

    def _escape_in_quotes(self, place: int) -> int:
        following = self._text[place + 1 : place + 2]
        if following in ('"', "\\", "$", "`"):
            self._add(following)
        elif following != "\n":
            self._add("\\" + following)
        return place + 2

    def _dollar(self, place: int, end: int, *, in_quotes: bool) -> int:
        text = self._text
        following = text[place + 1 : place + 2] if place + 1 < end else ""
        if following == "(" or place in self._substitutions:
            return self._substitution(place, end, in_quotes=in_quotes)
        if following == "'" and not in_quotes:
            return self._ansi(place + 2, end)
        if following == '"' and not in_quotes:
            return place + 1
        if following == "{":
            return self._braced(place, end, in_quotes=in_quotes)
        name = _NAME.match(text, place + 1, end)
        if name is None:
            self._add("$")
            return place + 1
        self._add_variable(self._lookup(name[0]), in_quotes=in_quotes)
        return name.end()

    def _add_variable(self, value: str, *, in_quotes: bool) -> None:
        self._add(value if in_quotes else _as_pattern(value))

    def _substitution(self, place: int, end: int, *, in_quotes: bool) -> int:
        close, printed = self._substitutions.get(place, (0, UNKNOWN))
        if not close:  # the tree does not show it
            start = place + (1 if self._text[place] == "`" else 2)
            bracket = closing_bracket(self._text, start, end)
            close = bracket + 1
            if self._text.startswith("$((", place):
                _Word(self._text, self._lookup, {}, self._run).read_body(start + 1, bracket)
            elif self._run is not None:
                printed = self._run(self._text[start:bracket], start)
        self._add_variable(printed.rstrip("\n"), in_quotes=in_quotes)
        return close

    def _ansi(self, place: int, end: int) -> int:
        close = place
        while close < end and self._text[close] != "'":
            close += 2 if self._text[close] == "\\" else 1
        self._add(unescape(self._text[place : min(close, end)]))
        return close + 1

    def _braced(self, place: int, end: int, *, in_quotes: bool) -> int:
        close = self._closing_brace(place, end)
        found = _EXPANSION.match(self._text, place, close)
        value = UNKNOWN
        if found is not None and not found[1] and not found[2]:
            value = self._modified(self._lookup(found[3]), found.end(), close)
        self._add_variable(value, in_quotes=in_quotes)
        return close + 1

    def _modified(self, value: str, place: int, close: int) -> str:
        """Return what `${name<modifier>}` gives for the value of name."""
        modifier = self._text[place:close]
        if not modifier or modifier.startswith((":?", "?")):
            return value
        operator = modifier[:2] if modifier[0] == ":" else modifier[0]
        if operator in (":-", "-", ":=", "=", ":+", "+"):
            default = _Word(self._text, self._lookup, self._substitutions, self._run)
            other = default.read(place + len(operator), close)
            is_set = bool(value) and value != UNKNOWN
            return other if is_set == ("+" in operator) else value
        if modifier in ("%/", "%%/", "@Q"):
            return value.removesuffix("/")
        return UNKNOWN

    def _closing_brace(self, place: int, end: int) -> int:
        depth, place = 0, place + 1
        while place < end:
            if place in self._substitutions:
                place = self._substitutions[place][0]
                continue
            match self._text[place]:
                case "{":
                    depth += 1
                case "}":
                    depth -= 1
                    if not depth:
                        return place
                case "\\":
                    place += 1
            place += 1
        return end


def _as_pattern(value: str) -> str:
    """Return the value of an unquoted expansion: it is split at blanks, and is a pattern."""
    return re.sub(r"\s+", _SPLIT, value).replace("*", STAR).replace("?", ANY)


_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|0?([0-7]{1,3})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|c?(.))", re.S
)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "", "b": "", "e": "", "E": "", "f": " ", "v": " "}


def unescape(text: str) -> str:
    """Return text with its backslash escapes (of `$'…'`, `echo -e`, `printf`) replaced."""

    def replace(found: re.Match[str]) -> str:
        code = found[1] or found[3] or found[4]
        if code or found[2]:
            number = int(code, 16) if code else int(found[2], 8)
            character = chr(number) if number < 256 else "?"
            return character.translate(_NO_MARKS)
        return _LETTERS.get(found[5], found[5] if found[5] in "\\'\"?" else "\\" + found[5])

    return _ESCAPE.sub(replace, text) if "\\" in text else text
