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
_SEEN_BYTES = 4 * MAX_OUTPUT
"""Of each end of a stream: more than a report can show."""
_PARTS = {"lead": 4, "command": 3, "working_dir": 4}
"""What share of the start each may take: the facts and the headings come after them."""


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
        tools=(Tool("bash", _BASH, BashInput, _ask, tell, title="Run a command", data=BashData),),
    )


_BASH = f"""\
Execute one plain shell command and report its exit code, stdout and stderr.

The rules are strict: no `;`, `&`, backticks, braces or `$(...)`, but `$NAME` and `${{NAME}}`, \
pipes and redirects are fine; nothing that removes recursively, formats or partitions. Stopped \
after `timeout` seconds ({LEAST_S} to {MOST_S}, {TIMEOUT_S} if not given). A refused command or a \
time-out is an error: change the command and try again."""


def _shape(policy: Policy) -> Policy:
    output = replace(
        policy.output,
        streams="separate",
        head_bytes=_SEEN_BYTES,
        tail_bytes=_SEEN_BYTES,
        cut_mark=cut.JOIN,
    )
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
    data = replace(data, is_truncated=is_cut)
    is_error = result.is_error and result.outcome is not Outcome.SIGNALED
    return Answer(text, is_error=is_error, data=asdict(data), can_retry=is_error)


def _data(given: BashInput, result: Result) -> BashData:
    code = result.exit_code
    if result.outcome is Outcome.SIGNALED and result.signal:
        code = -signal.Signals[result.signal]
    shows = given.capture_output
    return BashData(
        command=given.command,
        exit_code=-1 if code is None else code,
        working_dir=result.cwd,
        stdout=result.stdout.strip().replace(cut.JOIN, TRUNCATED) if shows else "",
        stderr=result.stderr.strip().replace(cut.JOIN, TRUNCATED) if shows else "",
        is_truncated=shows and any(result.omitted_by_stream),
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

_COMMAND, _DIRECTORY = "Command: ", "Working Directory: "
_CODE, _STDOUT, _STDERR = r"Exit Code: (-?\d+)", r"STDOUT:", r"STDERR:"
_MARKER = r"\[truncated\]"
"""The line that tells a report that was cut; in one that was not, such a line is marked too."""


def format_report(data: BashData) -> str:
    """Return a report; a backslash marks lines of a value that read like what follows it."""
    also = () if data.is_truncated else (_MARKER,)
    return "\n".join(
        [
            f"{_COMMAND}{_marked(data.command, _CODE, *also)}",
            f"Exit Code: {data.exit_code}",
            f"{_DIRECTORY}{_marked(data.working_dir, _STDOUT, *also)}",
            "",
            "STDOUT:",
            _marked(data.stdout, _STDERR, _whole(NO_OUTPUT), *also) or NO_OUTPUT,
            "",
            "STDERR:",
            _marked(data.stderr, _whole(NO_ERRORS), *also) or NO_ERRORS,
        ]
    )


def parse_report(text: str, timeout: int = TIMEOUT_S) -> BashData:
    """Return what a report says, whatever the command and its output look like.

    Raises:
        ValueError: It is not a report.
    """
    body = text if text.startswith(_COMMAND) else text.partition("\n\n")[2]
    is_truncated = re.search(rf"^{_MARKER}$", body, re.M) is not None
    also = () if is_truncated else (_MARKER,)
    command, code, rest = _split(body.removeprefix(_COMMAND), rf"\n{_CODE}\n")
    directory, _, rest = _split(rest.removeprefix(_DIRECTORY), rf"\n\n{_STDOUT}\n")
    try:
        stdout, _, stderr = _split(rest, rf"\n\n{_STDERR}\n")
    except ValueError:
        if not is_truncated:
            raise
        # The heading lies in what was left out, so what follows the marker is stderr.
        stdout, _, stderr = rest.partition(TRUNCATED)
    return BashData(
        command=_unmarked(command, _CODE, *also),
        exit_code=int(code),
        working_dir=_unmarked(directory, _STDOUT, *also),
        stdout="" if stdout == NO_OUTPUT else _unmarked(stdout, _STDERR, _whole(NO_OUTPUT), *also),
        stderr="" if stderr == NO_ERRORS else _unmarked(stderr, _whole(NO_ERRORS), *also),
        is_truncated=is_truncated,
        timeout=timeout,
    )


def _whole(placeholder: str) -> str:
    return rf"\A\\*{re.escape(placeholder)}\Z"


def _marked(text: str, *readings: str) -> str:
    """Return text in which no line can be taken for something else."""
    for reading in readings:
        if reading.startswith(r"\A"):
            text = re.sub(rf"({reading})", r"\\\1", text)
        else:
            text = re.sub(rf"^(\\*{reading})$", r"\\\1", text, flags=re.M)
    return text


def _unmarked(text: str, *readings: str) -> str:
    for reading in reversed(readings):
        if reading.startswith(r"\A"):
            if re.search(reading, text):
                text = text.removeprefix("\\")
        else:
            text = re.sub(rf"^\\(\\*{reading})$", r"\1", text, flags=re.M)
    return text


def _split(text: str, heading: str) -> tuple[str, str, str]:
    """Return what stands before a heading, the value in it, and what stands after."""
    found = re.search(heading, text)
    if found is None:
        raise ValueError(f"not a report: it has no {heading.strip()!r}")
    return text[: found.start()], found[1] if found.groups() else "", text[found.end() :]


def _ends(most: int) -> tuple[int, int]:
    """Return how much is kept of both ends of a report that may be so long."""
    if most >= START + END + len(TRUNCATED):
        return START, END
    room = most - len(TRUNCATED)
    start = room * START // (START + END)
    return start, room - start


def _cut(data: BashData, said: str | None, most: int) -> tuple[str, bool]:
    """Return the report, with what is said before it, as long as it may be."""
    lead = " ".join(said.split()) if said else ""
    text = _with_lead(lead, format_report(data))
    if len(text) <= most:
        return text, data.is_truncated
    start, end = _ends(most)
    room = {name: start // share for name, share in _PARTS.items()}
    if len(lead) > room["lead"]:
        lead = lead[: room["lead"] - 1] + "…"
    data = replace(
        data,
        command=_fitting(data.command, room["command"]),
        working_dir=_fitting(data.working_dir, room["working_dir"]),
        is_truncated=True,
    )
    text = _with_lead(lead, format_report(data))
    return text if len(text) <= most else cut.middle(text, start, end, TRUNCATED), True


def _with_lead(lead: str, report: str) -> str:
    return f"{lead}\n\n{report}" if lead else report


def _fitting(text: str, room: int) -> str:
    part = (room - len(TRUNCATED)) // 2
    return text if len(text) <= room else cut.middle(text, part, part, TRUNCATED)
