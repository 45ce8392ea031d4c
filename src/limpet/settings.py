"""`limpet.toml` → `Policy`: the project's file over the user's, and both over the environment."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from limpet.confinement import LimitPolicy, SandboxPolicy
from limpet.errors import SettingsError
from limpet.policy import (
    EnvironmentPolicy,
    OutputPolicy,
    PermissionPolicy,
    Policy,
    RulePolicy,
)

if TYPE_CHECKING:
    from pathlib import Path

NAME = "limpet.toml"
_TABLES: dict[str, type] = {
    "environment": EnvironmentPolicy,
    "output": OutputPolicy,
    "rules": RulePolicy,
    "permissions": PermissionPolicy,
    "sandbox": SandboxPolicy,
    "limits": LimitPolicy,
}
_SHORT_FORM = {"rules": "pack", "sandbox": "mode"}
"""Tables that may be given as the one word that matters most in them."""
_NOT_IN_FILES = {"approve", "extra"}
"""What only a program can give."""
_ADDED_UP = {"deny", "ask", "hide"}
"""What the user's file forbids, the project's cannot allow by leaving it out."""
_OPENS = {
    ("", "shell"),
    ("environment", "login"),
    ("output", "directory"),
    ("sandbox", "network"),
    ("sandbox", "ports"),
    ("sandbox", "loopback"),
    ("sandbox", "unix_sockets"),
    ("sandbox", "writable"),
    ("sandbox", "temp"),
    ("sandbox", "protect"),
    ("sandbox", "degrade"),
}
"""What a project's file cannot say: a command in the project may have written it."""
_VARIABLES = {"timeout_s": float, "survivors": str, "shell": str, "rules": str, "sandbox": str}
"""Fields that the environment sets where no file does: LIMPET_TIMEOUT_S and so on."""


_Kind = TypeVar("_Kind")


class _File(NamedTuple):
    path: str
    text: str
    values: dict[str, Any]

    def error(self, table: str, key: str, problem: object) -> SettingsError:
        name = f"{table}.{key}" if table and key else table or key
        return SettingsError(f"{self.path}:{self._line_of(table, key)}: {name}: {problem}")

    def _line_of(self, table: str, key: str) -> int:
        """Return the line that a key is set in."""
        current = ""
        for number, line in enumerate(self.text.splitlines(), start=1):
            if header := re.match(r"\s*\[+\s*([\w.-]+)\s*\]+", line):
                current = header[1]
                if not key and current == table:
                    return number
            wanted = key if current == table else f"{table}.{key}" if not current else None
            if wanted and re.match(rf"\s*['\"]?{re.escape(wanted)}['\"]?\s*[=.]", line):
                return number
            if not current and table and re.match(rf"\s*{re.escape(table)}\s*=", line):
                return number
        return 1


def load(directory: str | Path | None = None) -> Policy:
    """Return the policy that the settings files make for a working directory.

    Raises:
        SettingsError: A file cannot be read, or says what it cannot.
    """
    files = [_read(path) for path in _find(os.path.abspath(directory or "."))]  # noqa: PTH100
    merged: dict[str, Any] = {}
    for field, kind in _VARIABLES.items():
        if (value := os.getenv(f"LIMPET_{field.upper()}")) is not None:
            merged[field] = _variable(field, kind, value)
    for file in files:
        _check_names(file)
        if file.path != _user_file():
            _check_opens(file)
        _merge(merged, file.values)
        _build(merged, file)  # so that an error is told of the file that it is in
    return _build(merged, None)


def _variable(field: str, kind: type, value: str) -> object:
    try:
        return {_SHORT_FORM[field]: value} if field in _SHORT_FORM else kind(value)
    except ValueError:
        raise SettingsError(f"LIMPET_{field.upper()}: not a number: {value!r}") from None


