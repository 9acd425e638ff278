"""What a server and the road to it can do to a PostgreSQL store. Unknown is said only where it is unknown."""

from __future__ import annotations

import gc
import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from solocron.clock import SECOND
from solocron.errors import StoreError, StoreRefused, StoreUnavailable
from solocron.model.change import Change, Kind
from solocron.model.documents.run import Entry, Op, Status
from solocron.model.documents.session import Session, begin, bury, renew
from solocron.stores.contract import All, HeldBy, Named, ToSweep, Verdict
from solocron.stores.sql.postgres import PostgresStore
from solocron.stores.sql.postgres.link import PostgresLink
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import (
    add_hold,
    everything,
    get,
    hold,
    job,
    log,
    note,
    opened,
    patience,
    put,
    record,
    take,
    verdicts,
    write,
)
from solocron.testing.conformance.rivals import race
from solocron.testing.proxy import ChaosProxy
from tests.servers import Postgres
from tests.servers.opening import opened_as

opened_store = partial(opened_as, PostgresStore)
LEASE = timedelta(seconds=15)
SHORT = timedelta(seconds=2)
MINE = Session(name="s", node="n", host="h", pid=1, lease=15 * SECOND)


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


def claim(doc: Any, now: int) -> Change | None:
    change = add_hold("s")(doc, now)
    return change and Change(change.doc, opened(record(f"{doc.name}@1", at=now)), "mine")


def finish(doc: Any, now: int) -> Change | None:
    if not doc.active:
        return None
    return Change(replace(doc, active=()), (Entry(Op.CLOSE, record(f"{doc.name}@1", status=Status.SUCCEEDED)),))


def after(
    fault: Callable[[], None], change: Callable[[Any, int], Change | None]
) -> Callable[[Any, int], Change | None]:
    """A change that, once, does something to the connection between its selection and its commit."""
    faults = [fault]

    def faulty(doc: Any, now: int) -> Change | None:
        while faults:
            faults.pop()()
        return change(doc, now)

    return faulty


class TestUnknown:
    def test_i13_a_reply_lost_after_the_commit_is_unknown_and_what_was_written_is_there(
        self, url: str, store: PostgresStore, proxy: ChaosProxy
    ) -> None:
        put(store, job("j", due_at=store.clock() - SECOND), job("k", due_at=store.clock() - SECOND))
        with opened_store(proxy.through(url)) as far:
            applied = far.update(everything(), after(lambda: proxy.cut_after(0, "replies"), claim))
            assert verdicts(applied) == {"j": Verdict.UNKNOWN, "k": Verdict.UNKNOWN}
            assert all(result.answer is None for result in applied.results)
            proxy.heal()
            # What the session holds is asked, not guessed: the node adopts it, no lease is lost.
            assert {doc.name for doc in far.read(HeldBy("s"))} == {"j", "k"}
        assert len(log(store)) == 2

    def test_a_request_that_never_arrived_is_unknown_too_and_nothing_is_there(
        self, url: str, store: PostgresStore, proxy: ChaosProxy
    ) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))
        with opened_store(proxy.through(url)) as far:
            applied = far.update(everything(), after(lambda: proxy.cut_after(0, "requests"), claim))
            assert verdicts(applied) == {"j": Verdict.UNKNOWN}
            proxy.heal()
            assert far.read(HeldBy("s")) == ()
            for _ in patience():  # until the server has noticed that we are gone
                if take(far, "s") == ["j"]:
                    break

    def test_a_server_that_falls_silent_is_given_up_before_a_third_of_the_lease(
        self, url: str, store: PostgresStore, proxy: ChaosProxy
    ) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))
        with opened_store(proxy.through(url), lease=SHORT) as far:
            before = time.monotonic()
            applied = far.update(everything(), after(proxy.blackhole, claim))
            assert time.monotonic() - before < SHORT.total_seconds() / 3 + 0.5
            assert verdicts(applied) == {"j": Verdict.UNKNOWN}
            with pytest.raises(StoreUnavailable, match="nothing was written"):
                far.read(All(Kind.JOB))
            proxy.heal()
            assert [doc.name for doc in far.read(All(Kind.JOB))] == ["j"]

    def test_a_lost_reply_to_a_renewal_costs_no_session(
        self, url: str, store: PostgresStore, proxy: ChaosProxy
    ) -> None:
        with opened_store(proxy.through(url)) as far:
            write(far, Kind.SESSION, "s", lambda doc, now: begin(doc, MINE, now=now))
            beat = lambda doc, now: renew(doc, now=now)  # noqa: E731 - reads as what it is
            write(far, Kind.SESSION, "s", beat)
            proxy.cut_after(0, "replies")
            applied = write(far, Kind.SESSION, "s", beat)
            assert (verdicts(applied), applied.now) == ({"s": Verdict.UNKNOWN}, 0)
            proxy.heal()
            assert verdicts(write(far, Kind.SESSION, "s", beat)) == {"s": Verdict.APPLIED}
        assert get(store, Kind.SESSION, "s").state == "live"

    def test_the_connection_of_an_unknown_outcome_is_never_used_again(
        self, url: str, store: PostgresStore, proxy: ChaosProxy
    ) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))
        with opened_store(proxy.through(url)) as far:
            with far.pool.link() as used:
                pass
            far.update(everything(), after(lambda: proxy.cut_after(0, "replies"), claim))
            proxy.heal()
            with far.pool.link() as other:
                assert other is not used
            assert used.db.closed


