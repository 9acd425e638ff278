"""What a server and the road to it can do to a MariaDB store. Unknown is said only where it is unknown."""

from __future__ import annotations

import gc
import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pymysql
import pytest

from solocron.clock import SECOND
from solocron.errors import StoreError, StoreRefused, StoreUnavailable
from solocron.model.change import Change, Kind
from solocron.model.documents.run import Entry, Op, Status
from solocron.model.documents.session import Session, begin, bury, renew
from solocron.stores.contract import All, HeldBy, Named, ToSweep, Verdict
from solocron.stores.sql.mysql import MySQLStore
from solocron.stores.sql.mysql.link import MySQLLink
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
    session,
    take,
    verdicts,
    write,
)
from solocron.testing.conformance.rivals import race
from solocron.testing.proxy import ChaosProxy
from tests.servers import MariaDB
from tests.servers.opening import opened_as

opened_store = partial(opened_as, MySQLStore)
LEASE = timedelta(seconds=15)
SHORT = timedelta(seconds=2)
MINE = Session(name="s", node="n", host="h", pid=1, lease=15 * SECOND)


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


def before_commit(fault: Callable[[], None]) -> Callable[[MySQLLink], None]:
    """The commit of a connection, but once something happens to the road just before it."""
    real, faults = MySQLLink.commit, [fault]

    def commit(self: MySQLLink) -> None:
        while faults:
            faults.pop()()
        real(self)

    return commit


class TestUnknown:
    def test_i13_a_reply_lost_after_the_commit_is_unknown_and_what_was_written_is_there(
        self, url: str, store: MySQLStore, proxy: ChaosProxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(store, job("j", due_at=store.clock() - SECOND), job("k", due_at=store.clock() - SECOND))
        with opened_store(proxy.through(url)) as far:
            monkeypatch.setattr(MySQLLink, "commit", before_commit(lambda: proxy.cut_after(0, "replies")))
            applied = far.update(everything(), claim)
            assert verdicts(applied) == {"j": Verdict.UNKNOWN, "k": Verdict.UNKNOWN}
            assert all(result.answer is None for result in applied.results)
            proxy.heal()
            # What the session holds is asked, not guessed: the node adopts it, no lease is lost.
            assert {doc.name for doc in far.read(HeldBy("s"))} == {"j", "k"}
        assert len(log(store)) == 2

    def test_a_request_that_never_arrived_is_unknown_too_and_nothing_is_there(
        self, url: str, store: MySQLStore, proxy: ChaosProxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))
        with opened_store(proxy.through(url)) as far:
            monkeypatch.setattr(MySQLLink, "commit", before_commit(lambda: proxy.cut_after(0, "requests")))
            applied = far.update(everything(), claim)
            assert verdicts(applied) == {"j": Verdict.UNKNOWN}
            proxy.heal()
            assert far.read(HeldBy("s")) == ()
            for _ in patience():  # until the server has noticed that we are gone
                if take(far, "s") == ["j"]:
                    break

    def test_a_server_that_falls_silent_is_given_up_before_a_third_of_the_lease(
        self, url: str, store: MySQLStore, proxy: ChaosProxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))
        with opened_store(proxy.through(url), lease=SHORT) as far:
            before = time.monotonic()
            monkeypatch.setattr(MySQLLink, "commit", before_commit(proxy.blackhole))
            applied = far.update(everything(), claim)
            assert time.monotonic() - before < 4  # the server knows whole seconds only
            assert verdicts(applied) == {"j": Verdict.UNKNOWN}
            with pytest.raises(StoreUnavailable, match="nothing was written"):
                far.read(All(Kind.JOB))
            proxy.heal()
            assert [doc.name for doc in far.read(All(Kind.JOB))] == ["j"]

    def test_a_lost_reply_to_a_renewal_costs_no_session(
        self, url: str, store: MySQLStore, proxy: ChaosProxy, monkeypatch: pytest.MonkeyPatch
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
        self, url: str, store: MySQLStore, proxy: ChaosProxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))
        with opened_store(proxy.through(url)) as far:
            with far.pool.link() as used:
                pass
            monkeypatch.setattr(MySQLLink, "commit", before_commit(lambda: proxy.cut_after(0, "replies")))
            far.update(everything(), claim)
            proxy.heal()
            with far.pool.link() as other:
                assert other is not used
            assert not used.db.open


