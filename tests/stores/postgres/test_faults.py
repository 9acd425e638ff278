"""PostgreSQL stands the fault suite; and what only PostgreSQL has: its budget of statements, its listener."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from unittest.mock import patch

import psycopg
import pytest

from solocron.clock import SECOND
from solocron.model.change import Change, Kind
from solocron.model.documents.session import begin, renew
from solocron.stores.contract import All, Named, Store, Verdict
from solocron.stores.sql.postgres import PostgresStore
from solocron.stores.sql.postgres.link import PostgresLink
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import (
    add_hold,
    everything,
    get,
    job,
    put,
    take,
    verdicts,
    write,
)
from solocron.testing.faults import Locking, LockingVictim, StoreFaults, Victim
from solocron.testing.faults.victim import MINE, PASSWORD, claim, finish, once
from solocron.testing.proxy import ChaosProxy
from tests.servers import Postgres
from tests.servers.opening import opened_as

opened_store = partial(opened_as, PostgresStore)


@pytest.fixture
def url(postgres: Postgres) -> Iterator[str]:
    url = postgres.fresh_url()
    yield url
    drop(postgres, url)


def drop(postgres: Postgres, url: str) -> None:
    """The database goes, so that the server need not write it all down when it ends."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with opened_store(url) as store:
        yield store


@pytest.fixture
def proxy(url: str) -> Iterator[ChaosProxy]:
    with ChaosProxy.for_url(url) as proxy:
        yield proxy


class PostgresVictim(LockingVictim):
    conflicts = tuple(
        f"{state} {when} {verb}"
        for state in ("40001", "40P01", "55P03")
        for when in ("before", "after")
        for verb in ("begin_with", "commit_with")
    )

    def __init__(self, server: Postgres, url: str) -> None:
        self.server = server
        self.url = url

    def make(self, url: str, *, lease: timedelta) -> Store:
        return make_store(url, lease=lease)

    def kill(self) -> None:
        self.server.kill9()

    def restart(self) -> None:
        self.server.restart()

    @contextmanager
    def guarded(self) -> Iterator[str]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE canary LOGIN SUPERUSER PASSWORD '{PASSWORD}'".encode())
        try:
            yield self.url.replace("solocron@", f"canary:{PASSWORD}@")
        finally:
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute("DROP OWNED BY canary")
                connection.execute("DROP ROLE canary")

    def refused(self, guarded: str) -> list[str]:
        return [f"{guarded.rpartition('/')[0]}/missing_database", guarded.replace("canary:", "nobody:")]

    def broken(self, guarded: str) -> list[str]:
        user, _, place = guarded.rpartition("@")
        host, _, path = place.partition("/")
        return [
            f"{user}@127.0.0.1:1/{path}",
            f"{user}@{host}/{path}?sslmode=require",
            f"{user}@{host}/{path}?sslmode=nonsense",
            f"{user}@{host}/{path}?options=-c%20nonsense%3D1",
            f"{user}@no.such.host.invalid/{path}",
        ]

    @contextmanager
    def locked(self, what: Kind) -> Iterator[None]:
        table = "solocron_jobs" if what is Kind.JOB else "solocron_documents"
        with psycopg.connect(self.url) as blocker:
            blocker.execute(f"SELECT 1 FROM {table} FOR UPDATE".encode())
            yield
            blocker.rollback()

    def waiting(self) -> int:
        return int(self.server.sql("SELECT count(*) FROM pg_locks WHERE NOT granted")[0][0])

    @contextmanager
    def conflicting(self, conflict: str) -> Iterator[None]:
        state, when, verb = conflict.split()
        real = getattr(PostgresLink, verb)
        left = [2]

        def statement(link: PostgresLink, *args: Any) -> Any:
            answer = real(link, *args) if when == "after" or not left[0] else None
            if left[0]:
                left[0] -= 1
                link.rollback()  # as the server has by then: closing the connection would let its rows go later
                error = psycopg.errors.lookup(state)("injected")
                with link.translating():
                    raise error
            return answer

        with patch.object(PostgresLink, verb, statement):
            yield


