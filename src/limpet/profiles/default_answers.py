"""What the `default` profile tells: the output first, then what cannot be seen in it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from limpet.profiles import cut
from limpet.profiles.answer import Answer, kept_in
from limpet.profiles.asks import TaskFacts, TaskReading, TaskWaited
from limpet.result import Outcome, Result
from limpet.tasks.notices import Notice
from limpet.tasks.stop import Stopped

_LONGEST_COMMAND = 100


@dataclass(frozen=True)
class BashData:
    """Of `bash`."""

    output: str
    """As the model reads it."""
    outcome: str
    """How the call ended; `backgrounded` is a task that goes on."""
    exit_code: int | None = None
    signal: str | None = None
    duration_s: float = 0.0
    truncated: bool = False
    omitted_bytes: int = 0
    omitted_lines: int = 0
    total_bytes: int = 0
    spill_path: str | None = None
    """The file with all of the output, if it is not all here."""
    task_id: str | None = None
    pid: int | None = None
    """Of a task."""
    survivors: list[dict[str, Any]] | None = None
    cwd: str = ""
    sandbox: dict[str, Any] | None = None
    verdict: dict[str, Any] | None = None
    hint: str | None = None
    display: str = ""
    description: str | None = None


@dataclass(frozen=True)
class OutputData:
    """Of `bash_output`."""

    task: TaskFacts
    text: str
    cursor: int
    more: bool
    matches: int


@dataclass(frozen=True)
class WaitData:
    """Of `bash_wait` and `bash_send`."""

    task: TaskFacts
    matched: str
    """`exit`, `regex`, `port`, `quiet` or `timeout`."""
    match: str | None
    text: str
    cursor: int
    more: bool


@dataclass(frozen=True)
class StopData:
    """Of `bash_stop`."""

    task_id: str
    status: str
    exit_code: int | None
    what: str


@dataclass(frozen=True)
class ListData:
    """Of `bash_list`."""

    tasks: list[TaskFacts]


class Answers:
    """All answers of one budget, in characters."""

    def __init__(self, budget: int) -> None:
        self._budget = budget

    def bash(self, given: object, value: Result | TaskFacts) -> Answer:
        """Tell of a command that has ended, or has become a task."""
        return _started(value) if isinstance(value, TaskFacts) else self._ended(value)

    def _ended(self, result: Result) -> Answer:
        fitted = cut.by_lines(result.output, self._budget)
        facts = _facts(result, fitted)
        never_ran = result.outcome in (Outcome.REFUSED, Outcome.FAILED_TO_START)
        return Answer(
            _with_facts(fitted.text, facts) if facts else fitted.text or "(no output)",
            is_error=result.is_error,
            data=_data(result, fitted),
            can_retry=never_ran or result.outcome is Outcome.TIMED_OUT,
        )

    def output(self, given: object, found: TaskReading) -> Answer:
        """Tell what a task has printed."""
        reading = found.reading
        facts = [_state(found.task), f"cursor {reading.cursor}"]
        if reading.matches or getattr(given, "search", None) is not None:
            facts.append(f"{reading.matches} lines match")
        if reading.more:
            facts.append("there is more from there")
        data = OutputData(found.task, reading.text, reading.cursor, reading.more, reading.matches)
        return Answer(_with_facts(reading.text, facts), data=asdict(data))

    def waited(self, given: object, found: TaskWaited) -> Answer:
        """Tell what a wait came to, and what is new."""
        waited = found.waited
        text = cut.by_lines(waited.text, self._budget).text
        facts = [_matched(found), _state(found.task), f"cursor {waited.cursor}"]
        if waited.more:
            facts.append("there is more from there")
        data = WaitData(found.task, waited.matched, waited.match, text, waited.cursor, waited.more)
        return Answer(_with_facts(text, facts), data=asdict(data))

    def said(self, given: object, found: TaskWaited) -> Answer:
        """Tell what a task said to what was typed."""
        answer = self.waited(given, found)
        text = answer.data["text"]
        facts = [_state(found.task), f"cursor {found.waited.cursor}"]
        return answer._replace(text=_with_facts(text, facts))

    def listed(self, given: object, tasks: tuple[TaskFacts, ...]) -> Answer:
        """Tell which tasks there are."""
        text = "\n".join(map(_row, tasks)) or "(no tasks)"
        return Answer(cut.by_lines(text, self._budget).text, data=asdict(ListData([*tasks])))


def stopped(given: object, found: Stopped) -> Answer:
    """Tell what stopping a task came to."""
    data = StopData(found.task_id, found.status.value, found.exit_code, found.what)
    text = f"[task {found.task_id}: {found.status}: {found.what}]"
    return Answer(text, is_error=data.status == "running", data=asdict(data))


def ended(notice: Notice) -> str:
    """Tell that a task has ended, below an answer to something else."""
    code = "" if notice.exit_code is None else f" {notice.exit_code}"
    last = notice.last_lines.strip().rpartition("\n")[2]
    how = f"{notice.status}{code} after {notice.duration_s:.1f} s"
    return f"[meanwhile task {notice.task_id}: {how}{f'; its last line: {last}' if last else ''}]"


def _started(task: TaskFacts) -> Answer:
    text = f"[started task {task.id}, pid {task.pid}; its output goes to {task.output_path}]"
    data = BashData(
        output="",
        outcome=Outcome.BACKGROUNDED.value,
        spill_path=task.output_path,
        task_id=task.id,
        pid=task.pid,
        display=task.display,
        description=task.description,
    )
    return Answer(text, data=asdict(data))


def _facts(result: Result, fitted: cut.Fitted) -> list[str]:
    """Return what a model must know beside the output; nothing, if all went well."""
    facts = []
    if not result.ok:
        facts.append(_how(result))
    if result.truncated or fitted.is_cut:
        lines = result.omitted_lines + fitted.omitted_lines
        chars = result.omitted_bytes + fitted.omitted_chars
        much = f"{lines:,} lines" if lines else f"{chars:,} characters"
        facts.append(
            "; ".join(filter(None, [f"{much} of the output were left out", kept_in(result)]))
        )
    if result.hint:
        facts.append(result.hint)
    return facts


def _how(result: Result) -> str:
    match result.outcome:
        case Outcome.EXITED:
            return f"exit code {'unknown' if result.exit_code is None else result.exit_code}"
        case Outcome.SIGNALED:
            return f"killed by {result.signal}, exit code {result.exit_code}"
        case Outcome.REFUSED:
            return "nothing ran"
        case Outcome.FAILED_TO_START:
            return "could not start, nothing ran"
        case Outcome.TIMED_OUT | Outcome.OUTPUT_CAPPED:
            how = result.outcome.value.replace("_", " ")
            return f"{how} after {result.duration_s:.1f} s"
        case Outcome.CANCELLED | Outcome.BACKGROUNDED:
            return result.outcome.value


def _data(result: Result, fitted: cut.Fitted) -> dict[str, Any]:
    values = result.to_dict()
    known = BashData.__dataclass_fields__.keys() - {"output", "pid"}
    data = BashData(output=fitted.text, **{name: values[name] for name in known})  # type: ignore[arg-type]  # of the same names
    return asdict(data)


def _matched(found: TaskWaited) -> str:
    match found.waited.matched:
        case "timeout":
            return "nothing of that within the time"
        case "regex":
            return f"it printed {found.waited.match!r}"
        case "port":
            return f"it listens on port {found.waited.match}"
        case "quiet":
            return "it is quiet"
        case "exit":
            return "it has ended"


def _row(task: TaskFacts) -> str:
    what = " ".join((task.description or task.command).split())
    if len(what) > _LONGEST_COMMAND:
        what = what[:_LONGEST_COMMAND] + "…"
    last = f" — {task.last_line}" if task.last_line else ""
    return f"{_state(task)}: {what}{last}"


def _state(task: TaskFacts) -> str:
    code = "" if task.exit_code is None else f" {task.exit_code}"
    signal = f" by {task.signal}" if task.signal else ""
    reason = f" ({task.reason})" if task.reason else ""
    return f"{task.id} {task.status}{code}{signal} after {task.duration_s:.1f} s{reason}"


def _with_facts(text: str, facts: list[str]) -> str:
    body = text if not text or text.endswith("\n") else f"{text}\n"
    return f"{body}[{'; '.join(facts)}]"
