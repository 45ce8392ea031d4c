"""Programs that take a script: shells, eval, source, trap, su, ssh, watch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from limpet.command import options
from limpet.command.inner import Inner, after_options, as_script, as_words
from limpet.command.model import Command, Word
from limpet.command.words import REMOTE, is_connection

SHELLS = frozenset(
    ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "csh", "tcsh"]
)


class ShellCall(NamedTuple):
    """How a shell is called."""

    script: Word | None
    """After `-c`."""
    file: Word | None
    """The file that it reads its script from; with neither it reads its standard input."""
    arguments: list[Word]
    """The script's own, `$0` not among them."""
    is_dry: bool
    """True if it only looks whether the script could be read: `-n`."""

    @property
    def reads_input(self) -> bool:
        """True if its script is what it is fed."""
        return self.script is None and self.file is None and not self.is_dry


def read_shell(command: Command) -> ShellCall:
    """Return how a shell is called."""
    letters = ""
    words = iter(command.arguments)
    operands: list[Word] = []
    for word in words:
        value = word.value
        if value in ("-", "--"):
            break
        if value[:1] not in ("-", "+") or len(value) < 2:
            operands.append(word)
            break
        if not value.startswith("--"):
            letters += value[1:] if value[0] == "-" else ""
            _skip(words, value.count("o") + value.count("O"))
        elif value in ("--rcfile", "--init-file"):
            _skip(words, 1)
    operands += words
    is_dry = "n" in letters
    if "c" in letters:
        return ShellCall(operands[0] if operands else None, None, operands[2:], is_dry)
    if not operands or "s" in letters or operands[0].value in ("/dev/stdin", "/dev/fd/0"):
        return ShellCall(None, None, operands, is_dry)
    return ShellCall(None, operands[0], operands[1:], is_dry)


def _skip(words: Iterator[Word], count: int) -> None:
    for _ in range(count):
        next(words, None)


def shell(command: Command) -> list[Inner]:
    """`bash -c script`, or a shell whose script is on its standard input or in a `<( )`."""
    call = read_shell(command)
    if call.is_dry:
        return []
    if call.script is not None:
        place = command.words.index(call.script)
        values = [word.value for word in command.words[place + 1 :]]
        return [Inner(script=call.script.value, origin=call.script, arguments=values)]
    if call.file is not None:
        script = call.file.prints
        return [] if script is None else _script_of(script, call.file, call.arguments)
    return from_input(command, call.arguments)


def _script_of(script: str, origin: Word, arguments: list[Word]) -> list[Inner]:
    values = ["", *(word.value for word in arguments)]
    return [Inner(script=script, origin=origin, arguments=values, reads_input=False)]


def from_input(command: Command, arguments: list[Word] | None = None) -> list[Inner]:
    """Return the script of a shell that is given none but what it reads."""
    if command.feed is None:
        return []
    return _script_of(command.feed, _input_word(command), arguments or [])


def _input_word(command: Command) -> Word:
    """Return where what a command is fed stands in the line."""
    for redirect in command.redirects:
        if redirect.operator in ("<", "<<", "<<<"):
            return redirect.target
    return Word("", command.start, command.end)


def evaluate(command: Command) -> list[Inner]:
    """`eval words`: joined, then read again."""
    words = [word for word in command.arguments if word.value != "--"]
    return [inner._replace(is_same_shell=True) for inner in as_script(words)]


def source(command: Command) -> list[Inner]:
    """`source <( … )`, and what is on standard input or a connection."""
    if not command.arguments:
        return []
    file = command.arguments[0]
    script = REMOTE if is_connection(file.value) else file.prints
    if script is None and file.value in ("/dev/stdin", "/dev/fd/0"):
        script = command.feed
    if script is None:
        return []
    return [Inner(script=script, origin=file, reads_input=False, is_same_shell=True)]


def trap(command: Command) -> list[Inner]:
    """`trap 'script' signals`."""
    words = options.read(command.arguments).operands
    if len(words) < 2 or words[0].value in ("", "-"):
        return []
    return [Inner(script=words[0].value, origin=words[0])]


def su(command: Command) -> list[Inner]:
    """`su`, `runuser`, `script`: the script is an option's value."""
    given = options.read(
        command.arguments,
        "cCgGsuwEBIOTtmo",
        ("command", "group", "shell", "user", "session-command"),
    )
    for option in given.options:
        if option.name in ("c", "command", "session-command", "C") and option.value is not None:
            place = next(
                (word for word in command.arguments if word.value == option.value), option.word
            )
            return [Inner(script=option.value, origin=place)]
    if command.name == "runuser" and given.has("u", "user"):
        return as_words(after_options(command.arguments, "u", ("user",)))
    return [] if command.name == "script" else from_input(command)


_SSH_SHORT = "BbcDEeFIiJLlmOoPpQRSWw"


def ssh(command: Command) -> list[Inner]:
    """`ssh host words`: joined, then read by the other side's shell."""
    host = after_options(command.arguments, _SSH_SHORT, ())
    words = after_options(host[1:], _SSH_SHORT, ())
    return as_script(words) if words or not host else from_input(command)


def watch(command: Command) -> list[Inner]:
    """`watch words`: joined, then read by a shell."""
    return as_script(after_options(command.arguments, "nq", ("interval", "equexit")))