class TestCertain:
    def test_a_cut_between_selection_and_commit_is_an_error_that_wrote_nothing(
        self, url: str, store: MySQLStore, proxy: ChaosProxy
    ) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))
        with opened_store(proxy.through(url)) as far:
            with pytest.raises(StoreUnavailable, match="nothing was written"):
                far.update(everything(), after(proxy.cut, claim))
            proxy.heal()
            for _ in patience():  # until the server has noticed that we are gone
                if take(far, "s") == ["j"]:
                    break
        assert log(store) == ()

    def test_a_cut_before_the_commit_was_sent_is_an_error_that_wrote_nothing(
        self, url: str, store: MySQLStore, proxy: ChaosProxy
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
        self, mariadb: MariaDB, store: MySQLStore
    ) -> None:
        put(store, job("j"))
        store.wait(0.0)
        mariadb.restart()
        assert get(store, Kind.JOB, "j") == job("j")
        put(store, job("k"))

    def test_a_server_that_is_away_is_unavailable_and_comes_back(self, mariadb: MariaDB, store: MySQLStore) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))
        mariadb.kill9()
        with pytest.raises(StoreUnavailable, match="nothing was written"):
            take(store, "s")
        mariadb.restart()
        assert take(store, "s") == ["j"]

    def test_an_interrupt_in_the_middle_discards_the_connection_and_frees_the_rows(self, store: MySQLStore) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))
        used: list[MySQLLink] = []

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
        self, mariadb: MariaDB, store: MySQLStore
    ) -> None:
        put(store, *(job(f"j{i}", due_at=store.clock() - SECOND) for i in range(20)))
        applied = store.update(everything(), claim)
        assert set(verdicts(applied).values()) == {Verdict.APPLIED}
        mariadb.kill9()
        mariadb.restart()
        assert len(store.read(HeldBy("s"))) == 20
        finished = store.update(HeldBy("s"), finish)
        assert set(verdicts(finished).values()) == {Verdict.APPLIED}
        assert {found.status for found in log(store)} == {Status.SUCCEEDED}

    def test_a_frozen_client_holds_its_rows_no_longer_than_a_fifth_of_the_lease(
        self, url: str, store: MySQLStore
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
            assert time.monotonic() - before < 5
            thawed.set()
            thread.join()
        assert isinstance(found[0], StoreUnavailable)
        assert [each.session for each in get(store, Kind.JOB, "j").active] == ["t"]

    def test_the_clock_is_read_after_the_locks_are_held(self, url: str, store: MySQLStore) -> None:
        put(store, note(Kind.LOCK, "n"))
        times: list[int] = []

        def look(doc: Any, now: int) -> None:
            times.append(now)

        with application(url) as blocker:
            blocker.execute("SELECT 1 FROM solocron_documents WHERE name = 'n' FOR UPDATE")
            thread = threading.Thread(target=lambda: write(store, Kind.LOCK, "n", look))
            thread.start()
            with application(url) as watcher:
                for _ in patience():
                    watcher.execute("SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'")
                    if watcher.fetchone() == (1,):
                        break
            released = store.clock()
        thread.join()
        assert times[0] >= released

    def test_i5_burying_waits_for_a_claim_that_has_seen_the_session_alive(self, url: str, store: MySQLStore) -> None:
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


@pytest.mark.parametrize("code", [1205, 1213, 1020])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("verb", ["begin", "locked", "many", "commit"])
def test_a_conflict_that_the_server_settles_against_us_is_tried_again(
    store: MySQLStore, monkeypatch: pytest.MonkeyPatch, code: int, when: str, verb: str
) -> None:
    """Raised before the real call or after it: the document is written once, and so is its record."""
    put(store, *(job(f"j{i}", due_at=store.clock() - SECOND) for i in range(3)))
    real = getattr(MySQLLink, verb)
    left = [2]

    def conflicting(self: MySQLLink, *args: Any) -> Any:
        answer = real(self, *args) if when == "after" or not left[0] else None
        if left[0]:
            left[0] -= 1
            self.rollback()  # as the server has by then: closing the connection would let its rows go a little later
            with self.translating():
                raise pymysql.OperationalError(code, "injected")
        return answer

    monkeypatch.setattr(MySQLLink, verb, conflicting)
    store.update(everything(), claim)
    monkeypatch.undo()
    store.update(everything(), claim)
    assert [doc.fence for doc in store.read(All(Kind.JOB))] == [1, 1, 1]  # type: ignore[union-attr]
    assert sorted(found.run for found in log(store)) == ["j0@1", "j1@1", "j2@1"]
    assert len(store.read(HeldBy("s"))) == 3


def test_x43_a_renewal_to_the_same_expiry_is_counted_as_found(store: MySQLStore) -> None:
    """The server counts changed rows unless told otherwise; a renewal that changes nothing would look lost."""
    put(store, session("s", expires_at=5))
    same = lambda doc, now: Change(replace(doc, expires_at=5))  # noqa: E731 - reads as what it is
    for _ in range(3):
        assert verdicts(write(store, Kind.SESSION, "s", same)) == {"s": Verdict.APPLIED}
    with store.pool.link() as link, link.db.cursor() as cursor:
        assert cursor.execute("UPDATE solocron_documents SET expires_at = 5 WHERE name = 's'") == 1


def test_rows_that_stay_locked_are_contended_and_a_sweep_is_not_told_that_there_is_nothing(
    url: str, store: MySQLStore
) -> None:
    put(store, job("j", active=(hold("r", "s"),)))
    with opened_store(url, lease=timedelta(seconds=1)) as hasty, application(url) as blocker:
        blocker.execute("SELECT 1 FROM solocron_jobs FOR UPDATE")
        assert verdicts(write(hasty, Kind.JOB, "j", finish)) == {"j": Verdict.CONTENDED}
        with pytest.raises(StoreUnavailable, match="rows stayed locked"):
            hasty.update(HeldBy("s"), finish)


def test_x22_a_transaction_of_the_application_is_never_joined(url: str, store: MySQLStore) -> None:
    with application(url) as theirs:
        theirs.execute("CREATE TABLE orders (id int)")
        theirs.execute("INSERT INTO orders VALUES (1)")
        put(store, job("j", due_at=store.clock() - SECOND))
        assert take(store, "s") == ["j"]
        with opened_store(url) as other:
            assert get(other, Kind.JOB, "j").active  # seen at once, whatever becomes of the application's own
    assert get(store, Kind.JOB, "j").active


class TestSecrets:
    PASSWORD = "c4n4ry-p4ss"

    @pytest.fixture
    def guarded(self, url: str) -> Iterator[str]:
        """The URL of a user with a password."""
        with application(url) as owner:
            owner.execute(f"CREATE USER canary@'127.0.0.1' IDENTIFIED BY '{self.PASSWORD}'")
            owner.execute("GRANT ALL ON *.* TO canary@'127.0.0.1'")
        yield url.replace("solocron@", f"canary:{self.PASSWORD}@")
        with application(url) as owner:
            owner.execute("DROP USER canary@'127.0.0.1'")

    def test_no_error_log_or_repr_shows_the_password(self, guarded: str, caplog: pytest.LogCaptureFixture) -> None:
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
            f"{user}wrong@{host}/{path}",
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
        assert "mariadb://canary:***@" in text
        assert self.PASSWORD not in text

    def test_a_user_that_is_refused_is_told_apart_from_a_server_that_is_away(self, guarded: str) -> None:
        for broken in (guarded.rpartition("/")[0] + "/missing_database", guarded.replace("canary:", "nobody:")):
            with pytest.raises(StoreRefused, match="refuses us"):
                make_store(broken).open()


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
            store.renewals.heard(now + wrong)
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


class TestWaking:
    def test_what_we_tell_ourselves_is_no_news(self, store: MySQLStore) -> None:
        store.wait(0.0)
        put(store, job("j", due_at=1))
        assert store.wait(0.05) is False

    def test_a_server_that_is_away_is_an_error_of_the_wait(self, mariadb: MariaDB, store: MySQLStore) -> None:
        mariadb.kill9()
        try:
            with pytest.raises(StoreUnavailable):
                store.wait(0.1)
        finally:
            mariadb.restart()
        assert store.wait(0.0) is False
