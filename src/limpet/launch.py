"""A request becomes a running shell, or the reason why it cannot."""

from __future__ import annotations

import errno
import os
import stat
import termios
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from limpet.events import Stream
from limpet.output.capture import Pipe
from limpet.policy import Policy
from limpet.process import env, reap, spawn, table
from limpet.process.prelude import AnonymousFile, Prelude, Report
from limpet.verdict import Verdict

if TYPE_CHECKING:
    from limpet.process.steps import Step
    from limpet.result import SandboxReport
    from limpet.sandbox.confine import Confinement


class Terminal(NamedTuple):
    """Both ends of a pseudo terminal."""

    ours: int
    theirs: int


_CONTROL_THIS = ("ioctl", (0, termios.TIOCSCTTY, 0))
"""Makes standard input the terminal that controls the session, which is new."""


class Request(NamedTuple):
    """One call, complete and of the right types."""

    command: str
    cwd: str
    workspace: str
    """Where the conversation began, whatever its commands have moved it to since."""
    timeout_s: float
    policy: Policy
    inherited: Mapping[bytes, bytes]
    """The environment that the policy inherits from."""
    env: Mapping[str, str] | None = None
    stdin: bytes | int | None = None
    """What it reads, or the descriptor it reads from."""
    description: str | None = None
    on_timeout: Literal["kill", "background"] = "kill"
    verdict: Verdict | None = None
    """What the rules say about it, if there are any."""
    terminal: Terminal | None = None
    """Its terminal; else it has none."""
    reaper: int = 0
    """Who gets its orphans, if nobody else's become children of the same process."""
    is_alone: bool = False
    """True if no other call is under way, so that a moment may be spent on this one only."""


class CannotStart(Exception):
    """Nothing ran; the message says what to change."""


class Launched(NamedTuple):
    """A shell at work, and what must be kept while it is."""

    child: reap.Child
    started_s: float
    pipes: list[Pipe]
    prelude: Prelude | None
    script: AnonymousFile | None
    confinement: Confinement | None

    def report(self) -> Report | None:
        """Return what the shell reported at its end, if it was asked to and did."""
        return self.prelude.report() if self.prelude is not None else None

    def sandbox_report(self, output: str, cwd: str) -> SandboxReport | None:
        """Return what confined it, and what it was probably kept from."""
        return None if self.confinement is None else self.confinement.report(output, cwd)

    def close(self) -> None:
        """Give up the files that bash opens by their path: they must outlast its start."""
        for file in (self.prelude, self.script):
            if file is not None:
                file.close()
        if self.confinement is not None:
            self.confinement.leave()


def launch(request: Request, run_id: str) -> Launched:
    """Start the shell of a request.

    Raises:
        CannotStart: It cannot be started; nothing is left behind.
    """
    if problem := _unreadable(request):
        raise CannotStart(problem)
    confinement = _confinement(request)
    opened: list[Pipe | Prelude | AnonymousFile] = []
    try:
        return _launch(request, run_id, confinement, opened)
    except (OSError, UnicodeEncodeError) as error:
        for thing in opened:
            thing.close()
        if confinement is not None:
            confinement.leave()
        raise CannotStart(_explain(error, request)) from error


def _confinement(request: Request) -> Confinement | None:
    """Return what the run is to be started in; None if nothing confines it."""
    policy = request.policy
    if policy.sandbox.mode == "off" and policy.limits is None:
        return None
    from limpet.sandbox.confine import Confinement  # ctypes and more, for those who want it

    try:
        terminal = None if request.terminal is None else os.ttyname(request.terminal.theirs)
        return Confinement(policy, request.workspace, request.inherited, terminal)
    except ValueError as error:
        raise CannotStart(str(error)) from None


def _launch(
    request: Request,
    run_id: str,
    confinement: Confinement | None,
    opened: list[Pipe | Prelude | AnonymousFile],
) -> Launched:
    policy = request.policy
    environment = env.build(policy.environment, request.inherited, request.env, run_id, request.cwd)
    secrets = env.secret_values(policy.environment, request.inherited, request.env)
    shell = spawn.find_program(policy.shell)
    if shell is None:
        raise FileNotFoundError(errno.ENOENT, "no such program", policy.shell)
    # Jailed, it cannot open our files by their path; and it may outlive us, and with us the path.
    inherits = confinement is not None or request.on_timeout == "background"
    arguments, script = _arguments(shell, request.command, opened, inherited=inherits)
    prelude = None
    if confinement is not None:
        confinement.prepare(environment)
    if policy.persist_cwd or "|" in request.command:
        prelude = Prelude(environment, inherited=inherits)
        opened.append(prelude)
    stdin = AnonymousFile(request.stdin) if isinstance(request.stdin, bytes) else None
    write_ends: list[int] = []
    pipes: list[Pipe] = []
    try:
        for read_end, write_end, stream in _open_streams(request):
            write_ends.append(write_end)
            is_terminal = request.terminal is not None
            pipes.append(Pipe(read_end, stream, secrets, is_terminal=is_terminal))
            opened.append(pipes[-1])

        started_s = time.monotonic()
        since_ticks = table.now_ticks()
        pid = spawn.start(
            shell,
            arguments,
            environment=environment.entries(),
            cwd=request.cwd,
            stdin=stdin.rewound() if stdin is not None else _descriptor(request),
            stdout=write_ends[0],
            stderr=write_ends[-1],
            keep=_kept(prelude, script) if inherits else (),
            steps=_steps(request, confinement),
            by=confinement.starter if confinement is not None else None,
        )
    finally:
        for end in write_ends:
            os.close(end)
        if stdin is not None:
            stdin.close()
    child = reap.Child(pid, run_id, since_ticks, request.reaper)
    reap.register(child)
    return Launched(child, started_s, pipes, prelude, script, confinement)


