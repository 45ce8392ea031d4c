"""What a tool call comes to."""

from __future__ import annotations

from typing import Any, NamedTuple

from limpet.hint import LONGER
from limpet.result import Outcome, Result


class Answer(NamedTuple):
    """The answer to one call of a tool."""

    text: str
    """What the model reads."""
    is_error: bool = False
    """True when the call could not be done, or its command was killed; a command's exit code is an
    answer."""
    data: Any = None
    """The same for programs, as JSON-ready values."""
    can_retry: bool = False
    """Of an error: whether the model can do something about it itself."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as `limpet call` prints it."""
        return {"text": self.text, "is_error": self.is_error, "data": self.data}

    def writable(self) -> Answer:
        """Return the same without lone surrogates, which a model may send and no wire can carry."""
        return self._replace(text=_writable(self.text), data=_writable(self.data))


def _writable(value: Any) -> Any:  # noqa: ANN401 -- JSON
    match value:
        case str():
            return value if value.isascii() else value.encode("utf-8", "replace").decode()
        case dict():
            return {_writable(name): _writable(item) for name, item in value.items()}
        case list():
            return [_writable(item) for item in value]
    return value


def kept_in(result: Result) -> str:
    """Say where the output that an answer leaves out can be found; empty if nowhere."""
    if result.spill_path is None:
        return ""
    is_capped = result.outcome is Outcome.OUTPUT_CAPPED
    return (
        f"{'its beginning, up to the cap,' if is_capped else 'all of it'} is in {result.spill_path}"
    )


def hint_of(result: Result, longer: str) -> str:
    """Return the hint, with the way to more time that the profile has."""
    return (result.hint or "").replace(LONGER, longer)


def failure(kind: str, text: str, *, can_retry: bool) -> Answer:
    """Return the answer to a call that came to nothing."""
    data = {"error": kind, "message": text, "retry": can_retry}
    return Answer(text, is_error=True, data=data, can_retry=can_retry)
