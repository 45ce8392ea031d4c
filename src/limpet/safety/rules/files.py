"""Files of the system, and who may write to files."""

from __future__ import annotations

import re

from limpet.command import options
from limpet.command.model import Command, Word
from limpet.safety.paths import is_in_etc
from limpet.safety.rule import Rule
from limpet.safety.rules.disk import destination

_CLAUSE = re.compile(r"([ugoa]*)((?:[+=-][rwxXst]*)+)")
_OCTAL = re.compile(r"[+=]?0*[0-7]?777")


def _opened_to_all(command: Command) -> Word | None:
    given = options.read(command.arguments, long=("reference",))
    if not given.has("R", "recursive") or not given.operands:
        return None
    mode = given.operands[0]
    return mode if _is_777(mode.value) else None


def _is_777(mode: str) -> bool:
    if _OCTAL.fullmatch(mode):
        return True
    granted = {who: set[str]() for who in "ugo"}
    for clause in mode.split(","):
        found = _CLAUSE.fullmatch(clause)
        if found is None:
            return False
        for change in re.findall(r"[+=][rwxXst]*", found[2]):
            # Without a name the umask decides, and leaves others less.
            for who in found[1].replace("a", "ugo"):
                granted[who] |= set(change[1:])
    return all({"r", "w", "x"} <= given for given in granted.values())


CHMOD_777 = Rule(
    id="chmod-777",
    message="recursive 777 lets every user change and run everything below",
    advice="give what is needed: `chmod -R u+rwX,go+rX dir`, or change the owner",
    find=_opened_to_all,
    names=("chmod", "gchmod"),
    triggers=("chmod", "gchmod"),
    mention=r"\bchmod\s{1,9}-\w{0,9}R",
    refuses=("chmod -R 777 .", "chmod a+rwx -R /srv", "chmod --recursive 0777 dir"),
    permits=("chmod 777 x", "chmod -R 755 dir", "chmod -R a+rX docs"),
)


def _overwritten(command: Command) -> Word | None:
    for redirect in command.redirects:
        if redirect.writes and ">>" not in redirect.operator and is_in_etc(redirect.target.value):
            return redirect.target
    writer = _WRITERS.get(command.name)
    return None if writer is None else writer(command)


def _by_tee(command: Command) -> Word | None:
    given = options.read(command.arguments)
    if given.has("a", "append"):
        return None
    return next((word for word in given.operands if is_in_etc(word.value)), None)


def _by_copy(command: Command) -> Word | None:
    target = destination(command)
    if target is None or not is_in_etc(target.value):
        return None
    sources = [word.value for word in command.arguments if word is not target]
    is_backup = any(value and target.value.startswith(value) and "/" in value for value in sources)
    return None if is_backup and target.value not in sources else target


def _by_sed(command: Command) -> Word | None:
    given = options.read(command.arguments, "efl", ("expression", "file", "line-length"))
    if not any(o.name.startswith("i") for o in given.options):
        return None
    return next((word for word in given.operands if is_in_etc(word.value)), None)


_WRITERS = {"tee": _by_tee, "cp": _by_copy, "mv": _by_copy, "sed": _by_sed, "gsed": _by_sed}

ETC_OVERWRITE = Rule(
    id="etc-overwrite",
    message="this overwrites the system's configuration",
    advice="write the file into the project and leave it to a person to install",
    find=_overwritten,
    names=tuple(_WRITERS),
    watches=("redirects",),
    triggers=("/etc",),
    mention=r"(?<!>)>\s{0,9}[\"\']?/etc/",
    refuses=(
        "echo x > /etc/hosts",
        "cat x | sudo tee /etc/motd",
        "cp x.conf /etc/nginx/",
        "sed -i s/a/b/ /etc/fstab",
    ),
    permits=("cat /etc/hosts", "cp /etc/hosts .", "echo x >> /etc/hosts", "sed s/a/b/ /etc/fstab"),
)
