"""Known secrets are masked before output reaches memory, disk or a listener."""

from __future__ import annotations

import re

MASK = b"[masked]"


class Mask:
    """Replaces secrets in a stream, however it is cut: the leftmost first, of those the longest."""

    def __init__(self, secrets: tuple[bytes, ...]) -> None:
        longest_first = sorted(secrets, key=len, reverse=True)
        self._secrets = tuple(longest_first)
        self._pattern = re.compile(b"|".join(map(re.escape, longest_first)))
        self._held = b""

    def feed(self, data: bytes, *, final: bool = False) -> bytes:
        """Return the bytes with every secret masked; what may begin one is held back."""
        data = self._held + data
        openings = [] if final else self._openings(data)
        masked = bytearray()
        place = 0
        while True:
            end = next((opening for opening in openings if opening >= place), len(data))
            match = self._pattern.search(data, place)
            # At an opening the rest of the stream may turn a secret into a longer one.
            if match is None or match.start() >= end:
                self._held = data[end:]
                return bytes(masked + data[place:end])
            masked += data[place : match.start()] + MASK
            place = match.end()

    def _openings(self, data: bytes) -> list[int]:
        """Return where a secret begins that the data ends in the middle of."""
        found = set()
        for secret in self._secrets:
            place = data.find(secret[:1], max(0, len(data) - len(secret) + 1))
            while place >= 0:
                if secret.startswith(data[place:]):
                    found.add(place)
                place = data.find(secret[:1], place + 1)
        return sorted(found)
