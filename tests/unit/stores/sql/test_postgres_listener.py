"""The ear of PostgreSQL while its server is away: it tries again, often enough, and never in a tight loop."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, cast

import psycopg
import pytest

from solocron.errors import StoreUnavailable
from solocron.stores.sql.postgres.link import PostgresLink
from solocron.stores.sql.postgres.listener import Listener
from solocron.stores.sql.postgres.session import Road


class Wire:
    """A link that breaks at its first look if it is told to; else it hears nothing."""

    def __init__(self, error: BaseException | None) -> None:
        self._error = error
        self.db = self
        self.patience = 0.0
        self.road = Road.DIRECT
        self.closed = False

    def execute(self, sql: str) -> None:
        assert sql.startswith("LISTEN")

    def notifies(self, *, timeout: float, stop_after: int) -> Iterator[Any]:
        if self._error is not None:
            raise self._error
        time.sleep(timeout)
        return iter(())

    def close(self) -> None:
        self.closed = True


class Server:
    """Refuses some connections, then gives links."""

    def __init__(self, refuses: int, *, breaks_with: BaseException | None = None) -> None:
        self._left = refuses
        self._breaks_with = breaks_with
        self.tried: list[float] = []
        self.links: list[Wire] = []

    def connect(self) -> PostgresLink:
        self.tried.append(time.monotonic())
        if self._left:
            self._left -= 1
            raise StoreUnavailable("away")
        self.links.append(Wire(self._breaks_with))
        return cast(PostgresLink, self.links[-1])


def test_a_server_that_comes_back_is_heard_again_long_before_the_poll_is_over() -> None:
    """It slept out its poll: half a minute in which no waiter was woken."""
    server = Server(refuses=2)
    heard = Listener(server.connect, "channel", "me").wait(2.5, listen=True)
    assert heard, "what was told while it was away is to be looked for"
    gaps = [after - before for before, after in zip(server.tried, server.tried[1:], strict=False)]
    assert len(gaps) == 2
    assert all(0.4 < gap < 2.0 for gap in gaps), gaps


@pytest.mark.parametrize("error", [psycopg.OperationalError("gone"), OSError(9, "Bad file descriptor")])
def test_a_connection_that_breaks_while_it_listens_is_made_anew(error: Exception) -> None:
    server = Server(refuses=0, breaks_with=error)
    listener = Listener(server.connect, "channel", "me")
    assert listener.wait(4.0, listen=True)
    assert listener.wait(4.0, listen=True), "made anew, so: look"
    assert [link.closed for link in server.links] == [True, False]


def test_a_connection_that_broke_strangely_is_not_used_again() -> None:
    server = Server(refuses=0, breaks_with=MemoryError())
    listener = Listener(server.connect, "channel", "me")
    assert listener.wait(4.0, listen=True)
    with pytest.raises(MemoryError):
        listener.wait(4.0, listen=True)
    assert server.links[0].closed
    assert listener.wait(4.0, listen=True)


def test_a_server_that_stays_away_ends_the_wait_in_time() -> None:
    server = Server(refuses=1_000)
    began = time.monotonic()
    assert not Listener(server.connect, "channel", "me").wait(0.6, listen=True)
    assert 0.6 <= time.monotonic() - began < 2.0
    assert len(server.tried) <= 3
