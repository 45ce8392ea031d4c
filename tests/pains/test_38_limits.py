"""Limits of a run: in force before its first command, and named when one ends it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import limpet
from limpet.confinement import LimitPolicy
from limpet.sandbox import ground, rlimits

NONE = LimitPolicy(memory_bytes=None, cpu_s=None, processes=None, file_bytes=None, open_files=None)


def _limited(mode: str = "off", **limits: int) -> limpet.Bash:
    values = {name: limits.get(name) for name in LimitPolicy.__slots__}
    return limpet.Bash(sandbox=mode, limits=LimitPolicy(**values), rules="none")


@pytest.mark.parametrize("mode", ["off", "read-only", "workspace"])
def test_limits_hold_from_the_first_command_on(mode: str) -> None:
    bash = _limited(
        mode, memory_bytes=300 << 20, cpu_s=7, processes=50, file_bytes=1 << 20, open_files=40
    )
    output = bash.run_sync("ulimit -Sd; ulimit -Hd; ulimit -St; ulimit -f; ulimit -n; ulimit -c")
    assert output.output.split() == ["307200", "307200", "7", "1024", "40", "0"]
    result = bash.run_sync("ulimit -d unlimited")
    assert not result.ok, "a limit can be raised again"


def test_without_a_sandbox_there_are_no_limits_unless_asked_for() -> None:
    own = limpet.Bash().run_sync("ulimit -d; ulimit -t").output
    assert own == limpet.Bash(limits=NONE).run_sync("ulimit -d; ulimit -t").output
    assert limpet.Bash(sandbox="read-only").run_sync("ulimit -t").output == "3600\n"


@pytest.mark.parametrize(
    "command",
    ["while :; do :; done", "bash -c 'while :; do :; done'", "trap '' XCPU; while :; do :; done"],
)
def test_a_run_that_used_up_its_cpu_time_says_so(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rlimits, "_CPU_GRACE_S", 1)
    bash = _limited("read-only", cpu_s=1)
    result = bash.run_sync(command, timeout_s=30)
    assert not result.ok
    assert result.hint == "killed: CPU time limit 1 s"


def test_a_run_that_wrote_too_large_a_file_says_so(tmp_path: Path) -> None:
    bash = _limited("workspace", file_bytes=1 << 20)
    result = bash.run_sync("head -c 3M /dev/zero > file", ctx=limpet.ToolContext(tmp_path))
    assert result.hint == "killed: file size limit 1 MiB"
    assert (tmp_path / "file").stat().st_size == 1 << 20


def test_a_run_that_met_the_memory_limit_says_so() -> None:
    bash = _limited("read-only", memory_bytes=200 << 20)
    result = bash.run_sync("/usr/bin/python3 -c 'x = bytearray(500 << 20)'")
    assert result.exit_code == 1
    assert result.hint == "it probably met the memory limit 200 MiB"


def test_a_run_that_met_the_limit_on_open_files_says_so() -> None:
    bash = _limited("read-only", open_files=20)
    code = "import os; [os.open('/dev/null', 0) for _ in range(99)]"
    result = bash.run_sync(f'/usr/bin/python3 -c "{code}"')
    assert result.hint == "it probably met the limit of 20 open files"


FORKS = "for i in $(seq 60); do sleep 1 & done; wait"


def test_the_limit_on_processes_binds_whoever_runs() -> None:
    bash = _limited("read-only", processes=20)
    result = bash.run_sync(FORKS, timeout_s=20)
    assert "Resource temporarily unavailable" in result.output
    # bash goes on trying for a while; what matters is that nothing else goes short.
    assert limpet.Bash().run_sync("sleep 0 & wait").ok


def test_a_failure_of_another_kind_is_not_blamed_on_a_limit() -> None:
    assert _limited("read-only", cpu_s=60).run_sync("exit 3").hint is None
    killed = _limited("read-only", cpu_s=60).run_sync("kill -9 $$")
    assert killed.hint is not None
    assert "CPU" not in killed.hint


def test_a_limit_never_rises_above_the_hosts_own() -> None:
    """The host's own hard limit is the highest there is; asking for more is no error."""
    code = (
        "import limpet, resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "bash = limpet.Bash(limits=limpet.LimitPolicy(open_files=4096))\n"
        "print(bash.run_sync('ulimit -Hn').output)"
    )
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.stdout.strip() == "64", done


def test_what_is_not_enforced_for_root_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ground, "has_cgroup", lambda: False)
    from limpet.sandbox.promises import promises

    facts = ground.look()._replace(is_root=True)
    found = promises.__wrapped__(limpet.SandboxPolicy(mode="read-only"), LimitPolicy(), facts)
    (limit,) = [promise for promise in found if promise.name == "limit on processes"]
    assert not limit.enforced
    assert "no control group" in limit.by


@pytest.mark.skipif(os.getuid() != 0, reason="only root is exempt from the rlimit")
def test_root_is_bound_by_a_control_group() -> None:
    found = limpet.sandbox.probe().modes["read-only"]
    (limit,) = [promise for promise in found if promise.name == "limit on processes"]
    assert (limit.enforced, limit.by) == (True, "2048 (control group)")
