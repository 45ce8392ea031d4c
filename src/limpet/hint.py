"""What a person would add to a result. Never wrong is better than often."""

from __future__ import annotations

import re
from typing import NamedTuple

from limpet.command.model import Command
from limpet.command.parse import parse
from limpet.confinement import LimitPolicy
from limpet.process.spawn import find_program
from limpet.result import Outcome, SandboxReport, Survivor


class Ending(NamedTuple):
    """The facts of a run that hints are drawn from."""

    command: str
    outcome: Outcome
    exit_code: int | None
    signal: str | None
    output: str
    total_bytes: int
    timeout_s: float
    cap: str | None
    """The cap on what is saved, in words."""
    task_id: str | None
    """The task that goes on with it, or with its survivors."""
    adopt_error: Exception | None
    """Why there is none."""
    log_path: str | None
    """Where the output is saved."""
    save_error: OSError | None
    reading: str | None
    """Who was waiting for input at the time limit, and from where."""
    pipe_codes: tuple[int, ...]
    """The exit codes of the last pipeline, if the shell reported them."""
    survivors: tuple[Survivor, ...]
    limits: LimitPolicy | None
    cpu_s: float
    sandbox: SandboxReport | None


def hint(ending: Ending) -> str | None:
    """Return one line of what follows from the facts, or None where they speak for themselves."""
    parts = [
        _about_limit(ending) or _about_end(ending),
        _about_sandbox(ending),
        _about_survivors(ending),
        _about_saving(ending),
    ]
    return "; ".join(part for part in parts if part) or None


def _about_limit(ending: Ending) -> str | None:
    if ending.limits is None or ending.outcome not in (Outcome.EXITED, Outcome.SIGNALED):
        return None
    if ending.exit_code == 0:
        return None
    from limpet.sandbox.limited import limited_by

    return limited_by(ending.limits, ending.exit_code, ending.cpu_s, ending.output)


def _about_sandbox(ending: Ending) -> str | None:
    sandbox = ending.sandbox
    if sandbox is None:
        return None
    parts = []
    if sandbox.denials:
        first, more = sandbox.denials[0], len(sandbox.denials) - 1
        about = f" {first.path}" if first.path else ""
        rest = f" (and {more} more)" if more else ""
        parts.append(
            f"the sandbox has probably denied{about}: {first.rule}{rest}; to permit: {first.permit}"
        )
    if sandbox.changed:
        names = ", ".join(f"{change.path} ({change.what})" for change in sandbox.changed[:3])
        more_names = " and more" if len(sandbox.changed) > 3 else ""
        parts.append(f"obeyed outside the sandbox: {names}{more_names}: look before it is used")
    return "; ".join(parts) or None


def _about_end(ending: Ending) -> str | None:
    match ending.outcome:
        case Outcome.TIMED_OUT:
            return _about_timeout(ending)
        case Outcome.BACKGROUNDED:
            return (
                f"still running after {ending.timeout_s:g} s: it goes on as task {ending.task_id};"
                f" read, wait for or stop it by that id; its output goes on in {ending.log_path}"
            )
        case Outcome.CANCELLED:
            return "stopped because the caller cancelled the call"
        case Outcome.OUTPUT_CAPPED:
            return (
                f"stopped because the output reached the cap of {ending.cap};"
                " print less, or raise the cap in the output policy"
            )
        case Outcome.SIGNALED if ending.signal == "SIGKILL":
            return "SIGKILL did not come from limpet; the machine may be out of memory"
        case Outcome.EXITED if ending.exit_code is None:
            return "the exit code is unknown: this program ignores SIGCHLD, or reaps all children"
        case Outcome.EXITED if ending.exit_code == 0:
            return _about_masked_failure(ending)
        case Outcome.EXITED:
            return _about_missing(ending) or _about_prompt(ending) or _about_answer(ending)
        case _:
            return None


LONGER = "raise timeout_s if it needs longer"
"""What to do about a time limit; who offers another way says that instead."""


def _about_timeout(ending: Ending) -> str:
    text = f"stopped at the limit of {ending.timeout_s:g} s; {LONGER}"
    if ending.adopt_error is not None:
        text += f"; it could not go on in the background: {ending.adopt_error}"
    if ending.reading:
        text += f"; {ending.reading}"
    elif not ending.total_bytes:
        text += (
            "; it printed nothing, perhaps because programs hold output back when it goes to a pipe"
            " (try `python -u` or `stdbuf -oL`)"
        )
    return text


_NOT_FOUND = re.compile(r"^\S*: line \d+: (?P<name>[^:\n]+): command not found$", re.M)
_NO_SUCH_FILE = re.compile(r"^\S*: line \d+: (?P<name>[^:\n]+): No such file or directory$", re.M)
_NOT_EXECUTABLE = re.compile(r"^\S*: line \d+: (?P<name>[^:\n]+): Permission denied$", re.M)


