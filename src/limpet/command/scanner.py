"""Follows quotes and brackets through a text, and nothing else of the grammar."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple


class Heredoc(NamedTuple):
    """One here-document: where its operator is, and what it feeds to its command."""

    start: int
    """Of the operator."""
    body_start: int
    body_end: int
    is_literal: bool
    """True if its delimiter is quoted: nothing in it is expanded."""
    strips_tabs: bool


class Masked(NamedTuple):
    """Text for the parser, and what was taken out of it."""

    text: str
    heredocs: dict[int, Heredoc]
    """By the offset of the operator."""
    is_too_deep: bool
    """True if it nests, or pipes, beyond what the parser takes in reasonable time."""


_SIGN = re.compile(
    r"""\\.|'|\$'|"|`|\$\(\(|\$\(|\$\{|\(\(|\)\)|[(){}]|<<<|<<-?|<>|[<>]&|&>|>\||\#|\n|\|\||\|&|&&|[|&;]
    |!(?=\s)|\b(?:case|esac|time|coproc)\b""",
    re.X | re.S,
)
_BRACKET = re.compile(r"""\\.|'[^']*+'|"(?:[^"\\]|\\.)*+"|[()]""", re.S)
_ARITHMETIC_REACH = 1000
"""How far the end of `((` is looked for."""
MOST_STAGES = 64
DEEPEST = 30
MOST_ERRORS = 50
"""tree-sitter's time and memory grow with the square of stages and depth, and with errors."""
_DELIMITER = re.compile(r"""[ \t]*((?:[^\s'"\\;&|<>()`$]|\\.|'[^']*'|"[^"]*"|\$(?!\())+)""", re.S)
_BEFORE_BLOCK = re.compile(
    r"""(?:!|time(?:\s+-p)?(?:\s+--)?|coproc(?:\s+\w+)?)
    (?=\s*(?:\(|\{\s|(?:if|for|while|until|case|select|function|time|!)\s|\[\[|[^\s()'"]+\s*\(\s*\)))""",
    re.X,
)
_BRACE_WORD = re.compile(r"\{[^\s{}]*,[^\s{}]*\}")
_QUOTE_END = re.compile(r"[^']*+'")
_ANSI_QUOTE_END = re.compile(r"(?:[^'\\]|\\.)*+'", re.S)
_WORD_START = frozenset(" \t\n;&|()`")


class _Context:
    """One level of nesting: what closes it, and what its text is."""

    __slots__ = ("cases", "closer", "comment", "kind", "opened_at", "pipes", "stages")

    def __init__(self, kind: str, closer: str, opened_at: int) -> None:
        self.kind = kind
        """`command`, `quoted` (double), `variable` or `arithmetic`."""
        self.closer = closer
        self.opened_at = opened_at
        self.cases = 0
        self.stages = 0
        """Of the pipeline so far."""
        self.pipes = 0
        """Of the line so far."""
        self.comment: int | None = None
        """Where the line's comment begins."""


