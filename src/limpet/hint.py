"""What a person would add to a result. Never wrong is better than often."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from limpet.result import Outcome, Survivor


class Ending(NamedTuple):
    """The facts of a run that hints are drawn from."""

    command: str
    outcome: Outcome
    exit_code: int | None
    signal: str | None
    output: str
    total_bytes: int
    timeout_s: float
    cap_bytes: int
    spill_path: str | None
    save_error: OSError | None
    reading: str | None
    """Who was waiting for input at the time limit, and from where."""
    pipe_codes: tuple[int, ...]
    """The exit codes of the last pipeline, if the shell reported them."""
    survivors: tuple[Survivor, ...]


def hint(ending: Ending) -> str | None:
    """Return one line of what follows from the facts, or None where they speak for themselves."""
    parts = [_about_end(ending), _about_survivors(ending), _about_saving(ending)]
    return "; ".join(part for part in parts if part) or None


def _about_end(ending: Ending) -> str | None:
    match ending.outcome:
        case Outcome.TIMED_OUT:
            return _about_timeout(ending)
        case Outcome.CANCELLED:
            return "stopped because the caller cancelled the call"
        case Outcome.OUTPUT_CAPPED:
            return (
                f"stopped because the output reached the cap of {ending.cap_bytes} bytes;"
                " print less, or raise spill_bytes in the output policy"
            )
        case Outcome.SIGNALED if ending.signal == "SIGKILL":
            return "SIGKILL did not come from limpet; the machine may be out of memory"
        case Outcome.EXITED if ending.exit_code is None:
            return "the exit code is unknown: something else in this program waits for all children"
        case Outcome.EXITED if ending.exit_code == 0:
            return _about_masked_failure(ending)
        case Outcome.EXITED:
            return _about_missing(ending) or _about_prompt(ending) or _about_answer(ending)
        case _:
            return None


def _about_timeout(ending: Ending) -> str:
    text = f"stopped at the limit of {ending.timeout_s:g} s; raise timeout_s if it needs longer"
    if ending.reading:
        text += f"; {ending.reading}"
    elif not ending.total_bytes:
        text += (
            "; it printed nothing, perhaps because programs hold output back when it goes to a pipe"
            " (try `python -u` or `stdbuf -oL`)"
        )
    return text


_NOT_FOUND = re.compile(r"^\S*: line \d+: (?P<name>.+): command not found$", re.M)
_NO_SUCH_FILE = re.compile(r"^\S*: line \d+: (?P<name>.+): No such file or directory$", re.M)
_NOT_EXECUTABLE = re.compile(r"^\S*: line \d+: (?P<name>.+): Permission denied$", re.M)


def _about_missing(ending: Ending) -> str | None:
    if ending.exit_code == 127:
        if found := _NOT_FOUND.findall(ending.output):
            return f"`{found[-1]}` is not installed, or not on PATH"
        if found := _NO_SUCH_FILE.findall(ending.output):
            return f"there is no `{found[-1]}` to run"
    if ending.exit_code == 126 and (found := _NOT_EXECUTABLE.findall(ending.output)):
        return f"`{found[-1]}` is not executable by this user (chmod +x?)"
    return None


_PROMPTS = re.compile(
    r"sudo: (?:a terminal is required|no tty present|a password is required)"
    r"|could not read (?:Username|Password) for|terminal prompts disabled"
    r"|EOFError: EOF when reading a line|unable to read askpass response"
    r"|Host key verification failed|the input device is not a TTY"
    r"|error reading input: EOF|(?:Inappropriate ioctl|No such device or address).*tty"
)


def _about_prompt(ending: Ending) -> str | None:
    if _PROMPTS.search(ending.output[-4096:]):
        return (
            "it asked a question and nobody can answer: there is no terminal, and standard input is"
            " empty unless given; pass what it needs by options, the environment or stdin"
        )
    return None


_ANSWERS = {
    "no match": ["grep", "egrep", "fgrep", "zgrep", "rg", "ag", "pgrep"],
    "they differ": ["diff", "cmp"],
    "the condition is false": ["test", "[", "[["],
    "some paths could not be read, the others were": ["find"],
    "standard input was at its end": ["read"],
    "the result is empty or zero": ["expr"],
    "not found": ["which", "type"],
}
_MEANING_OF_ONE = {name: meaning for meaning, names in _ANSWERS.items() for name in names}


def _about_answer(ending: Ending) -> str | None:
    if ending.exit_code != 1:
        return None
    words = _last_command(ending)
    if not words:
        return None
    name = words[0].rpartition("/")[2]
    meaning = _MEANING_OF_ONE.get(name)
    if name == "git" and words[1:2] == ["grep"]:
        name, meaning = "git grep", "no match"
    elif name == "git" and words[1:2] == ["diff"]:
        name, meaning = "git diff", "they differ"
    return f"exit code 1 of {name} is an answer: {meaning}" if meaning else None


_OPAQUE = re.compile(r"[`(){}#]|\$\(|<<|pipefail|\bset -|\btrap\b")
_KEYWORDS = frozenset(
    [
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "for",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "select",
        "function",
        "time",
        "coproc",
        "!",
        "exec",
        "eval",
        "source",
        ".",
    ]
)
_QUIET_STARTS = frozenset(["cd", "export", "pushd", "umask"])


def _last_command(ending: Ending) -> list[str] | None:
    """Return the words of the command whose exit code was the shell's, if that is certain."""
    if _OPAQUE.search(ending.command):
        return None
    lexer = shlex.shlex(ending.command.strip(), posix=True, punctuation_chars=";&|<>\n")
    lexer.whitespace = " \t"
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError:
        return None
    commands: list[list[str]] = [[]]
    for part in tokens:
        if part.strip(";|\n") == "" or part == "&&":
            if part == "&&" and commands[-1][:1] not in [[start] for start in _QUIET_STARTS]:
                return None
            commands.append([])
        elif part.startswith("&") or part in _KEYWORDS:
            return None
        else:
            commands[-1].append(part)
    if "&&" in tokens and ": line " in ending.output:
        return None  # the quiet start was not quiet: it may be what failed
    words = commands[-1]
    while words and re.match(r"\w+=", words[0]):
        words = words[1:]
    return words


