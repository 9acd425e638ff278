"""Logins: a token or a one-time code becomes a cookie, at a bounded rate, with one answer to every failure."""

from __future__ import annotations

from collections.abc import Callable

from solocron.clock import SystemClock
from solocron.errors import ConfigurationError
from solocron.service.codes import OneTimeCodes
from solocron.service.identity import make_login
from solocron.service.problems import ProblemError
from solocron.service.rates import RateLimit
from solocron.service.roles import Identity, RouteAccess, is_allowed
from solocron.service.tokens import Tokens

__all__ = ["Logins"]

_AN_ADDRESS = 5
_IN_ALL = 30
_TAKES = 0.2
"""Seconds that each attempt takes, so that its duration tells nothing."""


class Logins:
    """Begins logins."""

    def __init__(
        self,
        tokens: Tokens | None,
        *,
        codes: OneTimeCodes | None = None,
        clock: SystemClock,
        pause: Callable[[float], object],
        may_enter: Callable[[Identity], bool],
    ) -> None:
        self._tokens = tokens
        self._codes = codes
        self._clock = clock
        self._pause = pause
        self._may_enter = may_enter
        self._by_address = RateLimit(_AN_ADDRESS, clock=clock.boot)
        self._in_all = RateLimit(_IN_ALL, clock=clock.boot)

    def begin(self, token: str, address: str | None) -> str | None:
        """Return the cookie of a new login; None if the token is not valid here, or of a role that shows no page."""
        self._slow_down(address)
        try:
            found = None if self._tokens is None else self._tokens.identify(token)
        except ConfigurationError:
            found = None
        if found is None or not is_allowed(found.role, RouteAccess.READ) or not self._may_enter(found):
            return None
        return make_login(token, now=self._clock.wall())

    def begin_by_code(self, code: str, address: str | None) -> str | None:
        """Return the cookie of a new login; None if the code was used, is too old, or was never one."""
        self._slow_down(address)
        token = None if self._codes is None else self._codes.take(code)
        return None if token is None else make_login(token, now=self._clock.wall())

    def _slow_down(self, address: str | None) -> None:
        wait = self._by_address.wait(address or "") or self._in_all.wait("")
        if wait:
            raise ProblemError(429, "Too many attempts; wait a minute.", headers=[("Retry-After", str(wait))])
        self._pause(_TAKES)
