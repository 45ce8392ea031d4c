"""The `report` profile: strict rules, and a text report that can be read back."""

from __future__ import annotations

import re
import signal
from dataclasses import asdict, dataclass, replace

from pydantic import Field

from limpet.policy import Policy
from limpet.profiles import cut
from limpet.profiles.answer import Answer, failure
from limpet.profiles.asks import Run
from limpet.profiles.input import Input, Variables, Whole
from limpet.profiles.toolbox import Profile, Tool
from limpet.result import Outcome, Result

TIMEOUT_S, LEAST_S, MOST_S = 30, 1, 300
MAX_OUTPUT, LOCAL_MAX_OUTPUT = 5000, 1500
START, END = 2500, 1000
"""What is kept of a longer report: together its threshold of 3,500."""
TRUNCATED = "\n...\n[truncated]\n...\n"
NO_OUTPUT, NO_ERRORS = "(no output)", "(no errors)"
_COMMAND_SHARE = 2
"""A command that takes more than this part of what is kept is cut first: the facts come after."""


class BashInput(Input):
    """Of `bash`."""

    command: str = Field(min_length=1, description="The bash command to execute.")
    cwd: str | None = Field(None, description="Where to execute it; the working directory if not.")
    env: Variables | None = Field(None, description="Variables to set over the inherited ones.")
    timeout: Whole = Field(
        TIMEOUT_S, ge=LEAST_S, le=MOST_S, description="When to kill it, in seconds."
    )
    capture_output: bool = Field(True, description="Whether to report what it prints.")


@dataclass(frozen=True)
class BashData:
    """What a report says."""

    command: str
    exit_code: int
    """Negative if a signal ended the shell."""
    working_dir: str
    stdout: str
    stderr: str
    is_truncated: bool
    timeout: int


def build(*, local_mode: bool = False) -> Profile:
    """Return the profile.

    Args:
        local_mode: For a small model on this machine: shorter reports.
    """
    most = LOCAL_MAX_OUTPUT if local_mode else MAX_OUTPUT

    def tell(given: BashInput, result: Result) -> Answer:
        return _told(given, result, most)

    return Profile(
        name="report",
        shape=_shape,
        tools=(Tool("bash", _BASH, BashInput, _ask, tell, title="Run a command"),),
    )


_BASH = f"""\
Execute one plain shell command and report its exit code, stdout and stderr.

The rules are strict: no `;`, `&`, backticks, braces or `$(...)`, but `$NAME` and `${{NAME}}`, \
pipes and redirects are fine; nothing that removes recursively, formats or partitions. Stopped \
after `timeout` seconds ({LEAST_S} to {MOST_S}, {TIMEOUT_S} if not given). A refused command or a \
time-out is an error: change the command and try again."""


def _shape(policy: Policy) -> Policy:
    output = replace(policy.output, streams="separate", marks_cut=True)
    return replace(policy, output=output, rules=replace(policy.rules, pack="strict"))


def _ask(given: BashInput) -> Run:
    return Run(given.command, float(given.timeout), given.env, given.cwd)


def _told(given: BashInput, result: Result, most: int) -> Answer:
    match result.outcome:
        case Outcome.REFUSED:
            text = f"The command was refused, and nothing ran. {result.hint}\nChange it and retry."
            return failure("refused", text, can_retry=True)
        case Outcome.FAILED_TO_START:
            text = f"The command could not be started: {result.hint}. Correct that and retry."
            return failure("failed_to_start", text, can_retry=True)
        case Outcome.CANCELLED:
            return failure(
                "cancelled", f"The command was cancelled: {result.hint}", can_retry=False
            )
    said = _advice(result)
    data = _data(given, result)
    if result.outcome is Outcome.TIMED_OUT:
        said = (
            f"The command timed out after {given.timeout} seconds and was killed. Retry with a"
            f" longer timeout (at most {MOST_S}), or with a command that does less."
        )
    text, is_cut = _cut(data, said, most)
    data = replace(data, is_truncated=is_cut or result.truncated)
    is_error = result.is_error and result.outcome is not Outcome.SIGNALED
    return Answer(text, is_error=is_error, data=asdict(data), can_retry=is_error)


def _data(given: BashInput, result: Result) -> BashData:
    code = result.exit_code
    if result.outcome is Outcome.SIGNALED and result.signal:
        code = -signal.Signals[result.signal]
    return BashData(
        command=given.command,
        exit_code=-1 if code is None else code,
        working_dir=result.cwd,
        stdout=result.stdout.strip() if given.capture_output else "",
        stderr=result.stderr.strip() if given.capture_output else "",
        is_truncated=False,
        timeout=given.timeout,
    )


_COMMON = (
    (r"command not found", "a program of it is not installed, or misspelt: check with `which`"),
    (r"Permission denied", "this user may not do that: check with `ls -l`, or use another place"),
    (r"No such file or directory", "a path of it does not exist: check with `ls`"),
    (r"Is a directory|Not a directory", "a path of it is not of the kind that the command takes"),
    (r"Segmentation fault|core dumped", "the program crashed: it is not the command's wording"),
    (r"No space left on device", "the disk is full"),
)