def _find(directory: str) -> list[str]:
    """Return the files that count, the nearest last."""
    files = [] if (own := _user_file()) is None else [own]
    while True:
        path = os.path.join(directory, NAME)
        if os.path.isfile(path):  # noqa: PTH113 -- pathlib takes as long as the rest
            return [*files, path]
        directory, below = os.path.dirname(directory), directory
        if directory == below:
            return files


def _user_file() -> str | None:
    if sys.platform == "linux":  # what platformdirs says too, but not in a tenth of a second
        root = os.getenv("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111
    else:
        from platformdirs import user_config_dir

        root = user_config_dir()
    path = os.path.join(root, "limpet", NAME)
    return path if os.path.isabs(path) and os.path.isfile(path) else None  # noqa: PTH113, PTH117


def _read(path: str) -> _File:
    import tomllib

    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read: {error}") from None
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column \d+\)", str(error))
        line = int(found[1]) if found else len(text.splitlines())
        raise SettingsError(f"{path}:{line}: not TOML: {error}") from None
    for table, key in _SHORT_FORM.items():
        if isinstance(values.get(table), str):
            values[table] = {key: values[table]}
    return _File(path, text, values)


def _check_names(file: _File) -> None:
    known = {field.name for field in fields(Policy)} - _NOT_IN_FILES
    for name, value in file.values.items():
        if name not in known:
            raise file.error("", name, f"no such setting; there are: {', '.join(sorted(known))}")
        kind = _TABLES.get(name)
        if kind is None:
            continue
        if not isinstance(value, dict):
            raise file.error(name, "", f"must be a table: [{name}]")
        inner = {field.name for field in fields(kind)} - _NOT_IN_FILES
        for key in value:
            if key not in inner:
                there_are = f"there are: {', '.join(sorted(inner))}"
                raise file.error(name, key, f"no such setting; {there_are}")


def _check_opens(file: _File) -> None:
    for table, key in sorted(_OPENS):
        if key in (file.values.get(table, {}) if table else file.values):
            raise file.error(
                table, key, "only the user's own settings, the command line or a program can say"
                " this, since a command may have written this file"
            )  # fmt: skip


def _merge(merged: dict[str, Any], values: dict[str, Any]) -> None:
    for name, value in values.items():
        if name not in _TABLES:
            merged[name] = value
            continue
        table = merged[name] = dict(merged.get(name, {}))
        for key, item in value.items():
            if key in _ADDED_UP and isinstance(item, list):
                item = [*table.get(key, []), *item]
            if (name, key) == ("sandbox", "mode"):
                item = _stricter(table.get(key), item)
            if name == "limits":
                item = _lower(table.get(key, getattr(LimitPolicy(), key)), item)
            table[key] = item


def _lower(users: object, projects: object) -> object:
    if not isinstance(users, int | float) or not isinstance(projects, int | float):
        return projects  # which is told apart later
    return min(users, projects)


def _stricter(users: object, projects: object) -> object:
    """Return the stricter of two modes: a project cannot open what its user has closed."""
    order: list[object] = ["off", "workspace", "read-only"]
    if users not in order or projects not in order:
        return projects  # which is told apart later
    return max(users, projects, key=order.index)


def _build(merged: dict[str, Any], file: _File | None) -> Policy:
    """Return the policy of merged values, or say which of a file's is wrong."""
    made: dict[str, Any] = {}
    for name, value in merged.items():
        made[name] = value
        if name in _TABLES:
            table = {k: tuple(v) if isinstance(v, list) else v for k, v in value.items()}
            made[name] = _made(_TABLES[name], table, name, file)
    return _made(Policy, made, "", file)


def _made(kind: type[_Kind], values: dict[str, Any], table: str, file: _File | None) -> _Kind:
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:
        for key, value in values.items():
            try:
                kind(**{key: value})
            except (TypeError, ValueError) as own:
                if file is None:
                    raise SettingsError(f"the environment's LIMPET_*: {own}") from None
                raise file.error(table, key, own) from None
        raise SettingsError(str(error)) from None
