"""What a person sees leaves out a `cd` to where the command ran anyway, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

import limpet
from limpet.command.display import display, summary

CWD = "/srv/project"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (f"cd {CWD} && make", "make"),
        (f"cd {CWD}; make", "make"),
        (f"cd {CWD};make", "make"),
        (f"cd {CWD}&&make", "make"),
        (f"cd {CWD}\nmake", "make"),
        (f"  cd   {CWD}   &&   make -j 4  ", "make -j 4  "),
        (f"cd {CWD}/ && make", "make"),
        (f"cd {CWD}/. && make", "make"),
        (f"cd {CWD}/src/.. && make", "make"),
        (f"cd /srv//project && make", "make"),  # noqa: F541 -- in line with the others
        (f'cd "{CWD}" && make', "make"),
        (f"cd '{CWD}' && make", "make"),
        (f"cd '{CWD}/' && make", "make"),
        ("cd /srv/'project' && make", "make"),
        ("cd /srv/pro\\ject && make", "make"),
        ("cd . && make", "make"),
        ('cd "$PWD" && make', "make"),
        ("cd ../project && make", "make"),
        (f"cd {CWD} && make && cd src && ls", "make && cd src && ls"),
        (f"cd {CWD} && cd . && make", "make"),
        (f"cd {CWD} && make || echo failed", "make || echo failed"),
        (f"cd {CWD} && make | tee log", "make | tee log"),
        (f"cd {CWD} && make > log 2>&1", "make > log 2>&1"),
        (f"cd {CWD} && cat <<E\ncd x\nE", "cat <<E\ncd x\nE"),
        (f"cd {CWD} && echo 'é漢'", "echo 'é漢'"),
        (f"cd {CWD} && (make; make test)", "(make; make test)"),
    ],
)
def test_a_cd_to_the_working_directory_is_left_out(command: str, shown: str) -> None:
    assert display(command, CWD) == shown


@pytest.mark.parametrize(
    "command",
    [
        "make",
        "",
        "cd /srv/other && make",
        "cd /srv && make",
        f"cd {CWD}/src && make",
        f"cd {CWD}2 && make",
        "cd && make",
        "cd - && make",
        "cd ~ && make",
        'cd "$D" && make',
        "cd $(pwd)x && make",
        f"cd {CWD} || make",
        f"cd {CWD} || exit 1; make",
        f"cd {CWD} & make",
        f"cd {CWD} | make",
        f"cd {CWD}",
        f"cd {CWD} &&",
        f"cd {CWD};",
        f"(cd {CWD} && make)",
        f"echo cd {CWD} && make",
        f"make && cd {CWD} && ls",
        f"cd {CWD} extra && make",
        f"cd -P {CWD} && make",
        f"cd {CWD} > log && make",
        f"cd '{CWD} && make'",
        f"cd {CWD} && if",
        f"CDPATH=/ cd {CWD} && make",
        f"! cd {CWD} && make",
        "cd /srv/pro* && make",
        "cd /srv/{project,other} && make",
    ],
)
def test_everything_else_is_shown_in_full(command: str) -> None:
    assert display(command, CWD) == command


def test_the_home_directory_is_known_by_its_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    project = tmp_path / "project"
    project.mkdir()
    assert display("cd ~/project && make", str(project)) == "make"
    assert display('cd "$HOME/project/" && make', str(project)) == "make"
    assert display("cd ${HOME}/project; make", str(project)) == "make"
    assert display("cd ~ && make", str(tmp_path)) == "make"
    assert display("cd '~/project' && make", str(project)) == "cd '~/project' && make"


def test_a_link_to_the_working_directory_is_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    real, link = str(tmp_path / "real"), str(tmp_path / "link")
    assert display(f"cd {link} && make", real) == "make"
    assert display(f"cd {real} && make", link) == "make"


def test_without_a_working_directory_nothing_is_left_out() -> None:
    assert display("cd . && make", "") == "cd . && make"


def test_a_result_has_the_command_as_it_was_and_as_it_is_shown(
    bash: limpet.Bash, tmp_path: Path
) -> None:
    command = f"cd '{tmp_path}/' && pwd"
    result = bash.run_sync(command, ctx=limpet.ToolContext(tmp_path))
    assert (result.command, result.display) == (command, "pwd")
    elsewhere = bash.run_sync("cd / && pwd", ctx=limpet.ToolContext(tmp_path))
    assert elsewhere.display == "cd / && pwd"


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("make", "make"),
        ("  make   -j\t4  ", "make -j 4"),
        ("a\nb\n\nc\n", "a ⏎ b ⏎ c"),
        ("a \\\n  --b \\\n  --c", "a --b --c"),
        ("cat <<E > f\none\ntwo\nE", "cat <<E > f …"),
        ("cat <<E\none\nE\nls", "cat <<E … ⏎ ls"),
        ("cat <<A <<B\na\nA\nb\nB\nls", "cat <<A <<B … ⏎ ls"),
        (f"cd {CWD} && make", "make"),
        ("echo é漢", "echo é漢"),
        ("echo \x1b[31m\x07", "echo ?[31m?"),
        ("", ""),
    ],
)
def test_a_summary_is_one_line(command: str, line: str) -> None:
    assert summary(command, CWD) == line


def test_a_summary_is_no_wider_than_asked_for() -> None:
    long = "echo " + "x" * 200
    assert summary(long) == long[:79] + "…"
    assert summary(long, width=10) == "echo xxxx…"
    assert summary("x" * 80) == "x" * 80
    assert all(len(summary(long, width=width)) <= max(width, 1) for width in range(20))


def test_a_summary_of_a_huge_command_is_short_too() -> None:
    assert len(summary("cat <<E\n" + "x\n" * 500_000 + "E")) <= 80
