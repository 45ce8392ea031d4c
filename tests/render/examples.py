"""Panels of fixed values, and panels in which all text from outside is the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rich.console import RenderableType

from limpet.render import boxes
from limpet.render.live import LiveState, live_view
from limpet.render.report import report_panel
from limpet.render.tasks import Row, TaskTable, output_footer, output_header, row_of
from limpet.render.verdict import verdict_view
from limpet.result import Outcome, Result
from limpet.tasks.record import End, Mark, Record, State, TaskStatus
from limpet.verdict import Decision, Finding, Verdict

NOBODY = Mark(0, 0)
BUILT = Result(
    command="npm run build",
    description="Build the project",
    outcome=Outcome.EXITED,
    exit_code=0,
    cwd="/home/me/mycode",
    stdout="> mycode@1.0.0 build\n> tsc\n\nBuild completed successfully.\n",
    duration_s=4.2,
)
INSTALLED = Result(
    command="npm install",
    outcome=Outcome.EXITED,
    exit_code=0,
    output="added 1 package in 1s\n⠋ Installing dependencies...\n✓ added 523 packages in 32s\n",
    duration_s=32.4,
)
LOGGED = Result(
    command="cat large-file.log",
    outcome=Outcome.EXITED,
    exit_code=0,
    truncated=True,
    output="[10:00:00] Starting application...\n...\n\n... (45,678 characters truncated) ...\n\n"
    "[10:15:43] Shutting down...\n",
)
FAILED = Result(
    command="cd src && pytest -q --maxfail=3 tests/unit tests/integration -k 'not slow'",
    outcome=Outcome.EXITED,
    exit_code=1,
    cwd="/home/me/mycode/src",
    stdout="".join(f"test {number} passed\n" for number in range(1, 101)),
    stderr="warning: 警告\nerror: 1 failed\n",
    duration_s=12.3456,
    truncated=True,
)
JSON = replace(BUILT, command="cat x.json", stdout='{\n  "name": "x",\n  "list": [1, true]\n}\n')
DIFF = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"


def refusal(command: str, part: str, decision: Decision = "deny") -> Verdict:
    start = command.encode("utf-8", "surrogatepass").find(part.encode("utf-8", "surrogatepass"))
    end = start + len(part.encode("utf-8", "surrogatepass"))
    advice = "if you need to delete files, specify exact paths"
    finding = Finding("rm-dangerous", "Recursive delete from root", advice, start, end)
    return Verdict(command, decision, (finding,))


def state(
    status: TaskStatus, *, exit_code: int | None = None, text: str = "npm run dev", task: str = "1"
) -> State:
    end = None
    if status not in (TaskStatus.RUNNING, TaskStatus.LOST):
        end = End(status, exit_code, None, None, 1060.0, 60.0, 0, "")
    record = Record(
        id=f"bash-00000{task}", command=text, display="", description=None, session_id=None,
        cwd=text, origin="started", run_id="", shell=NOBODY, since_ticks=0, processes=(),
        supervisor=NOBODY, boot_id="", started_at=1000.0, timeout_s=None, kill_grace_s=1.0,
        input="none", columns=80, rows=24, sandbox="off", confinement_id="",
        host=NOBODY, end=end,
    )  # fmt: skip
    return State(record, status, text if status is TaskStatus.LOST else None)


def rows() -> list[Row]:
    passed = state(TaskStatus.EXITED, exit_code=0, text="npm test --coverage; echo 完了", task="2")
    failed = state(TaskStatus.EXITED, exit_code=2, text="make\nmake install", task="3")
    return [
        row_of(state(TaskStatus.RUNNING), "listening on http://localhost:3000", 1003.0),
        row_of(passed, "漢字の長い最後の行がここにあります。とても長いです", 1400.0),
        row_of(failed, "", 8300.0),
        row_of(state(TaskStatus.TIMED_OUT, exit_code=143, task="4"), "…", 200000.0),
        row_of(state(TaskStatus.LOST, task="5"), "last words", 1000.0),
    ]


def live(columns: int, rows: int, *lines: str) -> LiveState:
    return LiveState("Build the project", 12.34, 123_456, 789, lines, 3, columns, rows)


PANELS: dict[str, Callable[[], RenderableType]] = {
    "report": lambda: report_panel(FAILED, timeout_s=30, viewport_lines=8),
    "report-json": lambda: report_panel(JSON, timeout_s=0.5),
    "report-empty": lambda: report_panel(Result(command="true", outcome=Outcome.EXITED,
                                                exit_code=0, cwd="/"), timeout_s=120),
    "report-hint": lambda: report_panel(
        Result(command="sleep 9", outcome=Outcome.TIMED_OUT, cwd="/", duration_s=5.0,
               hint="killed at the limit of 5 s"), timeout_s=5),
    "running": lambda: boxes.running("npm run build", "Build the project"),
    "completed": lambda: boxes.completed(BUILT),
    "failed": lambda: boxes.completed(replace(FAILED, stdout="1 passed\n")),
    "background": lambda: boxes.background_started(
        "bash-abc123", "npm test", "/tmp/mycode-bash-abc123.log"),
    "background-host": lambda: boxes.background_started(
        "bash-abc123", "npm test", "/tmp/mycode-bash-abc123.log",
        hints=("Use /tasks to check status", "Use TaskOutput to get results")),
    "streaming": lambda: boxes.streaming(INSTALLED),
    "truncated": lambda: boxes.truncated(LOGGED),
    "blocked": lambda: boxes.blocked(refusal("rm -rf /", "rm -rf /")),
    "blocked-part": lambda: boxes.blocked(
        refusal("cd /srv/日本\t&& sudo rm -rf / && ls", "rm -rf /")),
    "blocked-ask": lambda: boxes.blocked(refusal("npm publish", "npm publish", "ask"),
                                         more="Add it to `allow`."),
    "verdict": lambda: verdict_view(
        refusal("echo one two three four 日本 && \trm -rf / && echo five six", "rm -rf /")),
    "verdict-allow": lambda: verdict_view(Verdict("ls", "allow")),
    "tasks": lambda: TaskTable(rows()),
    "output-header": lambda: output_header(state(TaskStatus.RUNNING)),
    "output-footer": lambda: output_footer(state(TaskStatus.EXITED, exit_code=2)),
    "output-lost": lambda: output_footer(state(TaskStatus.LOST, text="its supervisor is gone")),
}  # fmt: skip


def hostile(text: str, width: int, height: int) -> dict[str, RenderableType]:
    """Return every panel, with the same text in every place that takes text from outside."""
    done = Result(command=text, display=text, description=text, outcome=Outcome.EXITED,
                  exit_code=1, cwd=text, stdout=text, stderr=text, output=text, hint=text,
                  duration_s=1.0)  # fmt: skip
    signaled = replace(done, outcome=Outcome.SIGNALED, signal=text)
    size = len(text.encode("utf-8", "surrogatepass"))
    findings = (Finding(text, text, text, 0, size), Finding(text, text, text, size // 2, size))
    verdict = Verdict(text, "deny", findings)
    running, lost = state(TaskStatus.RUNNING, text=text), state(TaskStatus.LOST, text=text)
    return {
        "report": report_panel(done, timeout_s=1, viewport_lines=6),
        "report of a signal": report_panel(signaled, timeout_s=1),
        "running": boxes.running(text),
        "completed": boxes.completed(done),
        "background": boxes.background_started(text, text, text, hints=(text, "{id}")),
        "streaming": boxes.streaming(done),
        "truncated": boxes.truncated(done),
        "blocked": boxes.blocked(verdict, more=text),
        "verdict": verdict_view(verdict),
        "tasks": TaskTable([row_of(running, text, 1000.0)]),
        "header": output_header(running),
        "footer": output_footer(lost),
        "live": live_view(LiveState(text, 1.0, 1, 1, (text, text), 1, width, height)),
    }
