"""The SQLite store's own properties: its budget, its clock, its notifications, and no lock while Python computes."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from solocron.clock import SECOND, SystemClock
from solocron.errors import InvalidError, StoreRefused
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.job import Job
from solocron.model.documents.session import Session, begin, bury, renew
from solocron.stores.contract import All, Due, Named, Tier, Verdict
from solocron.stores.sql.sqlite import SQLiteStore
from solocron.stores.sql.sqlite.turns import Turns
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import (
    HOUR,
    add_hold,
    everything,
    get,
    hold,
    job,
    log,
    note,
    put,
    record,
    session,
    take,
    verdicts,
    write,
)
from solocron.testing.conformance.rivals import processes

MINE = Session(name="s", node="n", host="h", pid=1, lease=15 * SECOND)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.db"


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStore]:
    yield from clients(path)


@pytest.fixture
def other(path: Path) -> Iterator[SQLiteStore]:
    yield from clients(path)


def clients(path: Path) -> Iterator[SQLiteStore]:
    store = make_store(f"sqlite:///{path}")
    assert isinstance(store, SQLiteStore)
    store.open()
    yield store
    store.close()


def sent(store: SQLiteStore, before: Counter[str]) -> dict[str, int]:
    return dict(store.statements - before)


def start_session(store: SQLiteStore) -> None:
    write(store, Kind.SESSION, "s", lambda doc, now: begin(doc, MINE, now=now))


def beat(store: SQLiteStore) -> Verdict:
    return verdicts(write(store, Kind.SESSION, "s", lambda doc, now: renew(doc, now=now)))["s"]


class TestBudget:
    def test_a_renewal_is_one_statement(self, store: SQLiteStore) -> None:
        start_session(store)
        beat(store)
        before = store.statements.copy()
        for _ in range(5):
            assert beat(store) is Verdict.APPLIED
        assert sent(store, before) == {"session_renewed": 5, "commit": 5}

    def test_a_renewal_sets_the_expiry_by_the_stores_time(self, store: SQLiteStore, other: SQLiteStore) -> None:
        start_session(store)
        beat(store)
        before = store.clock()
        beat(store)
        found = get(other, Kind.SESSION, "s")
        assert before + MINE.lease <= found.expires_at <= store.clock() + MINE.lease

    @pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
    def test_a_renewal_from_memory_never_revives_a_buried_session(self, store: SQLiteStore, other: SQLiteStore) -> None:
        start_session(store)
        beat(store)
        write(other, Kind.SESSION, "s", lambda doc, now: bury(doc, now=now, reason="test"))
        assert beat(store) is Verdict.DECLINED
        assert beat(store) is Verdict.DECLINED
        assert get(other, Kind.SESSION, "s").state == "dead"

    def test_a_renewal_from_memory_notices_what_others_wrote(self, store: SQLiteStore, other: SQLiteStore) -> None:
        start_session(store)
        beat(store)
        write(other, Kind.SESSION, "s", lambda doc, now: Change(replace(doc, running=7)))
        seen: list[int] = []

        def look(doc: Any, now: int) -> Change:
            seen.append(doc.running)
            return Change(replace(doc, expires_at=now))

        write(store, Kind.SESSION, "s", look)
        assert seen[-1] == 7

    def test_what_is_remembered_is_no_answer_where_nothing_is_written(
        self, store: SQLiteStore, other: SQLiteStore
    ) -> None:
        """A declined change compares no version: it must see the document as it is."""
        start_session(store)
        beat(store)
        write(other, Kind.SESSION, "s", lambda doc, now: bury(doc, now=now, reason="test"))
        (result,) = write(store, Kind.SESSION, "s", lambda doc, now: None).results
        assert result.doc.state == "dead"  # type: ignore[union-attr]
        (result,) = write(store, Kind.SESSION, "s", lambda doc, now: Change(doc)).results
        assert result.doc.state == "dead"  # type: ignore[union-attr]

    def test_a_pruned_session_is_not_made_again_by_a_renewal(self, store: SQLiteStore, other: SQLiteStore) -> None:
        start_session(store)
        beat(store)
        write(other, Kind.SESSION, "s", lambda doc, now: Change(None))
        assert beat(store) is Verdict.DECLINED
        assert get(store, Kind.SESSION, "s") is None

    def test_a_claim_of_many_is_a_handful_of_statements(self, store: SQLiteStore) -> None:
        start_session(store)
        put(store, *(job(f"j{i:03}", due_at=store.clock() - SECOND) for i in range(100)))
        before = store.statements.copy()

        def claim(doc: Any, now: int) -> Change | None:
            change = add_hold("s")(doc, now)
            return change and Change(change.doc, (record(f"{doc.name}@1"),))

        store.update(everything(), claim, session="s")
        counted = sent(store, before)
        assert sum(counted.values()) <= 6
        assert counted["commit"] == 1

    def test_looking_for_due_jobs_when_none_is_due_is_one_statement(self, store: SQLiteStore) -> None:
        start_session(store)
        put(store, *(job(f"j{i:03}", due_at=store.clock() + HOUR) for i in range(50)))
        before = store.statements.copy()
        applied = store.update(everything(limit=10), add_hold("s"), session="s")
        assert (applied.results, applied.next_due) == ((), get(store, Kind.JOB, "j000").due_at)
        assert sent(store, before)["due_jobs"] == 1
        assert "commit" not in sent(store, before)

    def test_waiting_costs_no_statement_while_nothing_happens(self, store: SQLiteStore, other: SQLiteStore) -> None:
        start_session(other)
        store.wait(0.01)
        before = store.statements.copy()
        assert store.wait(0.5) is False
        assert sent(store, before) == {}

    def test_a_renewal_wakes_nobody(self, store: SQLiteStore, other: SQLiteStore) -> None:
        start_session(other)
        store.wait(0.0)
        beat(other)
        assert store.wait(0.05) is False

    def test_claiming_and_finishing_write_the_definition_once(self, store: SQLiteStore, path: Path) -> None:
        put(store, job("j", due_at=store.clock() - SECOND, payload="x" * 1000))
        before = store.statements.copy()
        take(store, "s")
        write(store, Kind.JOB, "j", lambda doc, now: Change(replace(doc, active=())))
        counted = sent(store, before)
        assert counted["job_moved"] + counted["job_stayed"] == 2
        assert "job_redefined" not in counted

    def test_a_run_that_ends_leaves_its_job_where_it_waits(self, store: SQLiteStore) -> None:
        """Of a batch in which some jobs have moved and some not, each is written in its own way, and all at once."""
        put(store, *(job(name, due_at=5, active=(hold("r", "h"),)) for name in ("moves", "stays")))
        before = store.statements.copy()

        def end(doc: Job, now: int) -> Change:
            return Change(replace(doc, active=(), due_at=7 if doc.name == "moves" else doc.due_at))

        store.update(Named(Kind.JOB, ("moves", "stays")), end)
        counted = sent(store, before)
        assert (counted["job_moved"], counted["job_stayed"], counted["commit"]) == (1, 1, 1)
        found = {doc.name: doc for doc in store.read(All(Kind.JOB)) if isinstance(doc, Job)}
        assert {name: (doc.due_at, doc.active) for name, doc in found.items()} == {"moves": (7, ()), "stays": (5, ())}
        assert store.update(everything(limit=0), lambda doc, now: None).next_due == 5


class TestLocks:
    def test_nothing_is_locked_while_python_computes(self, store: SQLiteStore, other: SQLiteStore) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))
        start_session(other)

        def slow(doc: Any, now: int) -> Change | None:
            assert beat(other) is Verdict.APPLIED
            return add_hold("a")(doc, now)

        assert verdicts(store.update(everything(), slow)) == {"j": Verdict.APPLIED}
        assert verdicts(store.update(Named(Kind.JOB, ("j",)), slow)) == {"j": Verdict.DECLINED}

    def test_no_write_waits_for_somebody_who_decides_about_what_is_due(
        self, store: SQLiteStore, other: SQLiteStore
    ) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))
        start_session(other)
        writing, deciding = Turns(store.place.turns), Turns(store.place.turns, queue=1)

        def free() -> list[bool]:
            return [turns._is_free(turns._numbers()[1]) for turns in (writing, deciding)]

        def slow(doc: Any, now: int) -> Change | None:
            assert beat(other) is Verdict.APPLIED
            assert free() == [True, False]
            return add_hold("a")(doc, now)

        assert verdicts(store.update(everything(), slow)) == {"j": Verdict.APPLIED}
        assert free() == [True, True]
        store.update(everything(), lambda doc, now: None)
        assert free() == [True, True]
        writing.close()
        deciding.close()

    def test_a_process_frozen_while_it_computes_stops_nobody(self, store: SQLiteStore, path: Path) -> None:
        put(store, *(job(f"j{i}", due_at=store.clock() - SECOND) for i in range(3)))
        start_session(store)
        read, ready = os.pipe()
        child = os.fork()
        if child == 0:

            def stuck(doc: Any, now: int) -> None:
                os.write(ready, b"x")
                while True:
                    signal.pause()

            store.update(everything(), stuck)
            os._exit(1)
        try:
            os.read(read, 1)
            os.kill(child, signal.SIGSTOP)
            before = time.monotonic()
            assert beat(store) is Verdict.APPLIED
            assert take(store, "s") == ["j0", "j1", "j2"]
            assert time.monotonic() - before < 3
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(read)
            os.close(ready)

    def test_a_change_that_raises_an_interrupt_lets_the_next_writer_go(
        self, store: SQLiteStore, other: SQLiteStore
    ) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))

        def interrupted(doc: Any, now: int) -> Change:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.update(everything(), interrupted)
        before = time.monotonic()
        assert take(other, "s") == ["j"]
        assert time.monotonic() - before < 0.09  # no turn was left untaken

    def test_some_lost_to_others_and_the_rest_written_in_one_go(self, store: SQLiteStore, other: SQLiteStore) -> None:
        many = tuple(f"n{i}" for i in range(6))
        put(store, *(note(Kind.KEY, name, {"by": []}) for name in many))
        rivals = [lambda: put(other, note(Kind.KEY, "n1", {"by": ["b"]}), note(Kind.KEY, "n4", {"by": ["b"]}))]

        def change(doc: Any, now: int) -> Change:
            while rivals:
                rivals.pop()()
            return Change(replace(doc, body={"by": [*doc.body["by"], "a"]}))

        before = store.statements.copy()
        applied = store.update(Named(Kind.KEY, many), change)
        assert set(verdicts(applied).values()) == {Verdict.APPLIED}
        found = {doc.name: doc.body["by"] for doc in store.read(All(Kind.KEY))}  # type: ignore[union-attr]
        assert found == {name: ["b", "a"] if name in ("n1", "n4") else ["a"] for name in many}
        assert sent(store, before)["commit"] == 2

    def test_a_document_that_others_keep_changing_is_contended_at_last(
        self, store: SQLiteStore, other: SQLiteStore
    ) -> None:
        put(store, note(Kind.KEY, "n", {"count": 0}), note(Kind.KEY, "m", {"count": 0}))

        def beaten(doc: Any, now: int) -> Change:
            if doc.name == "n":
                put(other, note(Kind.KEY, "n", {"count": doc.body["count"] + 1}))
            return Change(replace(doc, body={"mine": True}))

        applied = store.update(Named(Kind.KEY, ("m", "n")), beaten)
        assert verdicts(applied) == {"m": Verdict.APPLIED, "n": Verdict.CONTENDED}
        assert "count" in get(store, Kind.KEY, "n").body


class TestTime:
    def test_a_node_whose_wall_clock_is_an_hour_ahead_sees_the_stores_time(
        self, store: SQLiteStore, path: Path
    ) -> None:
        class Ahead(SystemClock):
            def wall(self) -> int:
                return super().wall() + HOUR

        wrong = SQLiteStore(store._url, clock=Ahead())
        assert abs(wrong.clock() - store.clock()) < SECOND
        (line,) = [check for check in wrong.checks() if check.name == "clock"]
        assert line.level == "WARN"
        (off,) = [float(word) for word in line.detail.split() if word.replace(".", "").isdigit()]
        assert off == pytest.approx(3600, abs=5)
        wrong.close()

    def test_each_boot_has_its_own_anchor(self, store: SQLiteStore) -> None:
        store._boot = "clock another boot"
        before = time.time_ns() // 1000
        store.boot_clock.refresh()
        assert before <= store.clock() <= time.time_ns() // 1000 + SECOND


class TestNotifications:
    def test_what_we_did_ourselves_is_no_news(self, store: SQLiteStore) -> None:
        store.wait(0.0)
        put(store, job("j", due_at=1))
        assert store.wait(0.05) is False

    def test_what_others_did_beside_us_is(self, store: SQLiteStore, other: SQLiteStore) -> None:
        store.wait(0.0)
        put(store, job("j", due_at=1))
        put(other, job("k", due_at=1))
        assert store.wait(5) is True
        assert store.wait(0.01) is False

    def test_a_wait_ends_soon_after_the_change(self, store: SQLiteStore, other: SQLiteStore) -> None:
        store.wait(0.0)
        answers: list[float] = []

        def wait() -> None:
            store.wait(30)
            answers.append(time.monotonic())

        thread = threading.Thread(target=wait)
        thread.start()
        put(other, job("j", due_at=1))
        written = time.monotonic()
        thread.join()
        assert answers[0] - written < 1

    def test_other_namespaces_have_their_own_notifications(self, store: SQLiteStore) -> None:
        elsewhere = SQLiteStore(store._url, namespace="elsewhere")
        store.wait(0.0)
        put(elsewhere, job("j", due_at=1))
        assert store.wait(0.05) is False
        elsewhere.close()


class TestFile:
    def test_a_file_that_was_replaced_is_noticed(self, store: SQLiteStore, path: Path) -> None:
        """A connection to a deleted file would go on as if nothing were, unseen by every other process."""
        put(store, job("j"))
        for name in ("a.db", "a.db-wal", "a.db-shm"):
            path.with_name(name).unlink()
        with pytest.raises(StoreRefused, match="is gone"):
            store.read(All(Kind.JOB))
        store.close()
        assert store.read(All(Kind.JOB)) == ()

    def test_waiting_goes_on_when_a_file_that_was_away_is_back(
        self, store: SQLiteStore, other: SQLiteStore, path: Path
    ) -> None:
        """A mount that comes and goes. The listener of a node has nothing but `wait`."""
        store.wait(0.0)
        away = path.with_name("away.db")
        path.rename(away)
        with pytest.raises(StoreRefused, match="is gone"):
            store.wait(0.0)
        away.rename(path)
        store.wait(0.0)
        put(other, job("j", due_at=1))
        assert store.wait(10)

    def test_a_file_without_our_tables_is_not_taken_for_an_empty_store(self, store: SQLiteStore, path: Path) -> None:
        store.close()
        store._opened = True  # a node that runs on while the file is swapped
        for file in path.parent.iterdir():
            file.unlink()
        sqlite3.connect(path).execute("CREATE TABLE x (y)").connection.close()
        with pytest.raises(StoreRefused, match="no such table"):
            store.read(All(Kind.JOB))

    def test_synchronous_normal_is_an_honest_tier_b(self, path: Path) -> None:
        weak = make_store(f"sqlite:///{path}?synchronous=normal")
        weak.open()
        assert weak.capabilities.tier is Tier.B
        assert {check.name: check.level for check in weak.checks()}["synchronous"] == "WARN"
        weak.close()

    def test_synchronous_off_is_refused(self, path: Path) -> None:
        with pytest.raises(InvalidError, match="synchronous"):
            make_store(f"sqlite:///{path}?synchronous=off")


def test_a_broken_row_of_the_log_sets_one_document_aside(store: SQLiteStore) -> None:
    """The database refuses the batch; each document is then tried alone."""
    put(store, *(job(f"j{i}", due_at=store.clock() - SECOND) for i in range(4)))

    def claim(doc: Any, now: int) -> Change | None:
        change = add_hold("s")(doc, now)
        count = 2**70 if doc.name == "j1" else 1  # no database holds that
        return change and Change(change.doc, (record(f"{doc.name}@1", count=count),))

    found = verdicts(store.update(everything(), claim))
    assert found == {"j0": "applied", "j1": "blocked", "j2": "applied", "j3": "applied"}
    assert [aside.name for aside in store.blocked()] == ["j1"]
    assert len(log(store)) == 3


def test_pools_are_merged_by_their_instants(store: SQLiteStore) -> None:
    now = store.clock()
    put(store, *(job(f"j{i}", due_at=now - SECOND * (9 - i), pool="ab"[i % 2]) for i in range(6)))
    which = partial(Due, handlers=frozenset({"h"}), pools=frozenset({"a", "b", "c"}))
    assert [doc.name for doc in store.read(which(limit=4))] == ["j0", "j1", "j2", "j3"]
    applied = store.update(which(limit=4), add_hold("s"))
    assert [result.name for result in applied.results] == ["j0", "j1", "j2", "j3"]
    assert applied.next_due == now - SECOND * 5


def test_a_fork_in_the_middle_of_another_threads_write_goes_on_in_both(store: SQLiteStore, path: Path) -> None:
    put(store, note(Kind.KEY, "n", {"count": 0}))
    store.wait(0.0)
    writing = threading.Event()

    def write_slowly() -> None:
        with store.pool.link() as link:
            link.begin()
            writing.set()
            threading.Event().wait(0.2)  # the fork has to wait for this, and must not wait forever
            link.commit()

    thread = threading.Thread(target=write_slowly)
    thread.start()
    writing.wait()

    def add(doc: Any, now: int) -> Change:
        return Change(replace(doc, body={"count": doc.body["count"] + 1}))

    def child() -> list[Any]:
        held = {os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if _exists(name)}
        nothing_open = not any(target.startswith(str(path)) for target in held)
        return [nothing_open, store.wait(0.0), verdicts(write(store, Kind.KEY, "n", add))]

    (answer,) = processes([child])
    thread.join()
    assert answer == [True, False, {"n": "applied"}]
    assert verdicts(write(store, Kind.KEY, "n", add)) == {"n": Verdict.APPLIED}
    assert get(store, Kind.KEY, "n").body == {"count": 2}


def _exists(descriptor: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{descriptor}")


def test_absent_documents_are_handed_over_as_such(store: SQLiteStore) -> None:
    seen: list[Any] = []
    write(store, Kind.SESSION, "nobody", lambda doc, now: seen.append(doc))
    assert seen == [Absent(Kind.SESSION, "nobody")]
    put(store, session("nobody", expires_at=1))
    assert get(store, Kind.SESSION, "nobody").expires_at == 1