class Scanner:
    """Finds here-documents, by following quotes and brackets and nothing else of the grammar."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._stack = [_Context("command", "", 0)]
        self._pending: list[tuple[int, str, bool, bool]] = []
        self._heredocs: dict[int, Heredoc] = {}
        self._edits: list[tuple[int, int, str]] = []
        self._separators: list[tuple[int, int]] = []
        self._blanked: set[int] = set()
        """Closing brackets that are no longer there."""
        self._unopened_brackets = 0
        self._is_too_deep = False

    def scan(self) -> Masked:
        """Return the text with what the tree misreads masked."""
        text, place = self._text, 0
        while found := _SIGN.search(text, place):
            place = self._step(found[0], found.start(), found.end())
            self._is_too_deep |= len(self._stack) > DEEPEST
            self._is_too_deep |= self._stack[-1].stages > MOST_STAGES
            if self._is_too_deep:
                break
        return Masked(self._edited(), self._heredocs, self._is_too_deep)

    def split(self) -> list[tuple[int, int]]:
        """Return the parts between operators that stand in no bracket."""
        self.scan()
        ends = [*(start for start, _ in self._separators), len(self._text)]
        starts = [0, *(end for _, end in self._separators)]
        return [(start, end) for start, end in zip(starts, ends, strict=True) if start < end]

    def _edited(self) -> str:
        pieces, at, text = [], 0, self._text
        for start, end, replacement in sorted(self._edits):
            pieces += [text[at:start], replacement]
            at = end
        return "".join((*pieces, text[at:]))

    def closing(self, place: int, closer: str) -> int:
        """Return where a bracket that was opened before a place is closed, or the end."""
        text, self._stack = self._text, [_Context("command", closer, place)]
        while found := _SIGN.search(text, place):
            place = self._step(found[0], found.start(), found.end())
            if not self._stack:
                return place - 1
        return len(text)

    def _step(self, sign: str, start: int, end: int) -> int:
        """Take one sign and return where to go on."""
        context = self._stack[-1]
        if sign[0] == "\\":
            return self._escape(context, start, end)
        if start in self._blanked:
            return start + 1
        if sign == "))" and context.closer == ")":
            sign, end = ")", start + 1
        if sign == context.closer and not (sign == ")" and context.cases):
            return self._close(context, start, end)
        if sign == "${":
            return self._variable(start, end)
        if sign in ("$(", "`", "$(("):
            return self._open_substitution(context, sign, start)
        if context.kind == "command":
            take = _SIGNS.get(sign)
            return end if take is None else take(self, sign, start, end)
        return self._outside_commands(context, sign, start, end)

    def _outside_commands(self, context: _Context, sign: str, start: int, end: int) -> int:
        if context.kind == "arithmetic" and sign in ("(", "(("):
            return self._open("arithmetic", ")", start, start + 1)
        if context.kind == "variable" and sign in ("'", "$'") and not self._is_in_quotes():
            return self._after_quote(sign, start, end)
        if context.kind == "variable" and sign == '"':
            return self._open("quoted", '"', start, end)
        return end

    def _escape(self, context: _Context, start: int, end: int) -> int:
        """A backslash at the beginning of a line: the tree goes on with the line before."""
        before = self._text[max(0, start - 64) : start].rstrip(" \t")
        begins_line = before[-1:] == "\n" and before[-2:] != "\\\n"
        if context.kind == "command" and begins_line and self._text[end - 1].isalnum():
            self._edits.append((start, start + 1, "_"))
        return end

    def _open(self, kind: str, closer: str, start: int, place: int) -> int:
        self._stack.append(_Context(kind, closer, start))
        return place

    def _open_substitution(self, context: _Context, sign: str, start: int) -> int:
        if sign == "`":
            return self._open("command", "`", start, start + 1)
        if sign == "$((" and context.kind != "arithmetic" and self._is_arithmetic(start + 2):
            return self._open("arithmetic", "))", start, start + 3)
        return self._open("command", ")", start, start + (3 if sign == "$((" else 2))

    def _is_arithmetic(self, place: int) -> bool:
        """Tell whether the inner of two brackets is closed by two; else blank the inner pair."""
        close = self._matching(place + 1)
        if close is None or self._text.startswith("))", close):
            return True
        self._edits += [(place, place + 1, " "), (close, close + 1, " ")]
        self._blanked.add(close)
        return False

    def _matching(self, place: int) -> int | None:
        """Return where a bracket that was opened before a place is closed, if that is near."""
        depth = 1
        for found in _BRACKET.finditer(self._text, place, place + _ARITHMETIC_REACH):
            depth += {"(": 1, ")": -1}.get(found[0], 0)
            if not depth:
                return found.start()
        return None

    # Signs in the text of commands; each returns where to go on.

    def _double_quote(self, _sign: str, start: int, end: int) -> int:
        return self._open("quoted", '"', start, end)

    def _comment(self, _sign: str, start: int, end: int) -> int:
        if start and self._text[start - 1] not in _WORD_START:
            return end
        newline = self._text.find("\n", end)
        self._stack[-1].comment = start
        return len(self._text) if newline < 0 else newline

    def _bracket(self, sign: str, start: int, end: int) -> int:
        if sign == "((" and self._begins_command(start):
            if self._is_arithmetic(start + 1):
                return self._open("arithmetic", "))", start, end)
            return self._open("command", ")", start, end)
        return self._open("command", ")", start, start + 1)

    def _unopened(self, _sign: str, _start: int, end: int) -> int:
        if not self._stack[-1].cases:
            self._unopened_brackets += 1
            self._is_too_deep |= self._unopened_brackets > MOST_ERRORS
        return end

    def _case(self, sign: str, start: int, end: int) -> int:
        """In `case … esac` a lone `)` ends a pattern."""
        context = self._stack[-1]
        if sign == "esac":
            context.cases = max(0, context.cases - 1)
        elif self._begins_command(start):
            context.cases += 1
        return end

    def _separator(self, sign: str, start: int, end: int) -> int:
        context = self._stack[-1]
        is_pipe = sign in ("|", "|&")
        context.stages = context.stages + 1 if is_pipe else 0
        context.pipes += is_pipe
        if sign == "\n":
            self._end_line(context, start)
        if len(self._stack) == 1:
            self._separators.append((start, end))
        return self._bodies(end) if sign == "\n" and self._pending else end

    def _end_line(self, context: _Context, newline: int) -> None:
        """End a line of pipes by `;`: the tree may take the next line for a part of it."""
        comment, context.comment = context.comment, None
        pipes, context.pipes = context.pipes, 0
        end = newline if comment is None else comment
        before = self._text[max(0, end - 64) : end].rstrip()
        after = self._text[newline + 1 : newline + 65].lstrip()
        if (
            pipes < 2
            or before[-1:] in ("", "|", "&", ";", "(", "{", "\\")
            or after[:1] in (";", "&")
        ):
            return
        if comment is not None:
            self._edits.append((comment, newline, " " * (newline - comment)))
        self._edits.append((newline, newline + 1, ";"))

    def _duplicate(self, _sign: str, _start: int, end: int) -> int:
        """`>&-`: the tree takes the next word for its target."""
        if self._text.startswith("-", end):
            self._edits.append((end, end + 1, "1"))
        return end

    def _read_write(self, _sign: str, start: int, end: int) -> int:
        self._edits.append((start, end, "< "))
        return end

    def _keyword(self, _sign: str, start: int, end: int) -> int:
        """`time { …; }`, `coproc NAME ( … )`: blank what the tree would take for a command."""
        found = _BEFORE_BLOCK.match(self._text, start)
        if found is None or not self._begins_command(start):
            return end
        self._edits.append((start, found.end(), " " * (found.end() - start)))
        return found.end()

    def _brace(self, _sign: str, start: int, end: int) -> int:
        """`{rm,-rf,/}` in the place of a command: make it a word, not a group."""
        found = _BRACE_WORD.match(self._text, start)
        if found is not None and self._begins_command(start):
            self._edits += [(start, start + 1, "_"), (found.end() - 1, found.end(), "_")]
        return end

    def _close(self, context: _Context, start: int, end: int) -> int:
        self._stack.pop()
        if context.closer == "}" and context.kind == "command":
            self._edits += [(context.opened_at + 1, context.opened_at + 2, "("), (start, end, ")")]
        return end

    def _variable(self, start: int, end: int) -> int:
        """`${name…}`, or from bash 5.3 on a list of commands: `${ list; }` and `${| list; }`."""
        if self._text.startswith("{", end):  # of a template, such as ${{ matrix.os }}
            close = self._text.find("}}", end)
            if close >= 0:
                self._edits.append((start + 1, close + 2, "_" * (close + 1 - start)))
                return close + 2
        is_list = self._text[end : end + 1] in (" ", "\t", "\n", "|")
        self._stack.append(_Context("command" if is_list else "variable", "}", start))
        if self._text[end : end + 1] == "|":
            self._edits.append((end, end + 1, " "))
            return end + 1
        return end

    def _is_in_quotes(self) -> bool:
        for context in reversed(self._stack):
            if context.kind != "variable":
                return context.kind == "quoted"
        return False

    def _after_quote(self, sign: str, _start: int, end: int) -> int:
        closing = _QUOTE_END if sign == "'" else _ANSI_QUOTE_END
        found = closing.match(self._text, end)
        return len(self._text) if found is None else found.end()

    def _begins_command(self, start: int) -> bool:
        before = self._text[max(0, start - 64) : start].rstrip(" \t")
        return not before or before[-1] in "\n;&|({!" or bool(_OPENS.search(before))

    def _operator(self, sign: str, start: int, end: int) -> int:
        found = _DELIMITER.match(self._text, end)
        if found is None:
            return end
        raw = found[1]
        delimiter = re.sub(r"\\(.)|['\"]", lambda m: m[1] or "", raw, flags=re.S)
        self._pending.append((start, delimiter, raw != delimiter, sign == "<<-"))
        self._edits.append((start, found.end(), "<" + "_" * (found.end() - start - 1)))
        return found.end()

    def _bodies(self, place: int) -> int:
        """Take the bodies of all operators of the line that ended; return where the last ends."""
        text = self._text
        in_brackets = self._stack[-1].closer in (")", "`")
        for start, delimiter, is_literal, strips_tabs in self._pending:
            body_end, end = _find_end(text, place, delimiter, strips_tabs, in_brackets)
            self._heredocs[start] = Heredoc(start, place, body_end, is_literal, strips_tabs)
            blanks = " " * (end - place)
            if text[end - 1 : end] == "\n" and blanks:
                blanks = blanks[:-1] + "\n"
            self._edits.append((place, end, blanks))
            place = end
        self._pending.clear()
        return place


def _find_end(
    text: str, place: int, delimiter: str, strips_tabs: bool, in_brackets: bool
) -> tuple[int, int]:
    """Return where a body ends, and where the line with the delimiter does."""
    line = place
    while line < len(text):
        begin = line
        while strips_tabs and text.startswith("\t", begin):
            begin += 1
        end = begin + len(delimiter)
        newline = text.find("\n", line)
        if text.startswith(delimiter, begin):
            if newline in (end, -1) and end in (newline, len(text)):
                return line, min(end + 1, len(text))
            if in_brackets and text[end : end + 1] in (")", "`"):  # the end, with a warning
                return line, end
        if newline < 0:
            break
        line = newline + 1
    return len(text), len(text)


_SIGNS: dict[str, Callable[[Scanner, str, int, int], int]] = {
    "'": Scanner._after_quote,
    "$'": Scanner._after_quote,
    '"': Scanner._double_quote,
    "#": Scanner._comment,
    "(": Scanner._bracket,
    "((": Scanner._bracket,
    "case": Scanner._case,
    "esac": Scanner._case,
    "!": Scanner._keyword,
    "time": Scanner._keyword,
    "coproc": Scanner._keyword,
    "{": Scanner._brace,
    "<<": Scanner._operator,
    "<<-": Scanner._operator,
    "<>": Scanner._read_write,
    "<&": Scanner._duplicate,
    ">&": Scanner._duplicate,
    ")": Scanner._unopened,
    **dict.fromkeys(["&&", "||", ";", "&", "|", "|&", "\n"], Scanner._separator),
}
_OPENS = re.compile(r"(?:^|[\s;&|(])(?:then|do|else|elif|if|while|until|in|time|coproc|\{)$")