class TestCertain:
    def test_a_cut_before_the_commit_was_sent_is_an_error_that_wrote_nothing(
        self, url: str, store: PostgresStore, proxy: ChaosProxy
    ) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))
        with opened_store(proxy.through(url)) as far:
            proxy.cut_after(0, "requests")
            with pytest.raises(StoreUnavailable, match="nothing was written"):
                far.update(everything(), claim)
            proxy.heal()
            for _ in patience():
                if take(far, "s") == ["j"]:
                    break

    def test_idle_connections_that_a_restart_has_killed_are_not_noticed_by_callers(
        self, postgres: Postgres, store: PostgresStore
    ) -> None:
        put(store, job("j"))
        store.wait(0.0)
        postgres.restart()
        assert get(store, Kind.JOB, "j") == job("j")
        put(store, job("k"))

    def test_a_server_that_is_away_is_unavailable_and_comes_back(
        self, postgres: Postgres, store: PostgresStore
    ) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))
        postgres.kill9()
        with pytest.raises(StoreUnavailable, match="nothing was written"):
            take(store, "s")
        assert store.wait(0.01) is False
        postgres.restart()
        assert take(store, "s") == ["j"]

    def test_an_interrupt_in_the_middle_discards_the_connection_and_frees_the_rows(self, store: PostgresStore) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))
        used: list[PostgresLink] = []

        def interrupted(doc: Any, now: int) -> Change:
            with store.pool.link() as other:
                used.append(other)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.update(everything(), interrupted)
        gc.collect()
        for _ in patience():
            if take(store, "s") == ["j"]:
                break
        assert store.read(HeldBy("s"))


