"""MariaDB stands the fault suite; and what only MariaDB has: rows that it counts, its budget of statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import pymysql
import pytest

from solocron.clock import SECOND
from solocron.model.change import Change, Kind
from solocron.model.documents.session import begin, renew
from solocron.stores.contract import ChangeFn, Named, Store, Verdict
from solocron.stores.sql.mysql import MySQLStore
from solocron.stores.sql.mysql.link import MySQLLink
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import (
    everything,
    get,
    job,
    put,
    session,
    take,
    verdicts,
    write,
)
from solocron.testing.faults import Locking, LockingVictim, StoreFaults, Victim
from solocron.testing.faults.victim import MINE, PASSWORD, claim, finish
from solocron.testing.proxy import ChaosProxy
from tests.servers import MariaDB
from tests.servers.opening import opened_as

opened_store = partial(opened_as, MySQLStore)


@contextmanager
def application(url: str) -> Iterator[Any]:
    """A connection of the application's own, with its transaction open, as a cursor."""
    parts = urlsplit(url)
    connection: pymysql.Connection[Any] = pymysql.connect(
        host="127.0.0.1", port=parts.port or 0, user=parts.username, database=parts.path[1:]
    )
    try:
        with connection.cursor() as cursor:
            yield cursor
    finally:
        connection.rollback()
        connection.close()


@pytest.fixture
def url(mariadb: MariaDB) -> Iterator[str]:
    url = mariadb.fresh_url()
    yield url
    with application(mariadb.url) as owner:  # so that the server need not write it all down when it ends
        owner.execute(f"DROP DATABASE {url.rpartition('/')[2]}")


@pytest.fixture
def store(url: str) -> Iterator[MySQLStore]:
    with opened_store(url) as store:
        yield store


@pytest.fixture
def proxy(url: str) -> Iterator[ChaosProxy]:
    with ChaosProxy.for_url(url) as proxy:
        yield proxy


class MariaDBVictim(LockingVictim):
    conflicts = tuple(
        f"{code} {when} {verb}"
        for code in (1205, 1213, 1020)
        for when in ("before", "after")
        for verb in ("begin", "locked", "many", "commit")
    )

    def __init__(self, server: MariaDB, url: str) -> None:
        self.server = server
        self.url = url

    def make(self, url: str, *, lease: timedelta) -> Store:
        return make_store(url, lease=lease)

    def kill(self) -> None:
        self.server.kill9()

    def restart(self) -> None:
        self.server.restart()

    @contextmanager
    def hurt_at_commit(self, fault: Callable[[], None], change: ChangeFn) -> Iterator[ChangeFn]:
        """The commit is a message of its own, after those of the writes."""
        real, faults = MySQLLink.commit, [fault]

        def commit(link: MySQLLink) -> None:
            while faults:
                faults.pop()()
            real(link)

        with patch.object(MySQLLink, "commit", commit):
            yield change

    @contextmanager
    def guarded(self) -> Iterator[str]:
        with application(self.url) as owner:
            owner.execute(f"CREATE USER canary@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'")
            owner.execute("GRANT ALL ON *.* TO canary@'127.0.0.1'")
        try:
            yield self.url.replace("solocron@", f"canary:{PASSWORD}@")
        finally:
            with application(self.url) as owner:
                owner.execute("DROP USER canary@'127.0.0.1'")

    def refused(self, guarded: str) -> list[str]:
        wrong = guarded.replace(PASSWORD, f"{PASSWORD}wrong")
        return [f"{guarded.rpartition('/')[0]}/missing_database", guarded.replace("canary:", "nobody:"), wrong]

    def broken(self, guarded: str) -> list[str]:
        user, path = guarded.rpartition("@")[0], guarded.rpartition("/")[2]
        return [f"{user}@127.0.0.1:1/{path}", f"{user}@no.such.host.invalid/{path}"]

    @contextmanager
    def locked(self, what: Kind) -> Iterator[None]:
        table = "solocron_jobs" if what is Kind.JOB else "solocron_documents"
        with application(self.url) as blocker:
            blocker.execute(f"SELECT 1 FROM {table} FOR UPDATE")
            yield

    def waiting(self) -> int:
        with application(self.url) as watcher:
            watcher.execute("SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'")
            return int(watcher.fetchone()[0])

    @contextmanager
    def conflicting(self, conflict: str) -> Iterator[None]:
        code, when, verb = conflict.split()
        real = getattr(MySQLLink, verb)
        left = [2]

        def statement(link: MySQLLink, *args: Any) -> Any:
            answer = real(link, *args) if when == "after" or not left[0] else None
            if left[0]:
                left[0] -= 1
                link.rollback()  # as the server has by then: closing the connection would let its rows go later
                with link.translating():
                    raise pymysql.OperationalError(int(code), "injected")
            return answer

        with patch.object(MySQLLink, verb, statement):
            yield