def _advice(result: Result) -> str | None:
    """Return what a person would say to a common error; None if it is none."""
    if result.ok:
        return None
    for pattern, advice in _COMMON:
        if re.search(pattern, result.stderr, re.I):
            return f"Exit code {result.exit_code}: {result.hint or advice}."
    return f"Exit code {result.exit_code}: {result.hint}." if result.hint else None


# The report as text


def format_report(data: BashData) -> str:
    """Return a report; a backslash marks lines of a value that read like the next heading."""
    return "\n".join(
        [
            f"Command: {_marked(data.command, _CODE)}",
            f"Exit Code: {data.exit_code}",
            f"Working Directory: {_marked(data.working_dir, _STDOUT)}",
            "",
            "STDOUT:",
            _marked(data.stdout, _STDERR, NO_OUTPUT) or NO_OUTPUT,
            "",
            "STDERR:",
            _marked(data.stderr, None, NO_ERRORS) or NO_ERRORS,
        ]
    )


def parse_report(text: str, timeout: int = TIMEOUT_S) -> BashData:
    """Return what a report says, whatever the command and its output look like.

    Raises:
        ValueError: It is not a report.
    """
    is_truncated = any(_is_cut_at(text, *_ends(most)) for most in (MAX_OUTPUT, LOCAL_MAX_OUTPUT))
    body = text if text.startswith(_COMMAND) else text.partition("\n\n")[2]
    command, code, rest = _split(body.removeprefix(_COMMAND), _CODE)
    directory, _, rest = _split(rest.removeprefix("Working Directory: "), _STDOUT)
    try:
        stdout, _, stderr = _split(rest, _STDERR)
    except ValueError:
        if not is_truncated:
            raise
        # The heading lies in what was left out, so what follows the marker is stderr.
        stdout, _, stderr = rest.partition(TRUNCATED)
    return BashData(
        command=_unmarked(command, _CODE),
        exit_code=int(code),
        working_dir=_unmarked(directory, _STDOUT),
        stdout="" if stdout == NO_OUTPUT else _unmarked(stdout, _STDERR, NO_OUTPUT),
        stderr="" if stderr == NO_ERRORS else _unmarked(stderr, None, NO_ERRORS),
        is_truncated=is_truncated or TRUNCATED in command,
        timeout=timeout,
    )


_COMMAND = "Command: "
_CODE = r"Exit Code: (-?\d+)"
_STDOUT = r"STDOUT:"
_STDERR = r"STDERR:"


def _marked(text: str, heading: str | None, placeholder: str | None = None) -> str:
    """Return text in which no line can be taken for the heading that follows it."""
    if placeholder is not None and re.fullmatch(rf"\\*{re.escape(placeholder)}", text):
        return f"\\{text}"
    return text if heading is None else re.sub(rf"^(\\*{heading}$)", r"\\\1", text, flags=re.M)


def _unmarked(text: str, heading: str | None, placeholder: str | None = None) -> str:
    if placeholder is not None and re.fullmatch(rf"\\+{re.escape(placeholder)}", text):
        return text[1:]
    return text if heading is None else re.sub(rf"^\\(\\*{heading}$)", r"\1", text, flags=re.M)


def _split(text: str, heading: str) -> tuple[str, str, str]:
    """Return what stands before a heading's line, the value in it, and what stands after."""
    before = r"\n" if heading == _CODE else r"\n\n"
    found = re.search(rf"{before}{heading}(?:\n|\Z)", text)
    if found is None:
        raise ValueError(f"not a report: it has no line {heading!r}")
    value = found[1] if found.groups() else ""
    return text[: found.start()], value, text[found.end() :]


def _ends(most: int) -> tuple[int, int]:
    """Return how much is kept of both ends of a report that may be so long."""
    if most >= START + END + len(TRUNCATED):
        return START, END
    room = most - len(TRUNCATED)
    start = room * START // (START + END)
    return start, room - start


def _is_cut_at(text: str, start: int, end: int) -> bool:
    size = start + len(TRUNCATED) + end
    return len(text) == size and text.startswith(TRUNCATED, start)


def _cut(data: BashData, said: str | None, most: int) -> tuple[str, bool]:
    """Return the report, with what is said before it, as long as it may be."""
    lead = f"{' '.join(said.split())}\n\n" if said else ""
    text = lead + format_report(data)
    if len(text) <= most:
        return text, False
    start, end = _ends(most)
    room = start // _COMMAND_SHARE
    if len(data.command) > room:
        part = (room - len(TRUNCATED)) // 2
        short = cut.middle(data.command, part, part, TRUNCATED)
        text = lead + format_report(replace(data, command=short))
    if len(text) <= most:
        return text, True
    return cut.middle(text, start, end, TRUNCATED), True
