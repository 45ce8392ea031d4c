"""The `streams` profile: a primitive for programs, with stdout and stderr apart.

ctx = PrimitiveContext("/repo")
result = await bash(ctx, "git status", BashOptions().env("LANG", "C").timeout(10))
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, TypeAdapter

from limpet.context import ToolContext
from limpet.errors import LimpetError, SandboxUnavailable
from limpet.policy import Policy, RulePolicy
from limpet.profiles import blocked
from limpet.profiles.answer import Answer, failure, hint_of
from limpet.profiles.asks import Run
from limpet.profiles.input import Input, Variables, Whole
from limpet.profiles.toolbox import Profile, Tool
from limpet.result import Outcome, Result
from limpet.tool import Bash
from limpet.verdict import Verdict

MAX_OUTPUT_SIZE = 10 * 1024 * 1024
"""Of each stream, in bytes."""
TIMEOUT_S = 120.0
_FOREVER_S = 100 * 365 * 86400.0
BLOCKED_COMMANDS = ("rm -rf /", ":(){ :|:& };:", "mkfs", "dd if=/dev/", "> /dev/sd")


# Errors, told apart by what the caller does next


class PrimitiveError(LimpetError):
    """The root of what this module raises."""


class Validation(PrimitiveError, ValueError):
    """The command must not run: change it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class PathNotAllowed(PrimitiveError, PermissionError):
    """The working directory is none of those that the context allows."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"path not allowed: {path}")
        self.path = path


class CommandFailed(PrimitiveError):
    """The command ran, and its exit code is not 0; raised by `bash_success` only."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(f"command failed with exit code {exit_code}: {message}")
        self.exit_code = exit_code
        self.message = message


class Io(PrimitiveError, OSError):
    """The command could not be started."""


# What a call takes


@dataclass(frozen=True)
class PrimitiveContext:
    """Where commands run, and which directories they may be started in."""

    working_dir: str | Path
    allowed_paths: Sequence[str | Path] = ()
    """These and all below; without any, every directory is allowed."""
    operation_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def resolve_path(self, path: str | Path) -> Path:
        """Return a path as it is meant in this context."""
        return Path(self.working_dir).expanduser() / Path(path).expanduser()

    def is_path_allowed(self, path: str | Path) -> bool:
        """True for one of the allowed directories or below it, wherever links lead."""
        if not self.allowed_paths:
            return True
        real = self.resolve_path(path).resolve()
        allowed = (self.resolve_path(one).resolve() for one in self.allowed_paths)
        return any(real.is_relative_to(one) for one in allowed)


@dataclass(frozen=True)
class BashOptions:
    """How a command is run: each method returns another set of options."""

    working_dir_: str | None = None
    env_vars: Mapping[str, str] = field(default_factory=dict)
    clears_env: bool = False
    timeout_s: float | None = TIMEOUT_S
    """None is no limit."""
    blocked_commands: tuple[str, ...] = BLOCKED_COMMANDS
    """These five are taken by what they mean, others as text that no command may contain."""
    max_output_size: int = MAX_OUTPUT_SIZE

    @classmethod
    def new(cls) -> BashOptions:
        """Return the defaults."""
        return cls()

    def working_dir(self, directory: str | Path) -> BashOptions:
        """Run in another directory."""
        return replace(self, working_dir_=str(directory))

    def env(self, key: str, value: str) -> BashOptions:
        """Set a variable."""
        return self.envs({key: value})

    def envs(self, variables: Mapping[str, str]) -> BashOptions:
        """Set several variables."""
        return replace(self, env_vars={**self.env_vars, **variables})

    def clear_env(self) -> BashOptions:
        """Inherit no variables, and set none but those that are given."""
        return replace(self, clears_env=True)

    def timeout(self, limit: float | timedelta) -> BashOptions:
        """Kill it after so many seconds."""
        seconds = limit.total_seconds() if isinstance(limit, timedelta) else float(limit)
        return replace(self, timeout_s=seconds)

    def no_timeout(self) -> BashOptions:
        """Let it take as long as it takes."""
        return replace(self, timeout_s=None)

    def block_command(self, pattern: str) -> BashOptions:
        """Refuse commands that contain this text."""
        return replace(self, blocked_commands=(*self.blocked_commands, pattern))

    def max_output(self, size: int) -> BashOptions:
        """Keep so many bytes of each stream."""
        return replace(self, max_output_size=size)