class TestServer:
    def test_i12_kill_9_of_the_server_between_claim_and_finish_loses_nothing(
        self, postgres: Postgres, store: PostgresStore
    ) -> None:
        put(store, *(job(f"j{i}", due_at=store.clock() - SECOND) for i in range(20)))
        applied = store.update(everything(), claim)
        assert set(verdicts(applied).values()) == {Verdict.APPLIED}
        postgres.kill9()
        postgres.restart()
        assert len(store.read(HeldBy("s"))) == 20
        finished = store.update(HeldBy("s"), finish)
        assert set(verdicts(finished).values()) == {Verdict.APPLIED}
        assert {found.status for found in log(store)} == {Status.SUCCEEDED}

    def test_a_frozen_client_holds_its_rows_no_longer_than_a_fifth_of_the_lease(
        self, url: str, store: PostgresStore
    ) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))
        with opened_store(url, lease=SHORT) as frozen:
            thawed, selected = threading.Event(), threading.Event()
            found: list[Any] = []

            def stuck(doc: Any, now: int) -> Change | None:
                selected.set()
                thawed.wait(30)
                return claim(doc, now)

            def freeze() -> None:
                try:
                    found.append(verdicts(frozen.update(everything(), stuck)))
                except StoreError as error:
                    found.append(error)

            thread = threading.Thread(target=freeze)
            thread.start()
            selected.wait(30)
            assert take(store, "t") == []  # due jobs that are locked are passed over
            before = time.monotonic()
            assert take(store, "t", Named(Kind.JOB, ("j",))) == ["j"]  # named ones are waited for
            assert time.monotonic() - before < 2
            thawed.set()
            thread.join()
        assert found == [{"j": Verdict.UNKNOWN}] or isinstance(found[0], StoreUnavailable)
        assert [each.session for each in get(store, Kind.JOB, "j").active] == ["t"]

    def test_the_clock_is_read_after_the_locks_are_held(self, url: str, store: PostgresStore) -> None:
        put(store, note(Kind.LOCK, "n"))
        with psycopg.connect(url) as blocker:
            blocker.execute("SELECT 1 FROM solocron_documents WHERE name = 'n' FOR UPDATE")
            times: list[int] = []

            def look(doc: Any, now: int) -> None:
                times.append(now)

            thread = threading.Thread(target=lambda: write(store, Kind.LOCK, "n", look))
            thread.start()
            with psycopg.connect(url, autocommit=True) as watcher:
                for _ in patience():
                    waiting = watcher.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
                    if waiting == (1,):
                        break
            released = store.clock()
            blocker.rollback()
        thread.join()
        assert times[0] >= released

    def test_i5_burying_waits_for_a_claim_that_has_seen_the_session_alive(self, url: str, store: PostgresStore) -> None:
        """F1: a claim is either before the burial, and swept, or not at all."""
        write(store, Kind.SESSION, "s", lambda doc, now: begin(doc, MINE, now=now))
        put(store, *(job(f"j{i}", due_at=store.clock() - SECOND) for i in range(30)))
        with opened_store(url) as sweeper:

            def sweep() -> int:
                write(sweeper, Kind.SESSION, "s", lambda doc, now: bury(doc, now=now, reason="test"))
                sweeper.update(HeldBy("s"), lambda doc, now: Change(replace(doc, active=())))
                return len(sweeper.read(ToSweep()))

            def claims() -> int:
                while store.update(everything(limit=1), claim, session="s").alive:
                    pass
                return 0

            race([sweep, claims])
            assert sweeper.read(HeldBy("s")) == ()
            assert sweeper.holders() == frozenset()


