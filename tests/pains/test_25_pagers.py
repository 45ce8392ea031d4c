"""Pagers, editors and credential helpers of the user are not met."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

import limpet

TRAP = "sh -c 'echo trapped; sleep 600' trap"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> limpet.ToolContext:
    """Return a repository of a user whose every setting opens something interactive."""
    config = tmp_path / "gitconfig"
    config.write_text(
        f'[core]\n\tpager = "{TRAP}"\n\teditor = "{TRAP}"\n\taskPass = "{TRAP}"\n'
        f'[sequence]\n\teditor = "{TRAP}"\n[pager]\n\tlog = "{TRAP}"\n'
        "[user]\n\tname = a\n\temail = a@example.org\n[commit]\n\tgpgSign = false\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("PAGER", "GIT_PAGER", "MANPAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_ASKPASS"):
        monkeypatch.setenv(name, TRAP)
    context = limpet.ToolContext(tmp_path / "repository")
    Path(str(context.working_dir)).mkdir()
    setup = "git init -q && for i in 1 2 3; do git commit -q --allow-empty -m $i; done"
    limpet.Bash().run_sync(setup, ctx=context).check()
    return context


COMMANDS = {
    "git log": 0,
    "git -p log": 0,
    "git rebase -i HEAD~2": 0,
    "git commit --allow-empty": 1,
    "git commit --amend --allow-empty": 0,
    "man ls": None,
    "systemctl --version": None,
    "git help -a": 0,
}


@pytest.mark.parametrize(("command", "code"), COMMANDS.items())
def test_nothing_interactive_opens(
    bash: limpet.Bash, repository: limpet.ToolContext, command: str, code: int | None
) -> None:
    result = bash.run_sync(command, timeout_s=10, ctx=repository)
    assert result.outcome is limpet.Outcome.EXITED
    assert "trapped" not in result.output
    assert code is None or result.exit_code == code


class _AsksForPassword(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="private"')
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def private_server() -> Iterator[str]:
    """Return the address of a repository that wants a password."""
    server = HTTPServer(("127.0.0.1", 0), _AsksForPassword)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/x.git"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_clone_that_needs_a_password_fails_with_a_hint(
    bash: limpet.Bash, repository: limpet.ToolContext, private_server: str
) -> None:
    environment = {"no_proxy": "*", "NO_PROXY": "*"}
    result = bash.run_sync(
        f"git clone {private_server}", timeout_s=10, ctx=repository, env=environment
    )
    assert result.exit_code == 128
    assert "trapped" not in result.output
    assert "nobody can answer" in (result.hint or "")


def test_each_setting_can_be_overridden(repository: limpet.ToolContext) -> None:
    bash = limpet.Bash(environment=limpet.EnvironmentPolicy(set={"PAGER": "from-policy"}))
    assert bash.run_sync("echo $PAGER").output == "from-policy\n"
    assert bash.run_sync("echo $PAGER", env={"PAGER": "from-call"}).output == "from-call\n"
