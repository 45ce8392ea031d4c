"""Where limpet keeps files: one private directory, found without a home directory too."""

from __future__ import annotations

import os
import stat
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

    roots = [user_state_path("limpet"), Path(tempfile.gettempdir()) / f"limpet-{os.geteuid()}"]
    # A user without a home and without a passwd entry is left with a literal "~".
    return [root for root in roots if root.is_absolute()]


def _private(root: Path, name: str) -> Path:
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = root / name
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    # Someone else may have made it before us where all may write.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(f"{path} is not a directory of this user")
    if stat.S_IMODE(found.st_mode) & 0o077:
        path.chmod(0o700)
    if not os.access(path, os.W_OK | os.X_OK):
        raise PermissionError(f"{path} cannot be written")
    return path
