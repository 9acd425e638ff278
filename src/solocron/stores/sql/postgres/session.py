"""Session settings of our connections, and how they reach the server: a pooler in between may lose or share them.

A pooler in session mode passes settings on that are set once the connection stands. One in transaction mode hands the
server's session to another client after each transaction: then every transaction sets them for itself.
"""

from __future__ import annotations

from enum import StrEnum

from solocron.clock import MILLISECOND
from solocron.errors import InvalidError
from solocron.stores.url import StoreUrl

__all__ = ["Pooled", "Road", "SessionSettings", "road_of"]

_VALUES = {
    **dict.fromkeys(("0", "no", "false", "off"), "direct"),
    **dict.fromkeys(("1", "yes", "true", "on", "transaction"), "transaction"),
    "session": "session",
}


class Road(StrEnum):
    """The way to the server, which decides where settings are made."""

    DIRECT = "direct"
    SESSION = "session"
    """Through a pooler, which keeps one session of the server's for each client."""
    TRANSACTION = "transaction"
    """Through a pooler, with another session of the server's for each transaction: no LISTEN, nothing prepared."""


class Pooled(Exception):
    """There is a pooler in between, which the URL does not mention; its text says how that shows."""


def road_of(url: StoreUrl) -> Road:
    """The road that `pgbouncer=` names; without it a pooler is looked for."""
    value = url.options.get("pgbouncer", "0").lower()
    if value not in _VALUES:
        raise InvalidError(
            f"{url.masked}: pgbouncer= is 1 (transaction mode), session, or 0 for a direct connection; nothing was "
            "opened."
        )
    return Road(_VALUES[value])


class SessionSettings:
    """The settings that follow from a lease, in the forms in which they can be sent."""

    def __init__(self, lease: int) -> None:
        self.fifth = max(200, lease // MILLISECOND // 5)
        self._timeouts = {
            "statement_timeout": self.fifth,
            "lock_timeout": self.fifth * 4 // 5,
            "idle_in_transaction_session_timeout": self.fifth,
        }
        # Every join of ours is a few rows against a key; fresh tables have no statistics that would say so, and closing
        # a batch of records once read the whole log. What has no index would look so expensive that the server compiles
        # it first: hence no JIT.
        planning = ("enable_hashjoin", "enable_mergejoin", "enable_seqscan", "enable_material", "jit")
        self._local: dict[str, str | int] = {**self._timeouts, **dict.fromkeys(planning, "off")}
        self._all = {**self._local, "timezone": "UTC", "default_transaction_isolation": "read committed"}

    @property
    def startup(self) -> str:
        """Return them as `options` of the connection, in one packet with the login."""
        return " ".join(f"-c {name}={str(value).replace(' ', chr(92) + ' ')}" for name, value in self._all.items())

    @property
    def session(self) -> str:
        """Return them as statements for a session that stands."""
        return "; ".join(f"SET {name} = '{value}'" for name, value in self._all.items())

    def begin(self, road: Road) -> str:
        """Return what begins a transaction; where sessions are shared, with the settings, in one round trip."""
        begin = "BEGIN ISOLATION LEVEL READ COMMITTED"
        if road is not Road.TRANSACTION:
            return begin
        return "; ".join([begin, *(f"SET LOCAL {name} = '{value}'" for name, value in self._local.items())])

    @property
    def question(self) -> str:
        """Asks a session for its number, and whether the timeouts are those that we asked for."""
        hold = (f"current_setting('{name}')::interval = '{ms} ms'::interval" for name, ms in self._timeouts.items())
        return f"SELECT pg_backend_pid(), {' AND '.join(hold)}"
