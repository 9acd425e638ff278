"""One-time codes: a link that logs in once, within a minute, so that no token has to be in a URL."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from threading import Lock

__all__ = ["OneTimeCodes"]

_LASTS = 60.0


class OneTimeCodes:
    """Codes of this process, each for a token of this process."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = Lock()
        self._made: list[tuple[str, str, float]] = []

    def make(self, token: str) -> str:
        """Return a new code for a login with this token."""
        code = secrets.token_urlsafe(32)
        with self._lock:
            self._made.append((code, token, self._clock() + _LASTS))
        return code

    def take(self, code: str) -> str | None:
        """Return the token of a code, which is used up by that; None if there is none any more."""
        with self._lock:
            now, found = self._clock(), None
            for one in list(self._made):
                if hmac.compare_digest(one[0].encode(), code.encode()):
                    found = one[1] if now < one[2] else None
                    self._made.remove(one)
                elif now >= one[2]:
                    self._made.remove(one)
            return found
