"""Refuses at import where limpet cannot run, rather than at the first command."""

import sys

if sys.platform == "win32":
    raise ImportError("limpet runs on Linux and macOS; on Windows, use it inside WSL")
