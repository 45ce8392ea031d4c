"""What the kernel keeps a command from doing, and from using up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

SandboxMode = Literal["off", "read-only", "workspace"]

CREDENTIALS = (
    "~/.ssh",
    "~/.gnupg",
    "~/.aws",
    "~/.azure",
    "~/.config/gcloud",
    "~/.config/gh",
    "~/.config/op",
    "~/.config/rclone",
    "~/.config/sops",
    "~/.docker/config.json",
    "~/.kube",
    "~/.netrc",
    "~/.npmrc",
    "~/.pypirc",
    "~/.git-credentials",
    "~/.config/git/credentials",
    "~/.cargo/credentials",
    "~/.cargo/credentials.toml",
    "~/.gem/credentials",
    "~/.m2/settings.xml",
    "~/.gradle/gradle.properties",
    "~/.terraform.d/credentials.tfrc.json",
    "~/.vault-token",
    "~/.pgpass",
    "~/.my.cnf",
    "~/.password-store",
    "~/.local/share/keyrings",
    "~/.mozilla",
    "~/.config/google-chrome",
    "~/.config/chromium",
    "~/.claude/.credentials.json",
    "~/.codex/auth.json",
    "~/.gemini/oauth_creds.json",
    "~/.bash_history",
    "~/.zsh_history",
    "~/.python_history",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
)
"""Where programs keep passwords, keys and tokens; `hide=("credentials",)` stands for all."""

PROTECTED = (
    # Run by git, whoever calls it next
    ".git/commondir",
    ".git/config",
    ".git/config.worktree",
    ".git/hooks",
    ".git/modules/*/commondir",
    ".git/modules/*/config",
    ".git/modules/*/hooks",
    ".git/worktrees/*/commondir",
    ".git/worktrees/*/config.worktree",
    ".git/worktrees/*/gitdir",
    ".gitconfig",
    ".gitmodules",
    ".config/git",
    # Run by the next shell
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".config/fish",
    ".inputrc",
    ".profile",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    ".ssh",
    # Obeyed by the next editor
    ".config/nvim",
    ".emacs",
    ".emacs.d",
    ".exrc",
    ".idea",
    ".nvimrc",
    ".vim",
    ".vimrc",
    ".vscode",
    # Obeyed by the next agent
    ".aider.conf.yml",
    ".claude",
    ".codex",
    ".config/limpet",
    ".continue",
    ".cursor",
    ".gemini",
    ".mcp.json",
    ".opencode",
    ".ripgreprc",
    ".windsurf",
    "limpet.toml",
)
"""What lies inside a workspace and would take effect outside the sandbox later. Of repositories
inside it, what begins with .git. A name's first part counts too where it is no directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPolicy:
    """What the kernel keeps a command from doing."""

    mode: SandboxMode = "off"
    """`read-only`: nothing on any filesystem changes. `workspace`: writing is free under the
    working directory, in `writable`, and in temporary places."""
    network: bool = False
    """Open TCP, UDP and the resolver; sockets of files stay closed unless `unix_sockets`."""
    ports: tuple[int, ...] = ()
    """Open TCP connections to these ports only."""
    unix_sockets: bool = False
    """With `network`, also connect to sockets of files, such as an agent's or a container
    engine's: mind that some of these are ways out of any sandbox."""
    loopback: bool = True
    """Without `network`: whether processes of one jail may talk to each other by TCP and UDP, where
    it can have a network of its own, as it can for root."""
    hide: tuple[str, ...] = ()
    """Places that cannot be read, absolute or from `~`; `credentials` stands for `CREDENTIALS`."""
    writable: tuple[str, ...] = ()
    """More directories that a workspace may write to."""
    temp: Literal["shared", "private"] = "shared"
    """What a workspace has for temporary files: the system's places, or one of its own."""
    protect: tuple[str, ...] = PROTECTED
    """Names in writable directories that a workspace must not change."""
    degrade: bool = False
    """Run with what the kernel has if it lacks some of this; each result says so. Else refuse."""

    def __post_init__(self) -> None:
        if self.mode not in ("off", "read-only", "workspace"):
            raise ValueError(
                f"sandbox must be 'off', 'read-only' or 'workspace', not {self.mode!r}"
            )
        if self.temp not in ("shared", "private"):
            raise ValueError(f"temp must be 'shared' or 'private', not {self.temp!r}")
        for name in ("hide", "writable", "protect"):
            object.__setattr__(self, name, check_strings(name, getattr(self, name)))
        for name in ("network", "unix_sockets", "degrade"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be true or false, not {getattr(self, name)!r}")
        self._check_ports()
        self._check_places()

    def _check_ports(self) -> None:
        ports = self.ports
        if not isinstance(ports, list | tuple) or not all(type(port) is int for port in ports):
            raise TypeError(f"ports takes a list of numbers, not {ports!r}")
        if not all(0 < port < 65536 for port in ports):
            raise ValueError(f"a port is a number from 1 to 65535: {ports!r}")
        object.__setattr__(self, "ports", tuple(ports))
        if self.network and ports:
            raise ValueError("network opens all ports: give network or ports, not both")

    def _check_places(self) -> None:
        for name in ("hide", "writable"):
            for place in getattr(self, name):
                is_known = place == "credentials" and name == "hide"
                if not is_known and not place.startswith(("/", "~")):
                    raise ValueError(f"{name} takes absolute paths or ~, not {place!r}")
        for name in self.protect:
            if name.startswith(("/", "~")) or ".." in name.split("/") or not name.strip("/."):
                raise ValueError(f"protect takes names inside a workspace, not {name!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitPolicy:
    """What one command may use up; None lifts a limit."""

    memory_bytes: int | None = 8 << 30
    """Of each process, as data it may write to."""
    cpu_s: float | None = 3600
    """Of each process."""
    processes: int | None = 2048
    """Threads included, beside what the user runs already."""
    file_bytes: int | None = 16 << 30
    """Of each file that is written."""
    open_files: int | None = 65536
    """Of each process."""

    def __post_init__(self) -> None:
        units = {"memory_bytes": "bytes", "cpu_s": "seconds", "processes": "processes",
                 "file_bytes": "bytes", "open_files": "files"}  # fmt: skip
        for name, unit in units.items():
            value = getattr(self, name)
            if value is not None:
                check_number(name, value, unit=unit)
                if value < 1:
                    raise ValueError(f"{name} must be 1 or more, not {value!r}")


def check_number(name: str, value: float, *, unit: str, may_be_zero: bool = False) -> None:
    """Say what is wrong with a number, if anything is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number of {unit}, not {value!r}")
    if not (0 < value < math.inf or (may_be_zero and value == 0)):
        least = "0 or more" if may_be_zero else "positive"
        raise ValueError(f"{name} must be {least} and finite, not {value!r}")


def check_strings(name: str, values: object) -> tuple[str, ...]:
    """Return a tuple of strings, or say what else was given."""
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
        raise TypeError(f"{name} takes a list of strings, not {values!r}")
    return tuple(values)
