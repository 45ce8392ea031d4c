"""What a host decides once for all calls: environment, output, rules, sandbox, limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from limpet.confinement import LimitPolicy, SandboxPolicy, check_number, check_strings

if TYPE_CHECKING:
    from limpet.context import ToolContext
    from limpet.safety.rule import Rule
    from limpet.verdict import Verdict

SECRET_PATTERNS = (
    "*KEY*",
    "*TOKEN*",
    "*SECRET*",
    "*PASSWORD*",
    "*PASSWD*",
    "*PASSPHRASE*",
    "*CREDENTIAL*",
    "*PRIVATE*",
    "*_PAT",
    "*_PWD",
    "*_AUTH",
    "*_DSN",
    "*DATABASE_URL*",
    "*CONNECTION_STRING*",
)
"""Names of variables that carry secrets, matched without regard to case."""


_LEAST_BYTES = {"head_bytes": 0, "tail_bytes": 0, "spill_bytes": 1, "spill_directory_bytes": 1}
_LEAST_COUNTS = {"max_concurrent": 1, "max_tasks": 0, "tasks_kept": 0}


def _check_count(name: str, value: object, least: int, of_what: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number{of_what}, not {value!r}")
    if value < least:
        raise ValueError(f"{name} must be {least} or more, not {value!r}")


Pack = Literal["default", "strict", "none"]
"""The name of a set of rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentPolicy:
    """How a command's environment is made: inherit, exclude, then set."""

    inherit: Literal["all", "core", "none"] = "all"
    """All the host has, or only what programs need to work (PATH, HOME, LANG …), or nothing."""
    login: bool = False
    """Inherit from the user's login profile instead: read once per process, in its own session."""
    exclude: tuple[str, ...] = ()
    """Patterns (`AWS_*`) of inherited names to leave out, matched without regard to case."""
    hide_secrets: bool = False
    """Leave out inherited names that look like secrets, and mask known values in all output."""
    not_interactive: bool = True
    """Set PAGER=cat and the like, so that programs do not ask, page or colour."""
    set: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Added last, over all of that."""

    def __post_init__(self) -> None:
        if self.inherit not in ("all", "core", "none"):
            raise ValueError(f"inherit must be 'all', 'core' or 'none', not {self.inherit!r}")
        if isinstance(self.exclude, str):
            raise TypeError("exclude takes a tuple of patterns, not one string")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPolicy:
    """How much output is kept, where, and for how long."""

    streams: Literal["merged", "separate"] = "merged"
    """One pipe, so that order is exact; or two, whose order between them is approximate."""
    head_bytes: int = 10_000
    tail_bytes: int = 20_000
    """Output up to head + tail is returned whole; of more, the head and the tail are kept."""
    spill_bytes: int = 4 << 30
    """The cap on one run's output; a command that reaches it is killed: `output_capped`."""
    spill_directory_bytes: int = 16 << 30
    """The cap on all saved output; the oldest finished files make room, then runs are capped."""
    spill_days: float = 7.0
    """How long saved output is kept."""
    save_bytes: int | None = None
    """Output of more than this is saved even if it is returned whole; None is only what is cut."""
    directory: str | None = None
    """Where it is saved; None is limpet's own place."""
    cut_mark: str | None = None
    """What stands in the text where something was left out; None says how much, and where all of
    it is."""

    def __post_init__(self) -> None:
        if self.streams not in ("merged", "separate"):
            raise ValueError(f"streams must be 'merged' or 'separate', not {self.streams!r}")
        for name, least in _LEAST_BYTES.items():
            _check_count(name, getattr(self, name), least, " of bytes")
        if self.save_bytes is not None:
            _check_count("save_bytes", self.save_bytes, 0, " of bytes")
        for name in ("directory", "cut_mark"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{name} must be text, not {value!r}")
        check_number("spill_days", self.spill_days, unit="days")


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePolicy:
    """Which commands are refused whoever asks."""

    pack: Pack = "default"
    """`strict` also forbids pieces of text, and most special characters."""
    off: tuple[str, ...] = ()
    """Ids of rules to leave out."""
    blocked_patterns: tuple[str, ...] = ()
    """Text that no command may contain."""
    extra: tuple[Rule, ...] = ()
    """Rules of the host's own."""

    def __post_init__(self) -> None:
        if self.pack not in ("default", "strict", "none"):
            raise ValueError(f"pack must be 'default', 'strict' or 'none', not {self.pack!r}")
        for name in ("off", "blocked_patterns"):
            object.__setattr__(self, name, check_strings(name, getattr(self, name)))
        if "" in self.blocked_patterns:
            raise ValueError("a blocked pattern must not be empty: every command contains that")


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionPolicy:
    """Which commands may run, by patterns such as `git commit *`.

    `deny` and `ask` need one match anywhere in a line; `allow` needs every command of it covered.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    unmatched: Literal["allow", "ask", "deny"] | None = None
    """What becomes of the rest; by default it is allowed, or asked about if `allow` is given."""

    def __post_init__(self) -> None:
        for name in ("allow", "deny", "ask"):
            object.__setattr__(self, name, check_strings(name, getattr(self, name)))
            if not all(text.partition(">")[0].strip() for text in getattr(self, name)):
                raise ValueError(f"each pattern of {name} must name a command")
        if self.unmatched not in (None, "allow", "ask", "deny"):
            raise ValueError(f"unmatched must be 'allow', 'ask' or 'deny', not {self.unmatched!r}")


class Approval(NamedTuple):
    """What a host is asked to approve."""

    command: str
    verdict: Verdict
    """What speaks against it."""
    description: str | None
    """What the command is for, as the caller said."""
    ctx: ToolContext | None
    """The conversation that it belongs to."""


_DEFAULT_LIMITS = LimitPolicy()
_SANDBOX_OFF = SandboxPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Everything about running commands that does not belong to one conversation."""

    timeout_s: float = 120.0
    """The limit of a call that does not give its own."""
    kill_grace_s: float = 0.5
    """How long a command may clean up after SIGTERM before SIGKILL."""
    environment: EnvironmentPolicy = EnvironmentPolicy()
    output: OutputPolicy = OutputPolicy()
    survivors: Literal["adopt", "wait", "kill"] = "adopt"
    """Of processes that outlive the shell (`server &`): leave them running and name them, wait
    for them as long as the time limit allows, or kill them."""
    persist_cwd: bool = False
    """Start each call where the last one of the same `ToolContext` ended."""
    max_concurrent: int = 64
    """How many commands of one `Bash` run at once; further calls wait for their turn."""
    max_tasks: int = 1000
    """How many background tasks may run at once, of all programs that share a state directory."""
    task_days: float = 7.0
    tasks_kept: int = 5000
    """For how long, and how many, finished tasks can still be read."""
    shell: str = "bash"
    """The bash to run: a name to be found on PATH, or a path."""
    rules: RulePolicy = RulePolicy()
    """The commands to refuse; also the name of a pack: `default`, `strict` or `none`."""
    permissions: PermissionPolicy = PermissionPolicy()
    approve: Callable[[Approval], bool | Awaitable[bool]] | None = None
    """Asked about a command that needs approval; without it such a command is refused."""
    sandbox: SandboxPolicy = _SANDBOX_OFF
    """What the kernel keeps commands from doing; also the name of a mode."""
    limits: LimitPolicy | None = None
    """What a command may use up; None is nothing with the sandbox off, else the defaults."""
    network: InitVar[bool | None] = None
    ports: InitVar[Sequence[int] | None] = None
    hide: InitVar[Sequence[str] | None] = None
    """These three are short for the sandbox's own fields."""

    def __post_init__(
        self,
        network: bool | None,
        ports: Sequence[int] | None,
        hide: Sequence[str] | None,
    ) -> None:
        self._fold_sandbox(network=network, ports=ports, hide=hide)
        if self.limits is not None and not isinstance(self.limits, LimitPolicy):
            raise TypeError(f"limits must be a LimitPolicy, not {self.limits!r}")
        check_timeout(self.timeout_s)
        if isinstance(self.rules, str):
            object.__setattr__(self, "rules", RulePolicy(pack=self.rules))
        if not isinstance(self.rules, RulePolicy):
            raise TypeError(f"rules must be a RulePolicy or the name of a pack, not {self.rules!r}")
        if not isinstance(self.permissions, PermissionPolicy):
            raise TypeError(f"permissions must be a PermissionPolicy, not {self.permissions!r}")
        if self.approve is not None and not callable(self.approve):
            raise TypeError(f"approve must be callable, not {self.approve!r}")
        if self.survivors not in ("adopt", "wait", "kill"):
            raise ValueError(f"survivors must be 'adopt', 'wait' or 'kill', not {self.survivors!r}")
        check_number("kill_grace_s", self.kill_grace_s, unit="seconds", may_be_zero=True)
        check_number("task_days", self.task_days, unit="days", may_be_zero=True)
        for name, least in _LEAST_COUNTS.items():
            _check_count(name, getattr(self, name), least)

    def _fold_sandbox(self, **short: object) -> None:
        sandbox = self.sandbox
        if isinstance(sandbox, str):
            sandbox = SandboxPolicy(mode=sandbox)
        if not isinstance(sandbox, SandboxPolicy):
            raise TypeError(f"sandbox must be a SandboxPolicy or a mode, not {sandbox!r}")
        given = {name: value for name, value in short.items() if value is not None}
        if given:
            sandbox = replace(sandbox, **given)  # type: ignore[arg-type]  # checked by it itself
        object.__setattr__(self, "sandbox", sandbox)

    def restricted(self) -> Policy:
        """Return the same for a conversation that may only look: nothing opens it."""
        sandbox = replace(
            self.sandbox,
            mode="read-only",
            network=False,
            ports=(),
            loopback=False,
            unix_sockets=False,
            writable=(),
            degrade=False,
        )
        return replace(self, sandbox=sandbox)

    def confinement_id(self, workspace: str) -> str:
        """Return what tells the confinement of a run from any other; empty if nothing confines it.

        Two runs with the same one may do the same: what one cannot reach, the other cannot either.
        """
        if self.sandbox.mode == "off":
            return ""
        import hashlib

        facts = repr((self.sandbox, self.effective_limits, workspace))
        return hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def effective_limits(self) -> LimitPolicy | None:
        """The limits that hold."""
        if self.limits is None and self.sandbox.mode != "off":
            return _DEFAULT_LIMITS
        return self.limits


def check_timeout(timeout_s: float) -> float:
    """Return a time limit that is a positive, finite number, or say what is wrong with it."""
    check_number("timeout_s", timeout_s, unit="seconds")
    return float(timeout_s)
