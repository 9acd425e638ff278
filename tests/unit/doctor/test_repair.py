"""`--repair` does what a sweeper would do, by the sweeper's rules, and says what it did."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.doctor import repair
from solocron.doctor.sight import look
from solocron.model.change import Change, Kind
from solocron.model.documents.job import Job
from solocron.model.documents.run import Status
from solocron.model.documents.session import Life, Session, renew
from solocron.stores.contract import Named, Query
from solocron.stores.memory import MemoryStore, World
from tests.unit.doctor.kit import NOW, PatientRuntime, dead, job, put, session, silent


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(world=World(clock=lambda: NOW))


def the_job(store: MemoryStore) -> Job:
    (doc,) = store.read(Named(Kind.JOB, ("work",)))
    assert isinstance(doc, Job)
    return doc


def state_of(store: MemoryStore, node: str) -> Life:
    (doc,) = store.read(Named(Kind.SESSION, (f"session of {node}",)))
    assert isinstance(doc, Session)
    return doc.state


def test_in_a_healthy_namespace_there_is_nothing_to_repair(store: MemoryStore) -> None:
    put(store, session("a"), job(held_by="a"))
    before = look(store)
    assert repair(store, PatientRuntime()) == []
    assert look(store) == before


def test_a_dead_session_is_swept_and_its_run_waits_again(store: MemoryStore) -> None:
    put(store, dead("a", since=60), job(held_by="a", retries=1))
    assert repair(store, PatientRuntime()) == ["swept a, which was dead; taken over: work"]
    assert state_of(store, "a") is Life.SWEPT
    assert the_job(store).active == ()
    assert [waiting_run.attempt for waiting_run in the_job(store).waiting_runs] == [2]


def test_without_retries_a_run_that_is_taken_over_is_lost_and_not_repeated(store: MemoryStore) -> None:
    put(store, dead("a", since=60), job(held_by="a"))
    repair(store, PatientRuntime())
    assert the_job(store).waiting_runs == ()
    last = the_job(store).last
    assert last is not None
    assert last.status is Status.LOST


def test_holds_of_an_unknown_session_are_freed(store: MemoryStore) -> None:
    put(store, session("b"), job(held_by="a", retries=1))
    assert repair(store, PatientRuntime()) == [
        "freed the runs of session session of a, which does not exist; taken over: work"
    ]
    assert the_job(store).active == ()


def test_holds_of_a_session_that_has_just_begun_are_left_alone(store: MemoryStore) -> None:
    """Between the look at the holders and the look at the sessions a node may begin and claim."""

    class Late(MemoryStore):
        def read(self, which: Any) -> Any:
            return super().read(which) if isinstance(which, Named) else ()

    put(store, session("a"), job(held_by="a", retries=1))
    late = Late(world=store.world)
    assert look(late).unknown == ("session of a",)
    assert repair(late, PatientRuntime()) == []
    assert len(the_job(store).active) == 1


def test_rule_5_a_silent_session_is_watched_for_its_lease_before_it_is_buried(store: MemoryStore) -> None:
    waits: list[float] = []
    told: list[str] = []
    put(store, silent("a", since=3600), job(held_by="a", retries=1))
    done = repair(store, PatientRuntime(waits.append), told.append)
    assert sum(waits) == pytest.approx(15)
    assert told == ["watching a for 15 s: only silence makes it dead"]
    assert done == ["buried a, silent for a lease and more; taken over: work"]
    assert state_of(store, "a") is Life.SWEPT


def test_rule_5_a_session_that_renews_while_it_is_watched_is_left_alone(store: MemoryStore) -> None:
    put(store, silent("a", since=3600), job(held_by="a"))

    def renews(_: float) -> None:
        def again(doc: Any, now: int) -> Change | None:
            return renew(doc, now=now)

        store.update(Named(Kind.SESSION, ("session of a",)), again)

    done = repair(store, PatientRuntime(renews))
    assert done == ["left a alone: it has renewed its lease, or another node has buried it"]
    assert state_of(store, "a") is Life.LIVE
    assert len(the_job(store).active) == 1


def test_silent_sessions_are_watched_at_the_same_time(store: MemoryStore) -> None:
    waits: list[float] = []
    put(store, silent("a", lease=3 * SECOND), silent("b", lease=9 * SECOND), silent("c", lease=3 * SECOND))
    assert len(repair(store, PatientRuntime(waits.append))) == 3
    assert sum(waits) == pytest.approx(9)


def test_what_was_set_aside_takes_part_again(store: MemoryStore) -> None:
    put(store, job())

    def breaks(doc: Any, now: int) -> Change:
        raise ValueError("bad luck")

    store.update(Named(Kind.JOB, ("work",)), breaks)
    assert [one.name for one in store.blocked()] == ["work"]
    assert repair(store, PatientRuntime()) == ["let job work take part again"]
    assert list(store.blocked()) == []


def test_history_and_definitions_are_left_as_they_are(store: MemoryStore) -> None:
    held = replace(job(held_by="a"), cursor=NOW - 7 * SECOND)
    put(store, dead("a", since=60), held)
    repair(store, PatientRuntime())
    assert the_job(store).definition == held.definition
    assert the_job(store).cursor == held.cursor
    assert [record.status for record in store.history(Query(limit=10)).records] == ["lost"]
