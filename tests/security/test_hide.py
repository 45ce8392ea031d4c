"""What is hidden cannot be read, by whatever way."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import limpet
from security.host import MODES, USERS, as_user, scratch, tool

SECRET = "hidden-words"

# $H is a hidden directory, $F a hidden file in one that is not; $P is above both.
ATTEMPTS = {
    "cat": 'cat "$F"',
    "cat in a directory": 'cat "$H/inner/file"',
    "read": 'read -r x < "$F"; echo "$x"',
    "ls": 'ls "$H" "$H/inner"',
    "find": 'find "$P" -name "hidden-name*"',
    "glob": 'echo "$H"/*',
    "grep -r": 'grep -r words "$P"',
    "cd": 'cd "$H" && ls',
    "cd and back": 'cd "$P/beside" && cat ../hidden/inner/file',
    "cp": 'cp "$F" "$W/own" && cat "$W/own"',
    "cp -r": 'cp -r "$P" "$W/own"; cat "$W"/own/*/*/file "$W"/own/*/file',
    "tar": 'tar cf - -C "$P" . | strings',
    "mv": 'mv "$H" "$W/own"; mv "$F" "$W/own2"; cat "$W/own/inner/file" "$W/own2"',
    "mv of what is above": 'mv "$P/beside" "$W/own"; cat "$W/own/file"',
    "symbolic link": 'ln -s "$F" "$W/own"; cat "$W/own"',
    "a link made before": 'cat "$W/link"',
    "a link to the directory made before": 'cat "$W/way/inner/file"',
    "hard link": 'ln "$F" "$W/own" && cat "$W/own"',
    "hard link of a descriptor": 'ln -L /proc/self/fd/3 "$W/own" 3< "$F"; cat "$W/own"',
    "/proc/self/root": 'cat "/proc/self/root$F"',
    "/proc of the host": 'cat "/proc/$HOST/root$F" "/proc/$HOST/cwd$F"',
    "/proc fd of the host": 'cat "/proc/$HOST/fd/$FD"',
    "dd": 'dd if="$F" status=none',
    "source": '. "$F"',
    "python": "python3 -c 'import os; print(open(os.environ[\"F\"]).read())'",
    "mmap": "python3 -c 'import os,mmap; f=open(os.environ[\"F\"]);"
    " print(mmap.mmap(f.fileno(),0,prot=1)[:])'",
    "O_PATH": "python3 -c 'import os; d=os.open(os.environ[\"F\"],os.O_PATH);"
    " print(open(f\"/proc/self/fd/{d}\").read())'",
    "sendfile": "python3 -c 'import os; os.sendfile(1,os.open(os.environ[\"F\"],0),0,99)'",
    "unshare": "unshare -Urm sh -c 'umount \"$F\"; cat \"$F\"'",
    "bind": 'mount --bind "$P" "$W/dir"; cat "$W/dir/beside/file"; umount "$W/dir"',
    "umount": 'umount "$F" "$H"; cat "$F" "$H/inner/file"',
    "chmod": 'chmod -R a+rwx "$H" "$F"; cat "$F" "$H/inner/file"',
    "exec": '"$F"',
    "git": 'git hash-object -w --stdin < "$F"; git diff --no-index /dev/null "$F"',
    "perl": "perl -e 'print <>' \"$F\"",
    "another mount": "awk '$3 == \"ext4\" {print $2}' /proc/mounts | while read -r m; do"
    ' cat "$m/$F"; done',
}  # fmt: skip


def _fill(base: Path) -> dict[str, str]:
    above, workspace = base / "above", base / "workspace"
    (above / "hidden/inner").mkdir(parents=True)
    (above / "beside").mkdir()
    (workspace / "dir").mkdir(parents=True)
    (above / "hidden/inner/file").write_text(SECRET)
    (above / "hidden/hidden-name").write_text(SECRET)
    (above / "beside/file").write_text(SECRET)
    (above / "beside/file").chmod(0o755)
    (workspace / "link").symlink_to(above / "beside/file")
    (workspace / "way").symlink_to(above / "hidden")
    return {"P": str(above), "H": str(above / "hidden"), "F": str(above / "beside/file"),
            "W": str(workspace), "HOST": str(os.getpid())}  # fmt: skip


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mode", ["off", *MODES])
def test_hidden_places_are_not_read(user: str, mode: str) -> None:
    def act(base: Path) -> list[str]:
        env = _fill(base)
        places = [env["H"], env["F"]]
        bash = tool(mode, **({"hide": places} if mode != "off" else {}))
        file = os.open(env["F"], os.O_RDONLY)
        env["FD"] = str(file)
        wrong = []
        for name, command in ATTEMPTS.items():
            said = bash.run_sync(command, env=env, ctx=limpet.ToolContext(env["W"])).output
            had = SECRET in said or "hidden-name" in said
            needs_root = name in ("bind",) and user != "root"
            if had != (mode == "off") and not (mode == "off" and needs_root):
                wrong.append(f"{name}: {said}")
            if mode == "off":  # what was moved away is put back
                shutil.rmtree(base / "above")
                shutil.rmtree(base / "workspace")
                _fill(base)
        return wrong

    with scratch(user) as base:
        assert as_user(user, lambda: act(base)) == []


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mode", MODES)
def test_what_lies_beside_is_read(user: str, mode: str) -> None:
    def act(base: Path) -> str:
        env = _fill(base)
        (base / "above/beside/other").write_text("not hidden")
        bash = tool(mode, hide=[env["H"], env["F"]])
        return bash.run_sync('cat "$P/beside/other"', env=env, ctx=limpet.ToolContext(base)).output

    with scratch(user) as base:
        assert as_user(user, lambda: act(base)) == "not hidden"


@pytest.mark.skipif("root" not in USERS, reason="disks are root's")
@pytest.mark.parametrize("mode", ["off", *MODES])
def test_the_disk_below_is_not_read(mode: str) -> None:
    def act(base: Path) -> bool:
        image, mounted, workspace = base / "image", base / "mounted", base / "workspace"
        mounted.mkdir()
        workspace.mkdir()
        image.write_bytes(bytes(2 << 20))
        subprocess.run(["mkfs.ext2", "-q", image], check=True, capture_output=True)
        subprocess.run(["mount", "-o", "loop", image, mounted], check=True)
        try:
            (mounted / "file").write_text(SECRET)
            os.sync()
            mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
            disk = next(source for source, place, *_ in mounts if place == str(mounted))
            places = [str(mounted / "file"), str(image)]
            bash = tool(mode, **({"hide": places} if mode != "off" else {}))
            command = f"cat {disk} {mounted}/file {image}"
            ctx = limpet.ToolContext(workspace)
            return SECRET in bash.run_sync(f"{command} | strings", ctx=ctx).output
        finally:
            subprocess.run(["umount", mounted], check=True)

    with scratch("root") as base:
        assert as_user("root", lambda: act(base)) == (mode == "off")
