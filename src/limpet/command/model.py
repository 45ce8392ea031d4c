"""What a command line comes to: simple commands, each with its words, redirects and place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from limpet.command.words import HERE


class Word(NamedTuple):
    """One word of a command, with its value as far as it is known (see `words`)."""

    value: str
    start: int
    """In bytes of the whole line's UTF-8."""
    end: int
    prints: str | None = None
    """Of a process substitution, what reading it gives."""


class Redirect(NamedTuple):
    """One redirect: `2> file`, `<<< text`, a here-document."""

    operator: str
    """`<`, `>`, `>>`, `>|`, `<>`, `&>`, `&>>`, `>&`, `<&`, `<<` or `<<<`."""
    descriptor: str
    """The number before the operator, or nothing."""
    target: Word
    """The file, or the text of a here-document or here-string."""

    @property
    def writes(self) -> bool:
        """True if it opens a file for writing."""
        if self.operator in (">&", "<&"):
            value = self.target.value
            return self.operator == ">&" and not (value.rstrip("-").isdigit() or value == "-")
        return ">" in self.operator


class Assignment(NamedTuple):
    """`name=value`, before a command or alone."""

    name: str
    value: str


class Command:
    """One simple command, wherever in the line it stands."""

    redirects: tuple[Redirect, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    feed: str | None = None
    """What it reads on standard input, as far as known; None if nothing is put there."""
    cwd = HERE
    """Where it runs, after a `cd` in the line: an absolute path, or a mark."""
    joined_by = ""
    """What stands before it: `&&`, `||`, `;`, `&`, `|`; nothing for the first."""
    pipeline: Sequence[Command] = ()
    """All commands of its pipeline, its own among them; empty if it stands in none."""
    stage = 0
    """Its place in the pipeline."""
    level = 0
    """How many blocks, substitutions and scripts lie around it."""
    is_negated = False
    """True after `!`."""
    is_background = False
    is_connected = False
    """True if one of its streams is a descriptor that was opened on /dev/tcp."""
    is_repeated = False
    """True inside a loop."""
    function = ""
    """The function in whose body it stands."""
    calls_function = False
    """True if it is a function of the line, whose body was read for it."""
    siblings: Sequence[Command] = ()
    """All commands of that function's body, or else of the line."""
    via_words = False
    """True if its caller was given its words, and no script that has them."""
    caller: Command | None = None
    """The wrapper that runs it: `sudo`, `xargs`, `bash -c`."""

    def __init__(
        self,
        words: list[Word] | Callable[[], list[Word]],
        start: int,
        end: int,
        first: str | None = None,
    ) -> None:
        """Take the words; or, since few are looked at, how to read them and the first's value."""
        self._words = words
        self.start = start
        self.end = end
        if first is None:
            first = self.words[0].value if words else ""
        self.name = program_name(first) if "/" in first else first
        """What is run, without the directory it is in; empty if there are only redirects."""

    @property
    def words(self) -> list[Word]:
        """The name and the arguments."""
        if not isinstance(self._words, list):
            self._words = self._words()
        return self._words

    @property
    def arguments(self) -> list[Word]:
        """The words after the name."""
        return self.words[1:]

    def is_run_by(self, *names: str) -> bool:
        """Tell whether one of the programs runs it, directly or through others."""
        caller = self.caller
        while caller is not None:
            if caller.name in names:
                return True
            caller = caller.caller
        return False

    def __repr__(self) -> str:
        return f"Command({' '.join(word.value for word in self.words)!r})"


def program_name(value: str) -> str:
    """Return a program's name without its directory, if that is where programs are."""
    directory, slash, name = value.rpartition("/")
    is_absolute = value.startswith("/")
    return name if not slash or is_absolute or directory.endswith(("/bin", "/sbin")) else value


Skim = Callable[[str], object]


class Gap(NamedTuple):
    """A part of the line that was not understood."""

    start: int
    end: int
    text: str


class Line(NamedTuple):
    """All that a line would run."""

    commands: list[Command]
    """Also those inside wrappers, scripts and substitutions."""
    gaps: list[Gap]
    skim: Skim | None = None
    """Tells of a statement of a long script whether it is to be read; assignments always are."""
