"""Programs that take another's name and arguments: sudo, env, nice, timeout …."""

from __future__ import annotations

from typing import NamedTuple

from limpet.command import options
from limpet.command.inner import Inner, after_options, as_script, as_words
from limpet.command.model import Command
from limpet.command.scripts import from_input


class Wrapper(NamedTuple):
    """A program that takes options and operands of its own, then another's name and arguments."""

    short: str = ""
    """Its option letters that take a value."""
    long: tuple[str, ...] = ()
    operands: int = 0
    """How many words of its own stand before the other's name."""
    takes_assignments: bool = False
    stops: str = ""
    """Its option letters with which it runs nothing."""

    def unwrap(self, command: Command) -> list[Inner]:
        """Return the other's words."""
        given = options.read(command.arguments, self.short, self.long, is_permuted=False)
        if any(option.name in self.stops for option in given.options if len(option.name) == 1):
            return []
        words = given.operands
        if self.takes_assignments:
            while words and _is_assignment(words[0].value):
                words = words[1:]
        return as_words(words[self.operands :])


def _is_assignment(value: str) -> bool:
    return value.partition("=")[0].isidentifier() and "=" in value


_NOTHING = Wrapper()
_SUDO = Wrapper(
    "CcDghpRrTtUu",
    ("user", "group", "host", "prompt", "chdir", "chroot", "role", "type", "close-from"),
    takes_assignments=True,
    stops="leKVv",
)
WRAPPERS: dict[str, Wrapper] = {
    "doas": Wrapper("Cu", stops="L"),
    "nice": Wrapper("n", ("adjustment",)),
    "ionice": Wrapper("cn", ("class", "classdata"), stops="pPu"),
    "nohup": _NOTHING,
    "timeout": Wrapper("ks", ("kill-after", "signal"), operands=1),
    "gtimeout": Wrapper("ks", ("kill-after", "signal"), operands=1),
    "stdbuf": Wrapper("ioe", ("input", "output", "error")),
    "setsid": _NOTHING,
    "command": Wrapper(stops="vV"),
    "builtin": _NOTHING,
    "exec": Wrapper("a"),
    "busybox": _NOTHING,
    "toybox": _NOTHING,
    "chrt": Wrapper("TPD", operands=1, stops="pm"),
    "taskset": Wrapper(operands=1, stops="p"),
    "numactl": Wrapper("iNmpC"),
    "strace": Wrapper("aAbeEIoOpPsSuUX"),
    "ltrace": Wrapper("aAeDFlnopsuwx"),
    "unbuffer": _NOTHING,
    "caffeinate": Wrapper("tw"),
    "chronic": _NOTHING,
    "eatmydata": _NOTHING,
    "fakeroot": Wrapper("bilsu"),
    "pkexec": Wrapper(long=("user",)),
    "gosu": Wrapper(operands=1),
    "su-exec": Wrapper(operands=1),
    "proxychains": Wrapper("f"),
    "proxychains4": Wrapper("f"),
    "torsocks": Wrapper("uaP"),
    "xvfb-run": Wrapper("efnpsw"),
    "systemd-run": Wrapper("EGHMpu", ("unit", "property", "slice", "uid", "gid", "setenv")),
    "prlimit": Wrapper("p", stops="p"),
    "unshare": Wrapper("SGR"),
    "setarch": Wrapper(operands=1),
    "dbus-run-session": _NOTHING,
}
RUNNERS = dict.fromkeys(["uv", "poetry", "pipenv", "pdm", "hatch", "conda"], "run")
RUNNERS |= dict.fromkeys(["bundle", "mise", "direnv"], "exec")


def runner(command: Command) -> list[Inner]:
    """`uv run …`, `bundle exec …`: only that one subcommand runs something else."""
    words = command.arguments
    if not words or words[0].value != RUNNERS[command.name]:
        return []
    return as_words(after_options(words[1:], "pnewC", ()))


def sudo(command: Command) -> list[Inner]:
    """`sudo words`, or with -s or -i a shell that reads its standard input."""
    inner = _SUDO.unwrap(command)
    opens_shell = options.read(command.arguments, _SUDO.short, is_permuted=False).has("s", "i")
    return inner if inner or not opens_shell else from_input(command)


def env(command: Command) -> list[Inner]:
    """`env NAME=value words`, `env -S 'words'`."""
    given = options.read(
        command.arguments,
        "uCS",
        ("unset", "chdir", "split-string", "argv0"),
        is_permuted=False,
    )
    words = given.operands
    split = given.value("S", "split-string")
    if split is not None:
        return as_script([command.words[0]._replace(value=split), *words])
    while words and (words[0].value == "-" or _is_assignment(words[0].value)):
        words = words[1:]
    return as_words(words)


KEYWORDS = ("time", "coproc", "do", "then", "else", "elif", "{", "!", "if", "while")


def keyword(command: Command) -> list[Inner]:
    """`time`, `coproc`, or a word that the tree wrongly took for a command: `do`, `{`."""
    words = command.arguments
    if command.name == "time":
        words = after_options(words, "fo", ("format", "output"))
    elif command.name == "coproc" and len(words) > 1 and words[1].value in ("{", "("):
        words = words[2:]
    while words and (words[0].value == "{" or _is_assignment(words[0].value)):
        words = words[1:]
    return as_words(words)


def flock(command: Command) -> list[Inner]:
    """`flock file words`, `flock file -c script`."""
    words = after_options(command.arguments, "wE", ("timeout", "conflict-exit-code"))[1:]
    if words and words[0].value in ("-c", "--command"):
        return as_script(words[1:])
    return as_words(words)


def git(command: Command) -> list[Inner]:
    """`git submodule foreach words`, `git bisect run words`, `git rebase -x script`."""
    values = [word.value for word in command.arguments]
    if values[:2] == ["submodule", "foreach"]:
        return as_script([word for word in command.arguments[2:] if word.value != "--recursive"])
    if values[:2] == ["bisect", "run"]:
        return as_words(command.arguments[2:])
    if values[:1] == ["rebase"]:
        given = options.read(command.arguments[1:], "xsX", ("exec", "onto", "strategy"))
        scripts = [option for option in given.options if option.name in ("x", "exec")]
        return [Inner(script=option.value or "", origin=option.word) for option in scripts]
    return []
