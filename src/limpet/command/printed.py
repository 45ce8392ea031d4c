"""What a simple command prints, as far as that follows from its words and its input."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import zip_longest

from limpet.command import options
from limpet.command.model import Command
from limpet.command.words import (
    DECODED,
    DOWNLOADED,
    HERE,
    REMOTE,
    STAR,
    TAINTS,
    UNKNOWN,
    unescape,
)

DOWNLOADERS = frozenset(
    [
        "curl",
        "wget",
        "wget2",
        "curlie",
        "http",
        "https",
        "xh",
        "aria2c",
        "lynx",
        "w3m",
        "lwp-request",
        "GET",
    ]
)
CONNECTORS = frozenset(["nc", "ncat", "netcat", "nc.traditional", "nc.openbsd", "socat", "telnet"])
_DECODERS: dict[str, Callable[[options.Options], bool]] = {
    "base64": lambda given: given.has("d", "D", "decode"),
    "gbase64": lambda given: given.has("d", "D", "decode"),
    "base32": lambda given: given.has("d", "decode"),
    "basenc": lambda given: given.has("d", "decode"),
    "xxd": lambda given: given.has("r", "revert"),
    "rev": lambda given: True,
    "uudecode": lambda given: True,
    "gpg": lambda given: given.has("d", "decrypt"),
    "age": lambda given: given.has("d", "decrypt"),
    "sops": lambda given: given.has("d", "decrypt"),
}
_DECODES = re.compile(
    r"b64decode|decode_base64|base64_decode|@base64d|['\"]base64['\"]|unhexlify|fromhex|\batob\("
)
DECODING = (
    *_DECODERS,
    "openssl",
    "tr ",
    "b64",
    "decode_base64",
    "@base64d",
    "unhexlify",
    "fromhex",
    "atob",
)
"""Words of which one occurs wherever something is decoded."""
_ROT13 = re.compile(r"[nN]-[zZ][aA]-[mM]")
_FORMAT = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?([a-zA-Z%])")
_ECHO_OPTION = re.compile(r"-[neE]+\Z")


def printed(command: Command) -> str:
    """Return what a command prints; what is not known is marked, with what it was made of."""
    own = PRINTERS.get(command.name)
    if own is not None:
        return own(command)
    return from_input(command)


def from_input(command: Command) -> str:
    """Of most programs only this is known: what came of a taint has it too."""
    if not command.feed:
        return UNKNOWN + "\n"
    return ("".join(taint for taint in TAINTS if taint in command.feed) or UNKNOWN) + "\n"


def _download(command: Command) -> str:
    """`curl`, `wget`: what a server sends, unless it goes to a file."""
    given = options.read(
        command.arguments,
        "oHdXuAeFbcTwmx" if command.name == "curl" else "OoPUeit",
        ("output", "header", "data", "request", "user", "output-document"),
    )
    if command.name == "curl":
        target = given.value("o", "output")
        goes_to_file = target not in (None, "-", UNKNOWN)
    else:
        target = given.value("O", "output-document")
        goes_to_file = target not in (None, "-", "/dev/stdout", UNKNOWN)
    return "" if goes_to_file else DOWNLOADED + "\n"


def _grep(command: Command) -> str:
    is_quiet = options.read(command.arguments, "efmABC").has("q", "quiet", "silent")
    return "" if is_quiet else from_input(command)


def _decode(command: Command) -> str:
    return DECODED + "\n" if _decodes(command) else from_input(command)


def _decodes(command: Command) -> bool:
    test = _DECODERS.get(command.name)
    if test is not None:
        return test(options.read(command.arguments))
    values = [word.value for word in command.arguments]
    if command.name == "openssl":
        return any(value in ("-d", "-D", "-decrypt") for value in values)
    return command.name == "tr" and any(_ROT13.search(value) for value in values)


def _echo(command: Command) -> str:
    values = [word.value for word in command.arguments]
    flags = ""
    while values and _ECHO_OPTION.match(values[0]):
        flags += values.pop(0)
    text = " ".join(values)
    if "e" in flags:
        text = unescape(text)
    return text if "n" in flags else text + "\n"


def _printf(command: Command) -> str:
    values = [word.value for word in command.arguments]
    if values and values[0] == "--":
        del values[0]
    if not values or values[0] == "-v":
        return ""
    form, rest = unescape(values[0]), values[1:]
    pieces = []
    while True:
        taken = len(rest)
        pieces.append(_FORMAT.sub(lambda found: _formatted(found, rest), form))
        if not rest or taken == len(rest):
            return "".join(pieces)


def _formatted(found: re.Match[str], rest: list[str]) -> str:
    if found[1] == "%":
        return "%"
    value = rest.pop(0) if rest else ""
    return unescape(value) if found[1] == "b" else value


def _cat(command: Command) -> str:
    """`cat`, `tee`: what comes in goes out; a file's text is not known."""
    files = [word for word in command.arguments if not word.value.startswith("-")]
    if files and command.name != "tee":
        return "".join(word.prints or UNKNOWN for word in files)
    return UNKNOWN if command.feed is None else command.feed


