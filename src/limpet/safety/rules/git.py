"""git: staging everything unseen, and overwriting what others pushed."""

from __future__ import annotations

from limpet.command import options
from limpet.command.model import Command, Word
from limpet.command.words import ANY, HERE, STAR
from limpet.safety.paths import normal
from limpet.safety.rule import Rule

_GLOBAL_SHORT = "Cc"
_GLOBAL_LONG = ("git-dir", "work-tree", "namespace", "exec-path", "super-prefix", "config-env")
_EVERYTHING = frozenset(
    [".", "..", ".*", ":/", ":", ":/.", ":/*", ":(top)", ":(top).", "*", "**", "**/*"]
)


def _subcommand(command: Command) -> list[Word]:
    """Return the words from the subcommand on."""
    return options.read(command.arguments, _GLOBAL_SHORT, _GLOBAL_LONG, is_permuted=False).operands


def _blind_add(command: Command) -> Word | None:
    words = _subcommand(command)
    if not words or words[0].value not in ("add", "stage"):
        return None
    given = options.read(words[1:], long=("chmod", "pathspec-from-file"))
    if given.has("n", "dry-run", "p", "patch", "i", "interactive", "e", "edit", "h", "help"):
        return None
    if given.has("u", "update"):  # only what git knows already
        return None
    for option in given.options:
        is_long = option.word.value.startswith("--")
        if option.name in ("A", "no-ignore-removal") or (is_long and "all".startswith(option.name)):
            return option.word
    return next((word for word in given.operands if _is_everything(word.value)), None)


def _is_everything(value: str) -> bool:
    plain = value.replace(STAR, "*").replace(ANY, "?")
    return plain in _EVERYTHING or normal(plain) in _EVERYTHING or value == HERE


ADD_BLIND = Rule(
    id="git-add-blind",
    message="`git add` of everything also stages what was not meant: secrets, builds, other work",
    advice="name the paths: `git status --short`, then `git add path/one path/two`",
    find=_blind_add,
    names=("git",),
    triggers=("add", "stage", "submodule", "rebase", "bisect"),
    mention=r"\bgit\s{1,9}(?:-\S{1,99}\s{1,9}){0,3}(?:add|stage)\s",
    refuses=("git add -A", "git add .", "git -C repo add --all", "git add *", "git add -v :/"),
    permits=("git add src/main.py", "git add -u", "git add .github", "git add -p"),
)


def _forced_push(command: Command) -> Word | None:
    words = _subcommand(command)
    if not words or words[0].value != "push":
        return None
    given = options.read(words[1:], "o", ("push-option", "repo", "receive-pack", "exec"))
    if given.has("n", "dry-run", "h", "help"):
        return None
    forced = None
    for option in given.options:
        is_long = option.word.value.startswith("--")
        if option.name in ("f", "force") or (is_long and "mirror".startswith(option.name)):
            forced = option.word
        elif option.name in ("no-force", "no-mirror"):
            forced = None
    if forced is not None:
        return forced
    return next((word for word in given.operands if word.value.startswith("+")), None)


PUSH_FORCE = Rule(
    id="git-push-force",
    message="a forced push overwrites commits on the remote that others may have pushed",
    advice="use `git push --force-with-lease`, which stops if the remote has moved",
    find=_forced_push,
    names=("git",),
    triggers=("push", "submodule", "rebase", "bisect"),
    mention=r"\bgit\s[^\n]{0,40}\bpush\s[^\n]{0,99}(?:\s-\w{0,9}f\b|--force\b|--mirror\b|\s\+)",
    refuses=(
        "git push --force",
        "git push -fu origin x",
        "git push origin +main",
        "git push --mirror",
    ),
    permits=("git push --force-with-lease", "git push -u origin fix/force", "git fetch -f"),
)