class TestMariaDB(Locking, StoreFaults):
    gives_up_within = 4.0  # the server knows whole seconds only
    frees_within = 5.0
    waits_in_vain = False

    @pytest.fixture
    def victim(self, mariadb: MariaDB, url: str) -> Victim:
        return MariaDBVictim(mariadb, url)


class TestUnknown:
    def test_the_connection_of_an_unknown_outcome_is_never_used_again(
        self, mariadb: MariaDB, url: str, store: MySQLStore, proxy: ChaosProxy
    ) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))
        with opened_store(proxy.through(url)) as far:
            with far.pool.link() as used:
                pass
            victim = MariaDBVictim(mariadb, url)
            with victim.hurt_at_commit(lambda: proxy.cut_after(0, "replies"), claim) as change:
                far.update(everything(), change)
            proxy.heal()
            with far.pool.link() as other:
                assert other is not used
            assert not used.db.open


def test_x43_a_renewal_to_the_same_expiry_is_counted_as_found(store: MySQLStore) -> None:
    """The server counts changed rows unless told otherwise; a renewal that changes nothing would look lost."""
    put(store, session("s", expires_at=5))
    same = lambda doc, now: Change(replace(doc, expires_at=5))  # noqa: E731 - reads as what it is
    for _ in range(3):
        assert verdicts(write(store, Kind.SESSION, "s", same)) == {"s": Verdict.APPLIED}
    with store.pool.link() as link, link.db.cursor() as cursor:
        assert cursor.execute("UPDATE solocron_documents SET expires_at = 5 WHERE name = 's'") == 1


def test_x22_a_transaction_of_the_application_is_never_joined(url: str, store: MySQLStore) -> None:
    with application(url) as theirs:
        theirs.execute("CREATE TABLE orders (id int)")
        theirs.execute("INSERT INTO orders VALUES (1)")
        put(store, job("j", due_at=store.clock() - SECOND))
        assert take(store, "s") == ["j"]
        with opened_store(url) as other:
            assert get(other, Kind.JOB, "j").active  # seen at once, whatever becomes of the application's own
    assert get(store, Kind.JOB, "j").active


class TestBudget:
    def test_a_renewal_is_one_statement(self, store: MySQLStore) -> None:
        beat = lambda doc, now: renew(doc, now=now)  # noqa: E731 - reads as what it is
        write(store, Kind.SESSION, "s", lambda doc, now: begin(doc, MINE, now=now))
        write(store, Kind.SESSION, "s", beat)
        before = store.statements.copy()
        for _ in range(5):
            assert verdicts(write(store, Kind.SESSION, "s", beat)) == {"s": Verdict.APPLIED}
        assert dict(store.statements - before) == {"session_renewed": 5, "commit": 5}

    def test_a_wrong_idea_of_the_time_is_corrected_by_asking(self, store: MySQLStore) -> None:
        """As after a step of the server's clock: the guard in the statement notices, the slow way follows."""
        beat = lambda doc, now: renew(doc, now=now)  # noqa: E731 - reads as what it is
        write(store, Kind.SESSION, "s", lambda doc, now: begin(doc, MINE, now=now))
        write(store, Kind.SESSION, "s", beat)
        for wrong in (60 * SECOND, -60 * SECOND):
            now = store.clock()
            store.cache.observe(now + wrong)
            assert verdicts(write(store, Kind.SESSION, "s", beat)) == {"s": Verdict.APPLIED}
            assert 0 <= get(store, Kind.SESSION, "s").expires_at - MINE.lease - now < 10 * SECOND

    def test_claim_and_finish_of_a_hundred_are_a_handful_of_statements(self, store: MySQLStore) -> None:
        write(store, Kind.SESSION, "s", lambda doc, now: begin(doc, MINE, now=now))
        put(store, *(job(f"j{i:03}", due_at=store.clock() - SECOND) for i in range(100)))
        before = store.statements.copy()
        applied = store.update(everything(), claim, session="s")
        assert len(applied.results) == 100
        store.update(Named(Kind.JOB, tuple(result.name for result in applied.results)), finish)
        counted = store.statements - before
        assert counted.pop("commit") == 2
        assert sum(counted.values()) <= 12