_SIGPIPE_CODE = 141
"""The reader had enough (`yes | head -1`): no failure."""


def _about_masked_failure(ending: Ending) -> str | None:
    codes = ending.pipe_codes
    stages = _stages(ending.command, len(codes))
    for place, code in enumerate(codes[:-1]):
        name = stages[place].rpartition("/")[2] if stages else ""
        if code in (0, _SIGPIPE_CODE) or (code == 1 and name in _MEANING_OF_ONE):
            continue
        which = f"`{name}`" if name else f"command {place + 1} of {len(codes)}"
        return (
            f"{which} in the last pipeline exited {code}; the exit code is that of its last command"
        )
    return None


def _stages(command: str, count: int) -> list[str]:
    """Return the name of each command of a line that is one plain pipeline, else nothing."""
    if count < 2 or _OPAQUE.search(command) or re.search(r"[;&\n]|\|\||['\"\\]", command):
        return []
    stages = [stage.split() for stage in command.split("|")]
    return [stage[0] for stage in stages] if len(stages) == count and all(stages) else []


def _about_survivors(ending: Ending) -> str | None:
    left = [s for s in ending.survivors if s.fate == "left"]
    failed = [s for s in ending.survivors if s.fate == "kill_failed"]
    if failed:
        pids = ", ".join(str(s.pid) for s in failed)
        return f"not even SIGKILL ended {pids}: sleeping in the kernel, or run by another user"
    if not left:
        return None
    named = ", ".join(f"{s.pid} ({s.command})" for s in left[:5])
    more = f" and {len(left) - 5} more" if len(left) > 5 else ""
    where = f"; further output goes to {ending.spill_path}" if ending.spill_path else ""
    return f"still running: {named}{more}; stop with `kill {left[0].pid}`{where}"


def _about_saving(ending: Ending) -> str | None:
    if ending.save_error is None:
        return None
    return f"the full output could not be saved: {ending.save_error}"