def _kept(prelude: Prelude | None, script: AnonymousFile | None) -> tuple[int, ...]:
    """Return what a shell inherits that cannot open our files by their path."""
    scripts = () if script is None else (script.fd,)
    return scripts if prelude is None else scripts + prelude.kept


def _open_streams(request: Request) -> Iterator[tuple[int, int, Stream]]:
    """Yield the two ends of what it writes to: a pipe, or two, or its terminal."""
    if request.terminal is not None:
        yield os.dup(request.terminal.ours), os.dup(request.terminal.theirs), "stdout"
        return
    yield *os.pipe(), "stdout"
    if request.policy.output.streams == "separate":
        yield *os.pipe(), "stderr"


def _descriptor(request: Request) -> int | None:
    if request.terminal is not None:
        return request.terminal.theirs
    return request.stdin if isinstance(request.stdin, int) else None


def _steps(request: Request, confinement: Confinement | None) -> list[Step]:
    """Return what the child does before it becomes a shell."""
    steps: list[Step] = [] if request.terminal is None else [_CONTROL_THIS]
    return steps if confinement is None else steps + confinement.steps()


def _arguments(
    shell: str, command: str, opened: list[Pipe | Prelude | AnonymousFile], *, inherited: bool
) -> tuple[list[bytes], AnonymousFile | None]:
    """Return bash's arguments: the command itself, or a script file if it is too long for one."""
    encoded = os.fsencode(command)
    # By a name alone, bash would look for itself on all of PATH; $0 is what its errors begin with.
    # Where it takes itself for started by sshd it would read ~/.bashrc, and no prelude.
    name = [os.fsencode(shell), b"--norc"]
    if len(encoded) <= spawn.LONGEST_ARGUMENT:
        return [*name, b"-c", b"--", encoded, b"bash"], None
    script = AnonymousFile(encoded, inherited=inherited)
    opened.append(script)
    return [*name, b"--", os.fsencode(script.path)], script


def _unreadable(request: Request) -> str | None:
    command, cwd = request.command, request.cwd
    if not cwd:
        return "this program's own working directory was deleted: give ToolContext(working_dir=…)"
    if "\0" in cwd:
        return "the working directory's name holds a NUL byte, which no name can: remove it"
    if not command or command.isspace():
        return "the command is empty: give a shell command to run"
    if "\0" in command:
        return "the command holds a NUL byte, which no shell can read: remove it"
    return None


def _explain(error: OSError | UnicodeEncodeError, request: Request) -> str:
    """Say why nothing ran, and what to change."""
    if isinstance(error, UnicodeEncodeError):
        return "it holds characters that cannot be encoded (lone surrogates): remove them"
    if problem := _problem_with(request.cwd):
        return f"the working directory {problem}: {request.cwd}: give another"
    match error.errno:
        case errno.ENOENT | errno.EACCES | errno.ENOEXEC:
            advice = "install bash, or name it in Policy.shell"
        case errno.E2BIG:
            advice = "the environment is larger than the kernel passes on: exclude variables"
        case errno.EMFILE | errno.ENFILE:
            advice = "this program has too many files open: close some or raise `ulimit -n`"
        case errno.EAGAIN | errno.ENOMEM:
            advice = "the machine is out of processes or memory: try again later"
        case _:
            advice = "see the system's message"
    reason = error.strerror or str(error)
    return f"{request.policy.shell} could not be started: {reason}: {advice}"


def _problem_with(cwd: str) -> str | None:
    try:
        mode = os.stat(cwd).st_mode
    except PermissionError:
        return "may not be entered by this user"
    except OSError as error:
        return "does not exist" if error.errno == errno.ENOENT else f"cannot be used ({error})"
    if not stat.S_ISDIR(mode):
        return "is not a directory"
    return None if os.access(cwd, os.X_OK) else "may not be entered by this user"