# What it returns


@dataclass(frozen=True)
class ExecutionMetadata:
    """About one call."""

    duration: Annotated[timedelta, PlainSerializer(timedelta.total_seconds, return_type=float)]
    operation_id: str
    primitive: str = "bash"


@dataclass(frozen=True)
class BashResult:
    """What a command came to."""

    exit_code: int
    """-1 if a signal ended it, or the time limit."""
    stdout: str
    stderr: str
    timed_out: bool
    metadata: ExecutionMetadata

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready values; the duration is in seconds."""
        made: dict[str, Any] = TypeAdapter(BashResult).dump_python(self, mode="json")
        return made


# What it does


async def bash(
    ctx: PrimitiveContext, command: str, options: BashOptions | None = None
) -> BashResult:
    """Execute a command; if the awaiting task is cancelled, all that it started is killed.

    Raises:
        Validation: The command is empty, blocked or dangerous; nothing ran.
        PathNotAllowed: Its directory is not allowed; nothing ran.
        Io: It could not be started.
    """
    chosen = options or BashOptions()
    CommandValidator(chosen.blocked_commands).validate(command)
    directory = ctx.resolve_path(chosen.working_dir_ or ".")
    if not ctx.is_path_allowed(directory):
        raise PathNotAllowed(directory)
    runner = _runner(chosen.clears_env, chosen.max_output_size)
    limit_s = _FOREVER_S if chosen.timeout_s is None else chosen.timeout_s
    try:
        result = await runner.run(
            command,
            timeout_s=limit_s,
            env=chosen.env_vars,
            ctx=ToolContext(directory, session_id=ctx.operation_id),
        )
    except SandboxUnavailable as error:
        raise Io(str(error)) from error
    if result.outcome is Outcome.FAILED_TO_START:
        raise Io(result.hint)
    return _result_of(result, ctx.operation_id)


async def bash_success(
    ctx: PrimitiveContext, command: str, options: BashOptions | None = None
) -> BashResult:
    """Do the same, and raise `CommandFailed` if the exit code is not 0."""
    result = await bash(ctx, command, options)
    if result.exit_code != 0:
        raise CommandFailed(result.exit_code, result.stderr)
    return result


async def bash_sequence(
    ctx: PrimitiveContext, commands: Sequence[str], options: BashOptions | None = None
) -> list[BashResult]:
    """Execute commands one after the other, up to the first that fails."""
    results = []
    for command in commands:
        results.append(await bash(ctx, command, options))
        if results[-1].exit_code != 0:
            break
    return results


@functools.lru_cache(maxsize=64)
def _runner(clears_env: bool, max_output_size: int) -> Bash:
    policy = Policy(rules=RulePolicy(pack="none"))  # `CommandValidator` has looked at it
    return Bash(_shape(policy, clears_env=clears_env, max_output_size=max_output_size))


def _shape(policy: Policy, *, clears_env: bool, max_output_size: int) -> Policy:
    output = replace(
        policy.output,
        streams="separate",
        head_bytes=max_output_size,
        tail_bytes=0,
        cut_mark="",
    )
    environment = policy.environment
    if clears_env:
        environment = replace(environment, inherit="none", not_interactive=False)
    return replace(policy, output=output, environment=environment)


def _result_of(result: Result, operation_id: str) -> BashResult:
    code = result.exit_code if result.outcome is Outcome.EXITED else -1
    return BashResult(
        exit_code=-1 if code is None else code,
        stdout=result.stdout,
        stderr=result.stderr,
        timed_out=result.outcome is Outcome.TIMED_OUT,
        metadata=ExecutionMetadata(timedelta(seconds=result.duration_s), operation_id),
    )


class CommandValidator:
    """Tells commands that must not run from those that may."""

    def __init__(self, blocked_commands: Sequence[str] = ()) -> None:
        self._patterns = tuple(blocked_commands)
        self._check = _checker(self._patterns)

    def validate(self, command: str) -> None:
        """Return if a command may run.

        Raises:
            Validation: It is empty, blocked or dangerous.
        """
        if not command.strip():
            raise Validation("Empty command")
        verdict = self._check.check(command)
        if verdict.decision == "deny":
            raise Validation(_why(verdict, self._patterns))

    @staticmethod
    def escape_arg(arg: str) -> str:
        """Return an argument as one word for the shell, whatever is in it."""
        return "'" + arg.replace("'", "'\\''") + "'"

    @classmethod
    def build_safe_command(cls, cmd: str, args: Iterable[str]) -> str:
        """Return a command line with each argument as one word."""
        return " ".join([cmd, *map(cls.escape_arg, args)])


@functools.lru_cache(maxsize=64)
def _checker(patterns: tuple[str, ...]) -> Bash:
    return Bash(blocked.shaped(Policy(), patterns))


def _why(verdict: Verdict, patterns: tuple[str, ...]) -> str:
    pattern = blocked.pattern_of(verdict, patterns)
    if pattern is not None:
        return f"Command contains blocked pattern: {pattern}"
    if all(finding.rule == "permission" for finding in verdict.findings):
        return "Command is not permitted"
    return "Command appears to be dangerous"


# The same as a tool


class BashInput(Input):
    """Of `bash`."""

    command: str = Field(min_length=1, description="The command to execute.")
    working_dir: str | None = Field(None, description="Where to execute it.")
    env_vars: Variables | None = Field(None, description="Variables to set.")
    clear_env: bool = Field(False, description="Whether to inherit no variables.")
    timeout: float = Field(TIMEOUT_S, gt=0, le=86400, description="When to kill it, in seconds.")
    max_output_size: Whole = Field(
        MAX_OUTPUT_SIZE, ge=1, le=10 * MAX_OUTPUT_SIZE, description="Of each stream, in bytes."
    )


def build(*, blocked_commands: tuple[str, ...] = BLOCKED_COMMANDS) -> Profile:
    """Return the profile.

    Args:
        blocked_commands: As in `BashOptions`.
    """

    def shape(policy: Policy) -> Policy:
        shaped = blocked.shaped(policy, blocked_commands)
        return _shape(shaped, clears_env=False, max_output_size=MAX_OUTPUT_SIZE)

    def ask(given: BashInput) -> Run:
        return Run(
            given.command,
            given.timeout,
            given.env_vars,
            given.working_dir,
            shape=lambda policy: _shape(
                policy, clears_env=given.clear_env, max_output_size=given.max_output_size
            ),
        )

    def tell(given: BashInput, result: Result) -> Answer:
        return _told(result, blocked_commands)

    return Profile(
        name="streams",
        shape=shape,
        tools=(Tool("bash", _BASH, BashInput, ask, tell, title="Run a command", data=BashResult),),
    )


_BASH = """\
Execute a bash command and return its exit code, stdout and stderr, each by itself. Up to 10 MB of \
each stream are returned; the exit code is -1 if a signal or the time limit ended it."""


def _told(result: Result, patterns: tuple[str, ...]) -> Answer:
    match result.outcome:
        case Outcome.REFUSED:
            verdict = result.verdict or Verdict(result.command, "deny")
            text = f"{_why(verdict, patterns)}\n{result.hint or ''}".rstrip()
            return failure("validation", text, can_retry=True)
        case Outcome.FAILED_TO_START:
            return failure("io", result.hint or "could not be started", can_retry=True)
    made = _result_of(result, str(uuid.uuid4()))
    parts = [part.rstrip("\n") for part in (made.stdout, made.stderr) if part.strip()]
    if result.is_error:
        hint = hint_of(result, "raise timeout if it needs longer")
        parts.append(f"[{result.outcome.value.replace('_', ' ')}: {hint}]")
    elif not result.ok:
        parts.append(f"[exit code {made.exit_code}]")
    return Answer("\n".join(parts), is_error=result.is_error, data=made.to_dict())