@pytest.mark.parametrize("state", ["40001", "40P01", "55P03"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("verb", ["begin_with", "commit_with"])
def test_a_conflict_that_the_server_settles_against_us_is_tried_again(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, state: str, when: str, verb: str
) -> None:
    """Raised before the real call or after it: the document is written once, and so is its record."""
    put(store, *(job(f"j{i}", due_at=store.clock() - SECOND) for i in range(3)))
    real = getattr(PostgresLink, verb)
    left = [2]

    def conflicting(self: PostgresLink, *args: Any) -> Any:
        answer = real(self, *args) if when == "after" or not left[0] else None
        if left[0]:
            left[0] -= 1
            self.rollback()  # as the server has by then: closing the connection would let its rows go a little later
            error = psycopg.errors.lookup(state)("injected")
            with self.translating():
                raise error
        return answer

    monkeypatch.setattr(PostgresLink, verb, conflicting)
    store.update(everything(), claim)
    monkeypatch.undo()
    store.update(everything(), claim)
    assert [doc.fence for doc in store.read(All(Kind.JOB))] == [1, 1, 1]  # type: ignore[union-attr]
    assert sorted(found.run for found in log(store)) == ["j0@1", "j1@1", "j2@1"]
    assert len(store.read(HeldBy("s"))) == 3


def test_rows_that_stay_locked_are_contended_and_a_sweep_is_not_told_that_there_is_nothing(
    url: str, store: PostgresStore
) -> None:
    put(store, job("j", active=(hold("r", "s"),)))
    with opened_store(url, lease=timedelta(seconds=1)) as hasty, psycopg.connect(url) as blocker:
        blocker.execute("SELECT 1 FROM solocron_jobs FOR UPDATE")
        before = time.monotonic()
        assert verdicts(write(hasty, Kind.JOB, "j", finish)) == {"j": Verdict.CONTENDED}
        assert time.monotonic() - before < 10
        with pytest.raises(StoreUnavailable, match="rows stayed locked"):
            hasty.update(HeldBy("s"), finish)


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


class TestSecrets:
    PASSWORD = "c4n4ry-p4ss"

    @pytest.fixture
    def guarded(self, postgres: Postgres) -> Iterator[str]:
        """The URL of a user with a password."""
        url = postgres.fresh_url()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE canary LOGIN SUPERUSER PASSWORD '{self.PASSWORD}'")
        yield url.replace("solocron@", f"canary:{self.PASSWORD}@")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP OWNED BY canary")
            connection.execute("DROP ROLE canary")
        drop(postgres, url)

    def test_no_error_log_or_repr_shows_the_password(
        self, guarded: str, postgres: Postgres, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        shown: list[str] = []

        def attempt(what: Callable[[], Any]) -> None:
            try:
                shown.append(repr(what()))
            except Exception as error:
                shown.extend(traceback.format_exception(error))

        host, _, path = guarded.rpartition("@")[2].partition("/")
        user = guarded.rpartition("@")[0]
        for url in (
            guarded,
            f"{user}@{host}/missing_database",
            f"{user}@127.0.0.1:1/{path}",
            f"{user}@{host}/{path}?sslmode=require",
            f"{user}@{host}/{path}?sslmode=nonsense",
            f"{user}@{host}/{path}?options=-c%20nonsense%3D1",
            f"{user}@no.such.host.invalid/{path}",
        ):
            store = make_store(url, lease=SHORT)
            attempt(store.open)
            attempt(lambda store=store: store)  # type: ignore[misc]
            attempt(lambda store=store: store.checks())  # type: ignore[misc]
            attempt(lambda store=store: vars(store))  # type: ignore[misc]
            attempt(lambda store=store: store.update(All(Kind.JOB), lambda doc, now: None))  # type: ignore[misc]
            store.close()
        text = "\n".join([*shown, caplog.text])
        assert "postgresql://canary:***@" in text
        assert self.PASSWORD not in text

    def test_a_user_that_is_refused_is_told_apart_from_a_server_that_is_away(self, guarded: str) -> None:
        for broken in (guarded.rpartition("/")[0] + "/missing_database", guarded.replace("canary:", "nobody:")):
            with pytest.raises(StoreRefused, match="refuses us"):
                make_store(broken).open()


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
            assert before - store.renewals.window <= told[-1] <= store.clock()
        assert get(store, Kind.SESSION, "s").expires_at == told[-1] + MINE.lease

    def test_a_wrong_idea_of_the_time_is_corrected_by_asking(self, store: PostgresStore) -> None:
        """As after a step of the server's clock: the guard in the statement notices, the slow way follows."""
        beat = lambda doc, now: renew(doc, now=now)  # noqa: E731 - reads as what it is
        write(store, Kind.SESSION, "s", lambda doc, now: begin(doc, MINE, now=now))
        write(store, Kind.SESSION, "s", beat)
        for wrong in (60 * SECOND, -60 * SECOND):
            now = store.clock()
            store.renewals.heard(now + wrong)
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
            store.renewals.heard(now + wrong)
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

    def test_what_we_tell_ourselves_is_no_news(self, store: PostgresStore) -> None:
        store.wait(0.0)
        put(store, job("j", due_at=1))
        assert store.wait(0.05) is False
