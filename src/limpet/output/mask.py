"""Known secrets are masked before output reaches memory, disk or a listener."""

from __future__ import annotations

MASK = b"[masked]"


class Mask:
    """Replaces secrets in a stream, also those that arrive in pieces."""

    def __init__(self, secrets: tuple[bytes, ...]) -> None:
        self._secrets = secrets
        self._held = b""

    def feed(self, data: bytes, *, final: bool = False) -> bytes:
        """Return the bytes with every whole secret masked; what may begin one is held back."""
        data = self._held + data
        for secret in self._secrets:
            data = data.replace(secret, MASK)
        held = 0 if final else max(_overlap(data, secret) for secret in self._secrets)
        self._held = data[len(data) - held :]
        return data[: len(data) - held]


def _overlap(data: bytes, secret: bytes) -> int:
    """Return the length of the longest end of the data that begins the secret."""
    for length in range(min(len(secret) - 1, len(data)), 0, -1):
        if data.endswith(secret[:length]):
            return length
    return 0