def _about_missing(ending: Ending) -> str | None:
    if ending.exit_code == 127:
        found = _NOT_FOUND.findall(ending.output)
        if found and find_program(found[-1]) is None:  # else someone only says so
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
            "it seems to have asked a question, and nobody can answer: there is no terminal, and"
            " standard input is empty unless given; pass what it needs by options, the environment"
            " or stdin"
        )
    return None


_ANSWERS = {
    "no match": ["grep", "egrep", "fgrep", "zgrep", "rg", "ag", "pgrep"],
    "they differ": ["diff", "cmp"],
    "the condition is false": ["test", "[", "[["],
    "some paths could not be read": ["find"],
    "standard input was at its end": ["read"],
    "the result is empty or zero": ["expr"],
    "not found": ["which", "type"],
}
_MEANING_OF_ONE = {name: meaning for meaning, names in _ANSWERS.items() for name in names}
_MEANING_OF_ONE |= {"git grep": "no match", "git diff": "they differ"}
_ANY_ANSWER = re.compile(rf"\b(?:{'|'.join(name for name in _MEANING_OF_ONE if name.isalpha())})\b")
_SHELL_ERROR = re.compile(r"^\S*: line \d+: ", re.M)
_UNREADABLE = re.compile(r"^find: .*(?:Permission denied|No such file or directory)$", re.M)


def _about_answer(ending: Ending) -> str | None:
    if ending.exit_code != 1 or _SHELL_ERROR.search(ending.output):
        return None
    last = _last_command(ending.command)
    if last is None:
        return None
    name = _name(last)
    meaning = _MEANING_OF_ONE.get(name)
    if name == "find" and not _UNREADABLE.search(ending.output):
        return None
    return f"exit code 1 of {name} is an answer: {meaning}" if meaning else None


def _name(command: Command) -> str:
    """Return what a command is called; a program elsewhere than in bin has its path for a name."""
    values = [word.value for word in command.words[:2]]
    values[0] = re.sub(r"^/(?:usr/)?bin/", "", values[0])
    return " ".join(values) if values[0] == "git" else values[0]


_QUIET_STARTS = frozenset(["cd", "export", "pushd", "umask"])
"""What commonly stands before `&&`, and says so on stderr if it fails."""
_CHANGES_THE_REST = frozenset(
    "exec exit return set shopt trap alias unalias break continue wait kill".split()
)


def _plain_commands(command: str) -> list[Command] | None:
    """Return the commands of a line of pipelines; None if it has anything else in it."""
    line = parse(command)
    commands = [one for one in line.commands if one.caller is None]  # not what these run
    for one in commands:
        is_inside = one.level or one.function or one.is_background or one.is_negated
        if is_inside or not one.words or one.name in _CHANGES_THE_REST:
            return None
    return None if line.gaps else commands


def _last_pipeline(commands: list[Command]) -> list[Command]:
    """Return the stages of the last pipeline; a lone command is one."""
    last = commands[-1]
    return [
        one for one in commands if one is last or (one.pipeline and one.pipeline is last.pipeline)
    ]


def _last_command(line: str) -> Command | None:
    """Return the simple command whose exit code was the shell's, if that is certain."""
    commands = _plain_commands(line)
    if not commands:
        return None
    stages = _last_pipeline(commands)
    before, first = commands[: -len(stages)], stages[0]
    while first.joined_by == "&&" and before:
        first = before.pop()
        is_silenced = any(r.target.value == "/dev/null" for r in first.redirects)
        if first.pipeline or is_silenced or first.name not in _QUIET_STARTS:
            return None
    return commands[-1]


_SIGPIPE_CODE = 141
"""The reader had enough (`yes | head -1`): no failure."""


def _about_masked_failure(ending: Ending) -> str | None:
    codes = ending.pipe_codes
    commands = _plain_commands(ending.command)
    stages = _last_pipeline(commands) if commands else []
    if len(stages) != len(codes):
        stages = []
    for place, code in enumerate(codes[:-1]):
        name = _name(stages[place]) if stages else ""
        may_be_answer = name in _MEANING_OF_ONE if name else _ANY_ANSWER.search(ending.command)
        if code in (0, _SIGPIPE_CODE) or (code == 1 and may_be_answer):
            continue
        which = f"`{name}`" if name else f"command {place + 1} of {len(codes)}"
        return f"{which} in the last pipeline exited {code}, which the exit code does not show"
    return None


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
    if ending.task_id is not None:
        how = f"as task {ending.task_id}: read, wait for or stop it by that id"
        return f"still running: {named}{more}, {how}; further output goes to {ending.log_path}"
    outside = " from outside the sandbox" if ending.sandbox is not None else ""
    error = ending.adopt_error
    why = f"; not a task that could be read: {error}" if error is not None else ""
    return f"still running: {named}{more}; stop with `kill {left[0].pid}`{outside}{why}"


def _about_saving(ending: Ending) -> str | None:
    if ending.save_error is None:
        return None
    return f"the full output could not be saved: {ending.save_error}"
