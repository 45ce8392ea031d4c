"""What is known at the end of a run becomes its result."""

from __future__ import annotations

from typing import NamedTuple

from limpet.launch import Request
from limpet.output.capture import Captured
from limpet.process.prelude import Report
from limpet.process.reap import Ended
from limpet.result import Outcome, Result, SandboxReport, Survivor, Usage


class End(NamedTuple):
    """How a run ended."""

    outcome: Outcome
    duration_s: float
    ended: Ended
    captured: Captured
    report: Report | None
    survivors: tuple[Survivor, ...]
    peak_memory_bytes: int | None
    reading: str | None
    """Who was waiting for input at the time limit, and from where."""
    task_id: str | None
    """The task that goes on with it, or with its survivors."""
    adopt_error: Exception | None
    """Why there is none."""
    sandbox: SandboxReport | None


def conclude(request: Request, end: End) -> Result:
    """Return the result of a run."""
    captured, ended, report = end.captured, end.ended, end.report
    cwd = report.cwd if report and request.policy.persist_cwd else request.cwd
    return Result(
        command=request.command,
        display=_display(request),
        description=request.description,
        outcome=end.outcome,
        exit_code=ended.exit_code,
        signal=ended.signal,
        stdout=captured.stdout,
        stderr=captured.stderr,
        output=captured.output,
        duration_s=end.duration_s,
        truncated=captured.truncated,
        omitted_bytes=captured.omitted_bytes,
        omitted_lines=captured.omitted_lines,
        total_bytes=captured.total_bytes,
        omitted_by_stream=captured.omitted_by_stream,
        spill_path=captured.spill_path,
        task_id=end.task_id,
        survivors=end.survivors,
        cwd=cwd,
        cwd_changed=cwd != request.cwd,
        usage=Usage(end.duration_s, ended.cpu_s, end.peak_memory_bytes),
        verdict=request.verdict,
        sandbox=end.sandbox,
        hint=_hint(request, end),
    )


def nothing_ran(request: Request, outcome: Outcome, why: str) -> Result:
    """Return the result of a request that was not started."""
    return Result(
        command=request.command,
        display=_display(request),
        description=request.description,
        outcome=outcome,
        cwd=request.cwd,
        verdict=request.verdict,
        hint=why,
    )


def _display(request: Request) -> str:
    if not request.command.lstrip().startswith("cd"):
        return request.command
    from limpet.command.display import display  # as slow to import as all of the rest

    return display(request.command, request.cwd)


def _hint(request: Request, end: End) -> str | None:
    succeeded = end.outcome is Outcome.EXITED and end.ended.exit_code == 0
    has_news = end.sandbox is not None and (end.sandbox.denials or end.sandbox.changed)
    if succeeded and not (end.report or end.survivors or end.captured.save_error or has_news):
        return None
    from limpet.hint import Ending, hint  # slow to import, and there is often nothing to say

    return hint(
        Ending(
            command=request.command,
            outcome=end.outcome,
            exit_code=end.ended.exit_code,
            signal=end.ended.signal,
            output=end.captured.output,
            total_bytes=end.captured.total_bytes,
            timeout_s=request.timeout_s,
            cap=end.captured.cap,
            task_id=end.task_id,
            adopt_error=end.adopt_error,
            log_path=end.captured.spill_path,
            save_error=end.captured.save_error,
            reading=end.reading,
            pipe_codes=end.report.pipe_codes if end.report else (),
            survivors=end.survivors,
            limits=request.policy.effective_limits,
            cpu_s=end.ended.cpu_s,
            sandbox=end.sandbox,
        )
    )
