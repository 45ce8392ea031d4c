"""Where limpet keeps files: one private directory, found without a home directory too."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path


def directory(name: str) -> Path:
    """Return a private directory of limpet's state, made if it is missing.

    It is under `$LIMPET_STATE_DIR`, else under the user's state directory, else, where that
    cannot be written, under the temporary directory.

    Raises:
        OSError: None of them can be used; the error is that of the first.
    """
    first_error: OSError | None = None
    for root in _roots():
        try:
            return _private(root, name)
        except OSError as error:
            first_error = first_error or error
    raise first_error or OSError("no place for limpet's state")


def _roots() -> list[Path]:
    if chosen := os.getenv("LIMPET_STATE_DIR"):
        return [Path(chosen).absolute()]
    import tempfile

    from platformdirs import user_state_path  # costs as much as a spawn, and is rarely needed

    roots = [Path(tempfile.gettempdir()) / f"limpet-{os.geteuid()}"]
    with suppress(RuntimeError):  # a user without a home and without a passwd entry
        roots.insert(0, user_state_path("limpet"))
    return [root for root in roots if root.is_absolute()]


def _private(root: Path, name: str) -> Path:
    _make_private(root, is_shared=os.getenv("LIMPET_STATE_DIR") is not None)
    path = root / name
    _make_private(path)
    return path


def _make_private(path: Path, *, is_shared: bool = False) -> None:
    """Make a directory that only this user can enter, unless it was chosen to be `is_shared`."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
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
