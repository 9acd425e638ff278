"""A real PgBouncer in between: found where the URL does not mention it, and no promise is lost on the way."""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import partial

import psycopg
import pytest

from solocron.clock import SECOND
from solocron.errors import InvalidError, StoreRefused
from solocron.model.change import Kind
from solocron.stores.contract import All, Check
from solocron.stores.sql.postgres import PostgresStore
from solocron.stores.sql.postgres.session import Road
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import job, note, patience, put, session, take
from solocron.testing.fleet import wait_until
from tests.servers import Postgres
from tests.servers.fixtures import StartPgBouncer
from tests.servers.opening import opened_as

opened_store = partial(opened_as, PostgresStore)
SETTINGS = "SELECT current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout')"
MODES = ("session", "transaction")
IGNORES = ("extra_float_digits, options", "")
"""What is needed for Solocron's settings to be dropped in silence, and the default, which refuses them."""


def line(store: PostgresStore, name: str) -> Check:
    (found,) = [check for check in store.checks() if check.name == name]
    return found


def work(store: PostgresStore) -> None:
    """Enough of everything for statements to be prepared, on two connections at once."""
    put(store, session("s", expires_at=store.clock() + 60 * SECOND))
    for number in range(8):
        put(store, job(f"j{number}", due_at=store.clock() - SECOND))
        with store.pool.link():
            assert take(store, "s", session="s") == [f"j{number}"]
            assert len(store.read(All(Kind.JOB))) == number + 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ignored", IGNORES)
def test_a_pooler_that_the_url_does_not_mention_is_found_and_lived_with(
    start_pgbouncer: StartPgBouncer, caplog: pytest.LogCaptureFixture, mode: str, ignored: str
) -> None:
    """Not an outage, no timeouts that are silently 0, no prepared statement of another client."""
    pooler = start_pgbouncer(pool_mode=mode, ignore_startup_parameters=ignored)
    with caplog.at_level(logging.WARNING, "solocron"), opened_store(pooler.fresh_url()) as store:
        work(store)
        assert store.road is Road.TRANSACTION
        assert not store.capabilities.notifies
        assert store.wait(0.0) is False
        (warned,) = [record for record in caplog.records if getattr(record, "event", "") == "pooler found"]
        assert "Write pgbouncer=1 into the URL, or pgbouncer=session" in warned.getMessage()
        assert line(store, "session").level == "WARN"
        assert "pgbouncer=1 or pgbouncer=session" in (line(store, "session").remedy or "")
        with store.pool.link() as link:
            assert link.db.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)


def test_in_transaction_mode_every_transaction_has_our_timeouts_and_leaves_none_behind(
    start_pgbouncer: StartPgBouncer, caplog: pytest.LogCaptureFixture
) -> None:
    with opened_store(f"{start_pgbouncer().fresh_url()}?pgbouncer=1") as store:
        work(store)
        with store.pool.link() as link:
            link.begin_with("clock", {"shift": 0})
            assert link.db.execute(SETTINGS).fetchone() == ("3s", "3s")
            link.rollback()
            assert link.db.execute(SETTINGS).fetchone() == ("0", "0")
        assert line(store, "session").level == "OK"
        assert line(store, "wake-up").level == "WARN"
    assert not caplog.records


def test_what_a_frozen_node_holds_is_freed_through_a_pooler_too(
    start_pgbouncer: StartPgBouncer, postgres: Postgres
) -> None:
    """The node stops in the middle of a transaction: the server ends it after a fifth of the lease."""
    url = start_pgbouncer().fresh_url()
    database = url.rpartition("/")[2]
    with (
        opened_store(f"{url}?pgbouncer=1", lease=timedelta(seconds=2)) as store,
        psycopg.connect(postgres.url, autocommit=True) as direct,
    ):
        open_ones = (
            f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}' AND state = 'idle in transaction'"
        )
        with store.pool.link() as link:
            link.begin_with("clock", {"shift": 0})
            assert direct.execute(open_ones.encode()).fetchone() == (1,)
            wait_until(lambda: direct.execute(open_ones.encode()).fetchone() == (0,), within=20, what="the end of it")
            with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
                link.db.execute("COMMIT")
        put(store, note(Kind.KEY, "n"))  # the next call gets a connection that works


def test_in_session_mode_a_session_is_like_a_direct_one(start_pgbouncer: StartPgBouncer) -> None:
    url = f"{start_pgbouncer(pool_mode='session').fresh_url()}?pgbouncer=session"
    with opened_store(url) as store, opened_store(url) as other:
        work(store)
        with store.pool.link() as link:
            assert link.db.execute(SETTINGS).fetchone() == ("3s", "3s")
        assert {check.level for check in store.checks()} == {"OK"}
        assert store.capabilities.notifies
        store.wait(0.0)  # listens from here on
        other.signal()
        for _ in patience():
            if store.wait(1.0):
                break


def test_session_mode_that_is_none_is_refused(start_pgbouncer: StartPgBouncer) -> None:
    with (
        opened_store(f"{start_pgbouncer().fresh_url()}?pgbouncer=session") as store,
        pytest.raises(StoreRefused, match=r"shares sessions.*nothing was written\. Write pgbouncer=1 into the URL"),
    ):
        work(store)


def test_a_parameter_of_the_users_that_the_pooler_refuses_is_named(start_pgbouncer: StartPgBouncer) -> None:
    url = f"{start_pgbouncer().fresh_url()}?pgbouncer=1&options=-c%20jit%3Doff"
    with (
        pytest.raises(StoreRefused, match=r"unsupported startup parameter.*Take options= out of the URL"),
        opened_store(url),
    ):
        pass


def test_a_database_that_the_pooler_does_not_know_is_no_outage(start_pgbouncer: StartPgBouncer) -> None:
    url = start_pgbouncer().url.rpartition("/")[0]
    with (
        pytest.raises(StoreRefused, match="refused the connection"),
        opened_store(f"{url}/no_such_database?pgbouncer=1"),
    ):
        pass


def test_a_road_that_does_not_exist_is_refused_before_anything_is_opened() -> None:
    with pytest.raises(InvalidError, match=r"pgbouncer= is 1 \(transaction mode\), session, or 0"):
        make_store("postgresql://db/app?pgbouncer=statement")
