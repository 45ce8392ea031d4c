"""Which limit ended a command, if one did."""

from __future__ import annotations

from limpet.confinement import LimitPolicy

_SIGXCPU, _SIGXFSZ, _SIGKILL = 24, 25, 9
_TELLTALES = {
    # Errors that a limit causes, and that there may be other causes of
    "memory_bytes": ("Cannot allocate memory", "MemoryError", "bad_alloc", "ENOMEM",
                     "out of memory", "Out of memory", "OutOfMemoryError", "memory exhausted",
                     "failed to allocate"),
    "processes": ("Resource temporarily unavailable", "can't start new thread",
                  "unable to create native thread", "EAGAIN"),
    "open_files": ("Too many open files", "EMFILE"),
    "file_bytes": ("File too large", "EFBIG", "File size limit exceeded"),
}  # fmt: skip


def limited_by(limits: LimitPolicy, exit_code: int | None, cpu_s: float, output: str) -> str | None:
    """Say which limit ended a command that failed.

    Args:
        limits: That held.
        exit_code: The shell's: its own death by signal n, or a program's, is 128+n.
        cpu_s: What the command used.
        output: What it printed.
    """
    number = (exit_code or 0) - 128
    used_up = limits.cpu_s is not None and cpu_s >= int(limits.cpu_s)
    if limits.cpu_s is not None and (number == _SIGXCPU or (number == _SIGKILL and used_up)):
        return f"killed: CPU time limit {int(limits.cpu_s)} s"
    if limits.file_bytes is not None and number == _SIGXFSZ:
        return f"killed: file size limit {size(limits.file_bytes)}"
    words = {
        "memory_bytes": lambda value: f"memory limit {size(value)}",
        "processes": lambda value: f"limit of {value} processes",
        "open_files": lambda value: f"limit of {value} open files",
        "file_bytes": lambda value: f"file size limit {size(value)}",
    }
    for name, telltales in _TELLTALES.items():
        value = getattr(limits, name)
        if value is not None and any(word in output for word in telltales):
            return f"it probably met the {words[name](value)}"
    return None


def size(count: float) -> str:
    """Return a number of bytes as people write it."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.4g} {unit}"
        count /= 1024
    raise AssertionError("unreachable")
