"""Where limpet keeps files: one private directory, found without a home directory too."""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path


def directory(name: str) -> Path:
    """Return a private directory of limpet's state, made if it is missing.

    It is under `$LIMPET_STATE_DIR`, else under the user's state directory, else, where that
    cannot be written, under the user's runtime directory or the temporary one.

    Raises:
        OSError: None of them can be used; the error is that of the first.
    """
    first_error: OSError | None = None
    for root in roots():
        try:
            return _private(Path(root), name)
        except OSError as error:
            first_error = first_error or error
    raise first_error or OSError("no place for limpet's state")


def roots() -> list[str]:
    """Return where the state may be, in the order in which it is looked for."""
    if chosen := os.getenv("LIMPET_STATE_DIR"):
        return [os.path.abspath(chosen)]  # noqa: PTH100 -- a string
    import tempfile

    found = [_of_user()]
    if runtime := os.getenv("XDG_RUNTIME_DIR"):
        found.append(f"{runtime}/limpet")
    found.append(f"{tempfile.gettempdir()}/limpet-{os.geteuid()}")
    return [root for root in found if os.path.isabs(root)]  # noqa: PTH117 -- a string


def _of_user() -> str:
    """Return the user's state directory; a relative path if there is no home."""
    if sys.platform == "linux":  # what platformdirs says too, but not in a tenth of a second
        base = os.getenv("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111
        return f"{base}/limpet"
    from platformdirs import user_state_dir

    with suppress(RuntimeError):
        return user_state_dir("limpet")
    return ""


def _private(root: Path, name: str) -> Path:
    _make_private(root, is_shared=os.getenv("LIMPET_STATE_DIR") is not None)
    path = root / name
    _make_private(path)
    return path


def _make_private(path: Path, *, is_shared: bool = False) -> None:
    """Make a directory that only this user can enter, unless it was chosen to be `is_shared`."""
    try:
        is_new = not path.exists()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_new:
            path.chmod(0o700)  # whatever the umask takes away
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, "Not a directory", str(path)) from None
    found = path.lstat()
    if is_shared:
        # A command that may write where it lies must not lead us elsewhere by a link.
        if stat.S_ISLNK(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "a link: give its target", str(path))
        return
    # Someone else may have made it before us where all may write.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(errno.EACCES, "not a directory of this user", str(path))
    if stat.S_IMODE(found.st_mode) & 0o077:
        path.chmod(0o700)
    if not os.access(path, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "not writable by this user", str(path))
