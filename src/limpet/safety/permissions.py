"""Patterns over simple commands: what may run, what may not, and what a person is asked about.

A pattern is a command with `*` for words that may be anything: `git commit *`, `npm run test:*`.
One match anywhere denies or asks. To allow, every command of the line must be covered, also those
inside wrappers and substitutions, and none may write to a file, or set a variable that changes what
programs do, unless the pattern says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate
from typing import NamedTuple

from limpet.command.model import Command
from limpet.command.scripts import SHELLS, read_shell
from limpet.command.words import UNKNOWN, as_source

_HARMLESS = frozenset(
    """cd pushd popd pwd true false : test [ [[ echo printf exit return break continue shift
    wait sleep read local declare typeset readonly set unset } fi done esac""".split()
)
"""What changes nothing by itself; what it writes to, or runs inside, is looked at apart."""
_TRANSPARENT = frozenset(
    """time nice ionice nohup timeout stdbuf setsid command builtin exec eval xargs coproc trap
    do then else elif if while { !""".split()
)
"""Wrappers that add nothing to what they run, which is looked at apart."""
_HARMLESS_TARGETS = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty")
_SYSTEM_DIRECTORIES = frozenset(
    """/bin /sbin /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin /opt/homebrew/bin""".split()
)
_MOST_OPTIONS = 8
_RISKY_VARIABLE = re.compile(
    r"(?:PATH|IFS|ENV|BASH_ENV|SHELL|HOME|CDPATH|EDITOR|VISUAL|PAGER|BROWSER|PROMPT_COMMAND"
    r"|LD_\w+|DYLD_\w+|GIT_\w+|PYTHON\w+|PERL\w+|RUBY\w+|NODE_\w+|JAVA_\w+|_JAVA_OPTIONS|MAKEFLAGS"
    r"|\w*(?:PAGER|EDITOR|COMMAND|SHELL|OPTIONS|OPTS|ASKPASS|PRELOAD))\Z"
)


class Pattern(NamedTuple):
    """One permission pattern, ready to be matched."""

    text: str
    words: tuple[re.Pattern[str] | None, ...]
    """None is any number of words."""
    writes: bool
    """True if it speaks of writing to a file: `make * > *`."""

    def allows(self, command: Command) -> bool:
        """Tell whether a command's words are those of the pattern."""
        return _match(self.words, [_trusted_name(command), *_values(command)])

    def forbids(self, command: Command) -> bool:
        """Tell the same, also of a program elsewhere, and with options before a subcommand."""
        name, values = command.words[0].value.rpartition("/")[2], _values(command)
        if _match(self.words, [name, *values]):
            return True
        for place, value in enumerate(values[:_MOST_OPTIONS]):
            if not (value.startswith("-") or (place and values[place - 1].startswith("-"))):
                break
            if _match(self.words, [name, *values[place + 1 :]]):
                return True
        return False


def _values(command: Command) -> list[str]:
    return [word.value for word in command.arguments]


def _trusted_name(command: Command) -> str:
    """Return a program's name, with its directory unless that is one of the system's."""
    value = command.words[0].value
    directory, slash, name = value.rpartition("/")
    return name if not slash or directory in _SYSTEM_DIRECTORIES else value


def pattern(text: str) -> Pattern:
    """Return a pattern from its text.

    Raises:
        ValueError: It is empty.
    """
    words, _, target = as_source(text).partition(">")
    if not words.split():
        raise ValueError(f"a permission pattern names a command, {text!r} does not")
    compiled = tuple(None if w == "*" else re.compile(translate(w)) for w in words.split())
    return Pattern(text, compiled, bool(target))


def _match(pattern_words: tuple[re.Pattern[str] | None, ...], values: list[str]) -> bool:
    """Match words one by one; `None` takes as many as are needed."""
    place, at, star, resume = 0, 0, -1, 0
    while at < len(values):
        if place < len(pattern_words) and pattern_words[place] is None:
            star, resume, place = place, at, place + 1
        elif place < len(pattern_words) and _is_match(pattern_words[place], values[at]):
            place, at = place + 1, at + 1
        elif star >= 0:
            place, resume = star + 1, resume + 1
            at = resume
        else:
            return False
    return all(word is None for word in pattern_words[place:])


def _is_match(word: re.Pattern[str] | None, value: str) -> bool:
    return word is not None and word.match(value) is not None


def first_match(
    patterns: Iterable[Pattern], commands: list[Command]
) -> tuple[Pattern, Command] | None:
    """Return the first command that one of the patterns matches."""
    for one in patterns:
        for command in commands:
            if command.words and one.forbids(command):
                return one, command
    return None


def uncovered(patterns: tuple[Pattern, ...], commands: list[Command]) -> Command | None:
    """Return the first command that the patterns do not allow."""
    return next((one for one in commands if not _is_covered(patterns, one)), None)


def _is_covered(patterns: tuple[Pattern, ...], command: Command) -> bool:
    is_writing = any(
        redirect.writes and redirect.target.value not in _HARMLESS_TARGETS
        for redirect in command.redirects
    )
    if any(_RISKY_VARIABLE.match(assignment.name) for assignment in command.assignments):
        return False
    if not command.words:
        return not is_writing
    if not is_writing and _speaks_for_itself(command):
        return True
    return any(one.allows(command) and (one.writes or not is_writing) for one in patterns)


def _speaks_for_itself(command: Command) -> bool:
    """Tell whether a command needs no pattern: it changes nothing, or what it runs is seen."""
    if command.calls_function:
        return True
    name = command.words[0].value
    if name in _HARMLESS:
        return not any(_is_risky_argument(value) for value in _values(command))
    if name in _TRANSPARENT:
        return len(command.words) > 1
    if command.name not in SHELLS or _trusted_name(command) != command.name:
        return False
    # A shell is covered if its script could be read: its commands are then looked at apart.
    call = read_shell(command)
    options_given = command.words[1 : command.words.index(call.script)] if call.script else []
    is_plain = all(re.match(r"-[celux]+\Z|-o\Z|pipefail\Z", word.value) for word in options_given)
    return call.script is not None and is_plain and UNKNOWN not in call.script.value


def _is_risky_argument(value: str) -> bool:
    """`read PATH`, `unset PATH`, `declare -n`, `test -v 'a[$(…)]'`."""
    name = value.partition("=")[0].partition("[")[0]
    return bool(_RISKY_VARIABLE.match(name)) or value == "-n" or "$(" in value or "`" in value