class TestPostgres(Locking, StoreFaults):
    @pytest.fixture
    def victim(self, postgres: Postgres, url: str) -> Victim:
        return PostgresVictim(postgres, url)


class TestUnknown:
    def test_the_connection_of_an_unknown_outcome_is_never_used_again(
        self, url: str, store: PostgresStore, proxy: ChaosProxy
    ) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))
        with opened_store(proxy.through(url)) as far:
            with far.pool.link() as used:
                pass
            far.update(everything(), once(lambda: proxy.cut_after(0, "replies"), claim))
            proxy.heal()
            with far.pool.link() as other:
                assert other is not used
            assert used.db.closed


def test_x22_a_transaction_of_the_application_is_never_joined(url: str, store: PostgresStore) -> None:
    with psycopg.connect(url) as application:
        application.execute("CREATE TABLE orders (id int)")
        application.execute("INSERT INTO orders VALUES (1)")
        put(store, job("j", due_at=store.clock() - SECOND))
        assert take(store, "s") == ["j"]
        with opened_store(url) as other:
            assert get(other, Kind.JOB, "j").active  # seen at once, whatever becomes of the application's own
        application.rollback()
    assert get(store, Kind.JOB, "j").active


class TestBudget:
    def test_a_renewal_is_one_statement_and_one_round_trip(self, store: PostgresStore) -> None:
        beat = lambda doc, now: renew(doc, now=now)  # noqa: E731 - reads as what it is
        write(store, Kind.SESSION, "s", lambda doc, now: begin(doc, MINE, now=now))
        write(store, Kind.SESSION, "s", beat)
        before = store.statements.copy()
        for _ in range(5):
            assert verdicts(write(store, Kind.SESSION, "s", beat)) == {"s": Verdict.APPLIED}
        assert dict(store.statements - before) == {"session_renewed": 5, "commit": 5}

    def test_a_renewal_by_our_own_idea_of_the_time_is_never_ahead_of_the_server(self, store: PostgresStore) -> None:
        told: list[int] = []

        def beat(doc: Any, now: int) -> Change | None:
            told.append(now)
            return renew(doc, now=now)

        write(store, Kind.SESSION, "s", lambda doc, now: begin(doc, MINE, now=now))
        for _ in range(5):
            before = store.clock()
            write(store, Kind.SESSION, "s", beat)
            assert before - MINE.lease // 50 <= told[-1] <= store.clock()
        assert get(store, Kind.SESSION, "s").expires_at == told[-1] + MINE.lease

    def test_a_wrong_idea_of_the_time_is_corrected_by_asking(self, store: PostgresStore) -> None:
        """As after a step of the server's clock: the guard in the statement notices, the slow way follows."""
        beat = lambda doc, now: renew(doc, now=now)  # noqa: E731 - reads as what it is
        write(store, Kind.SESSION, "s", lambda doc, now: begin(doc, MINE, now=now))
        write(store, Kind.SESSION, "s", beat)
        for wrong in (60 * SECOND, -60 * SECOND):
            now = store.clock()
            store.cache.observe(now + wrong)
            assert verdicts(write(store, Kind.SESSION, "s", beat)) == {"s": Verdict.APPLIED}
            assert 0 <= get(store, Kind.SESSION, "s").expires_at - MINE.lease - now < 10 * SECOND

    def test_claim_and_finish_of_a_hundred_are_three_statements(self, store: PostgresStore) -> None:
        write(store, Kind.SESSION, "s", lambda doc, now: begin(doc, MINE, now=now))
        put(store, *(job(f"j{i:03}", due_at=store.clock() - SECOND) for i in range(100)))
        before = store.statements.copy()
        applied = store.update(everything(), claim, session="s")
        assert len(applied.results) == 100
        store.update(Named(Kind.JOB, tuple(result.name for result in applied.results)), finish)
        assert dict(store.statements - before) == {"due_jobs": 1, "write": 2, "commit": 2}
        assert all(not doc.active for doc in store.read(All(Kind.JOB)))  # type: ignore[union-attr]

    def test_an_end_of_what_others_have_changed_meanwhile_reads_it_first(self, url: str, store: PostgresStore) -> None:
        write(store, Kind.SESSION, "s", lambda doc, now: begin(doc, MINE, now=now))
        put(store, *(job(name, due_at=store.clock() - SECOND) for name in ("a", "b", "c")))
        store.update(everything(), claim, session="s")
        with opened_store(url) as other:
            write(other, Kind.JOB, "b", lambda doc, now: Change(replace(doc, failures=7)))
        before = store.statements.copy()
        applied = store.update(Named(Kind.JOB, ("a", "b", "c")), finish)
        assert verdicts(applied) == dict.fromkeys("abc", Verdict.APPLIED)
        assert dict(store.statements - before) == {"named_jobs_locked": 1, "write": 2, "commit": 2}
        assert [(doc.active, doc.failures) for doc in store.read(All(Kind.JOB))] == [((), 0), ((), 7), ((), 0)]  # type: ignore[union-attr]

    def test_a_version_that_comes_a_second_time_after_a_restore_is_not_taken_for_ours(
        self, url: str, store: PostgresStore
    ) -> None:
        """The store went back to before our claim, and another node claimed: same version, other hold."""
        for one in ("s", "other"):
            mine = replace(MINE, name=one)
            write(store, Kind.SESSION, one, lambda doc, now, mine=mine: begin(doc, mine, now=now))  # type: ignore[misc]
        put(store, job("a", due_at=store.clock() - SECOND))
        with psycopg.connect(url, autocommit=True) as backup:
            row = backup.execute("SELECT version, state, due_at FROM solocron_jobs").fetchone()
            store.update(everything(), claim, session="s")
            backup.execute("UPDATE solocron_jobs SET version = %s, state = %s, due_at = %s", row)
            backup.execute("DELETE FROM solocron_holds")
        with opened_store(url) as other:
            write(other, Kind.JOB, "a", add_hold("other"))
        ended: list[Any] = []

        def end(doc: Any, now: int) -> Change | None:
            ended.append(doc.active[0].session)
            return finish(doc, now) if doc.active[0].session == "s" else None

        assert verdicts(store.update(Named(Kind.JOB, ("a",)), end)) == {"a": Verdict.DECLINED}
        assert ended == ["s", "other"]
        assert [hold.session for hold in get(store, Kind.JOB, "a").active] == ["other"]

    def test_an_end_by_a_wrong_idea_of_the_time_asks_for_it_first(self, store: PostgresStore) -> None:
        write(store, Kind.SESSION, "s", lambda doc, now: begin(doc, MINE, now=now))
        for name, wrong in (("a", 60 * SECOND), ("b", -60 * SECOND)):
            told: list[int] = []

            def end(doc: Any, now: int, told: list[int] = told) -> Change | None:
                told.append(now)
                return finish(doc, now)

            put(store, job(name, due_at=store.clock() - SECOND))
            store.update(everything(), claim, session="s")
            now = store.clock()
            store.cache.observe(now + wrong)
            assert verdicts(store.update(Named(Kind.JOB, (name,)), end)) == {name: Verdict.APPLIED}
            assert len(told) == 2
            assert 0 <= told[-1] - now < 10 * SECOND

    def test_due_jobs_are_found_by_their_index(self, url: str, store: PostgresStore) -> None:
        put(store, *(job(f"j{i:04}", due_at=store.clock() + SECOND * i) for i in range(1000)))
        with psycopg.connect(url) as connection:
            connection.execute("ANALYZE")
            plan = connection.execute(
                "EXPLAIN SELECT name FROM solocron_jobs WHERE namespace = 'default' AND pool = 'default' "
                "AND due_at <= 5 ORDER BY due_at, name LIMIT 10"
            ).fetchall()
        text = "\n".join(str(row[0]) for row in plan)
        assert "solocron_jobs_due" in text
        assert "Sort" not in text


class TestWaking:
    def test_a_listener_that_was_cut_off_wakes_up_and_listens_again(
        self, url: str, store: PostgresStore, proxy: ChaosProxy
    ) -> None:
        with opened_store(proxy.through(url)) as far:
            far.wait(0.0)
            proxy.cut()
            assert far.wait(0.01) is False  # noticed
            assert far.wait(5.0) is True  # connected anew: something may have been missed
            store.signal()
            assert far.wait(30.0) is True
