"""rm: what cannot be got back."""

from __future__ import annotations

from limpet.command import options
from limpet.command.model import Command, Word
from limpet.command.printed import read_find
from limpet.command.words import HOME
from limpet.safety.paths import precious
from limpet.safety.rule import Rule

_REMOVERS = ("rm", "unlink", "shred")
_TYPES = frozenset(["-type", "-xtype", "-mindepth", "-maxdepth"])
"""What narrows a search, but not to anything in particular."""
_ACTIONS = frozenset(["-exec", "-execdir", "-ok", "-okdir"])


def _removed(command: Command) -> Word | None:
    if command.name in ("find", "gfind"):
        return _found(command)
    given = options.read(command.arguments)
    if not given.has("r", "R", "recursive") or given.has("help", "version"):
        return None
    is_forced = given.has("f", "force")
    for word in given.operands:
        place = precious(word.value) if word.value else None
        if place is None and command.cwd[0] in ("/", HOME) and word.value[:1] not in ("/", HOME):
            place = precious(f"{command.cwd}/{word.value}")
        if place is not None and (is_forced or place in ("root", "system", "home")):
            return word
    return None


def _found(command: Command) -> Word | None:
    """`find` that deletes: what it is started on counts, unless it looks for something."""
    values = [word.value for word in command.arguments]
    deletes = "-delete" in values
    for place, value in enumerate(values[:-1]):
        deletes |= value in _ACTIONS and values[place + 1].rpartition("/")[2] in _REMOVERS
    if not deletes:
        return None
    search = read_find(command)
    narrowed = search.tests - _ACTIONS
    named = [word for word in command.arguments if word.value in search.roots]
    for word in named or [Word(".", command.start, command.end)]:
        place_kind = precious(word.value)
        if place_kind in ("root", "system", "home") and not narrowed - _TYPES:
            return word
        if place_kind is not None and not narrowed - {"-type", "-mindepth"}:
            return word
    return None


RM_DANGEROUS = Rule(
    id="rm-dangerous",
    message="this removes everything in a place that cannot be got back: the system, a home, the"
    " project or its history",
    advice="name what is to go, below that place: `rm -rf ./build`",
    find=_removed,
    names=("rm", "grm", "find", "gfind"),
    triggers=("rm", "grm", "unlink", "shred", "-delete"),
    mention=r"(?<![\w-])rm\s{1,9}-\w{0,9}[rR]|\bfind\s[^\n]{0,99}\s-delete\b",
    refuses=(
        "rm -rf /",
        'rm -fr "$HOME"',
        "rm -r -f .git",
        "rm -rf ./*",
        "sudo rm -r ~",
        "find / -delete",
    ),
    permits=(
        "rm -rf build/",
        "rm -rf /tmp/x",
        "rm -rf *.pyc",
        "rm -r .git",
        "find . -name '*.o' -delete",
    ),
)


def _removed_by_root(command: Command) -> Word | None:
    if command.is_run_by("sudo", "doas"):
        return command.words[0]
    return None


SUDO_RM = Rule(
    id="sudo-rm",
    message="removing files as root passes over every protection that they have",
    advice="remove them as the user they belong to, or leave it to a person",
    find=_removed_by_root,
    names=("rm",),
    triggers=("rm",),
    refuses=("sudo rm x.log", "sudo -u root rm -i x"),
    permits=("rm x.log", "sudo rmdir x", "sudo ls rm"),
)