def _ls(command: Command) -> str:
    """Names of files: all of the directory, if none is asked for."""
    given = options.read(command.arguments, "ITw")
    if given.has("d", "directory") and given.operands:
        return "\n".join(word.value for word in given.operands) + "\n"
    return (UNKNOWN if given.operands else STAR) + "\n"


def _find(command: Command) -> str:
    search = read_find(command)
    return ("\n".join(search.roots) if search.finds_all else UNKNOWN) + "\n"


def _git(command: Command) -> str:
    match [word.value for word in command.arguments]:
        case ["rev-parse", "--show-toplevel"]:
            return HERE + "\n"
        case ["rev-parse", "--git-dir" | "--absolute-git-dir"]:
            return ".git\n"
        case _:
            return UNKNOWN + "\n"


def _operand(command: Command) -> str:
    """`which rm`, `command -v rm`, `realpath ~`: what it is asked about, in another form."""
    operands = options.read(command.arguments).operands
    return (operands[0].value if operands else UNKNOWN) + "\n"


def _dirname(command: Command) -> str:
    operands = options.read(command.arguments).operands
    parent, slash, _ = operands[0].value.rstrip("/").rpartition("/") if operands else ("", "", "")
    return (parent or slash or UNKNOWN) + "\n"


def _evaluate(command: Command) -> str:
    decodes = any(_DECODES.search(word.value) for word in command.arguments)
    return DECODED + "\n" if decodes else from_input(command)


class Search:
    """What a `find` looks for."""

    def __init__(self, roots: list[str], *, tests: set[str]) -> None:
        self.roots = roots
        self.tests = tests

    @property
    def finds_all(self) -> bool:
        """True if it finds the roots themselves, and all below."""
        return not self.tests


_FIND_TESTS = frozenset(
    """-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -mtime
    -atime -ctime -mmin -amin -cmin -newer -anewer -cnewer -size -empty -user -group -uid -gid
    -nouser -nogroup -perm -links -inum -samefile -type -xtype -used -fstype -readable -writable
    -executable -mindepth -maxdepth -prune -quit -false -not ! -exec -execdir -ok -okdir""".split()
)


_NAMINGS = frozenset(["-name", "-iname", "-path", "-wholename"])


def read_find(command: Command) -> Search:
    """Return where a `find` looks, and what narrows it."""
    roots: list[str] = []
    words = command.arguments
    place = 0
    while place < len(words) and words[place].value[:2] in ("-H", "-L", "-P", "-O", "-D"):
        place += 2 if words[place].value == "-D" else 1
    while place < len(words) and words[place].value[:1] not in ("-", "(", "!"):
        roots.append(words[place].value)
        place += 1
    values = [word.value for word in words[place:]]
    tests = set()
    for value, argument in zip_longest(values, values[1:], fillvalue=""):
        names_all = value in _NAMINGS and argument != "" and not argument.strip("*")
        if (value in _FIND_TESTS or value.startswith("-newer")) and not names_all:
            tests.add(value)
    return Search(roots or ["."], tests=tests)


_SILENT = ("true", "false", ":", "cd", "test", "[", "[[", "exit", "return", "sleep", "set", "shift")
PRINTERS: dict[str, Callable[[Command], str]] = {
    **dict.fromkeys(_SILENT, lambda command: ""),
    "echo": _echo,
    "printf": _printf,
    "cat": _cat,
    "tee": _cat,
    "ls": _ls,
    "dirname": _dirname,
    "find": _find,
    "git": _git,
    **dict.fromkeys(["which", "command", "type", "realpath", "readlink"], _operand),
    **dict.fromkeys(["python", "python3", "perl", "ruby", "node", "php", "jq"], _evaluate),
    **dict.fromkeys(DOWNLOADERS, lambda command: DOWNLOADED + "\n"),
    "curl": _download,
    "wget": _download,
    "grep": _grep,
    **dict.fromkeys(CONNECTORS, lambda command: REMOTE + "\n"),
    **dict.fromkeys([*_DECODERS, "openssl", "tr"], _decode),
}
