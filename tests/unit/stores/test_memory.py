"""The memory store beyond the contract: its worlds, its exact time, its notifications, its way to lose a race."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from solocron.clock import SECOND, SystemClock
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.session import Life
from solocron.stores import memory
from solocron.stores.contract import All, Named, Verdict
from solocron.stores.memory import MemoryStore, World
from solocron.testing.conformance.kit import (
    HOUR,
    add_hold,
    everything,
    get,
    job,
    names,
    note,
    patience,
    put,
    session,
    take,
    verdicts,
    write,
)
from solocron.testing.conformance.rivals import processes, race

NOW = 1_800_000_000 * SECOND


def frozen() -> World:
    """A world in which time stands still until it is shifted."""
    return World(clock=lambda: NOW)


def test_clients_of_one_name_share_a_world_in_this_process() -> None:
    a, b = MemoryStore("shared-by-name"), MemoryStore("shared-by-name")
    put(a, job("j"))
    assert get(b, Kind.JOB, "j") == job("j")
    assert get(MemoryStore("another-name"), Kind.JOB, "j") is None
    assert a.url == "memory://shared-by-name"


def test_a_store_without_a_name_is_private() -> None:
    a, b = MemoryStore(), MemoryStore()
    put(a, job("j"))
    assert b.read(All(Kind.JOB)) == ()
    assert a.url == "memory://"


@pytest.mark.invariant("I15: nothing starts early by the store's clock")
def test_a_job_is_due_at_its_very_microsecond_and_not_before() -> None:
    store = MemoryStore(world=frozen())
    put(store, job("now", due_at=NOW), job("next", due_at=NOW + 1))
    assert names(store.read(everything())) == ["now"]
    store.shift_clock(1)
    assert names(store.read(everything())) == ["now", "next"]


def test_jobs_due_at_the_same_instant_come_in_the_order_of_their_names() -> None:
    store = MemoryStore(world=frozen())
    put(store, *(job(name, due_at=NOW) for name in "cab"))
    assert names(store.read(everything(limit=2))) == ["a", "b"]


def test_the_time_of_a_world_moves_for_all_its_clients() -> None:
    world = frozen()
    a, b = MemoryStore(world=world), MemoryStore(world=world, namespace="other")
    a.shift_clock(HOUR)
    assert a.clock() == b.clock() == NOW + HOUR


def test_a_step_of_the_wall_clock_moves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    before = store.clock()
    assert abs(before - SystemClock().wall()) < HOUR
    monkeypatch.setattr(SystemClock, "wall", lambda self: before + 24 * HOUR)
    assert 0 <= store.clock() - before < HOUR


def test_a_document_is_set_aside_for_twice_as_long_each_time_up_to_an_hour() -> None:
    store = MemoryStore(world=frozen())
    put(store, job("j", due_at=NOW))
    lengths = []
    for times in range(1, 21):
        assert verdicts(store.update(everything(), _raise)) == {"j": Verdict.BLOCKED}
        (aside,) = store.blocked()
        assert aside.times == times
        lengths.append((aside.until - store.clock()) // SECOND)
        store.shift_clock(aside.until - store.clock())
    assert lengths[:5] == [10, 20, 40, 80, 160]
    assert set(lengths[9:]) == {3600}


def test_a_job_that_is_set_aside_is_next_due_when_it_may_come_back() -> None:
    store = MemoryStore(world=frozen())
    put(store, job("j", due_at=NOW - SECOND))
    store.update(everything(), _raise)
    (aside,) = store.blocked()
    assert store.update(everything(), _raise).next_due == aside.until


def test_who_loses_every_race_is_told_so() -> None:
    """The change is computed again with what the rival wrote, a few times, and then nothing was written."""
    world = World()
    a, b = MemoryStore(world=world), MemoryStore(world=world)
    put(a, note(Kind.LOCK, "n", {"b": 0}))
    seen: list[int] = []

    def too_slow(doc: Any, now: int) -> Change:
        seen.append(doc.body["b"])
        put(b, replace(doc, body={"b": doc.body["b"] + 1}))
        return Change(replace(doc, body={"a": 1}))

    assert verdicts(write(a, Kind.LOCK, "n", too_slow)) == {"n": Verdict.CONTENDED}
    assert seen == list(range(len(seen)))
    assert get(a, Kind.LOCK, "n").body == {"b": len(seen)}


def test_what_was_written_before_the_session_died_is_not_denied() -> None:
    """`alive` is False only where nothing was applied, also when a part of the batch had to be tried again."""
    world = World()
    a, b = MemoryStore(world=world), MemoryStore(world=world)
    put(a, session("s", expires_at=a.clock() + HOUR), note(Kind.LOCK, "i"), note(Kind.LOCK, "j"))
    calls: list[str] = []

    def change(doc: Any, now: int) -> Change:
        calls.append(doc.name)
        if calls == ["i", "j"]:
            put(b, replace(doc, body={"by": "b"}))
        elif len(calls) == 3:
            write(b, Kind.SESSION, "s", lambda doc, now: Change(replace(doc, state=Life.DEAD, ended_at=now)))
        return Change(replace(doc, body={"by": "a"}))

    applied = a.update(Named(Kind.LOCK, ("i", "j")), change, session="s")
    assert applied.alive
    assert verdicts(applied) == {"i": Verdict.APPLIED, "j": Verdict.CONTENDED}
    assert [get(a, Kind.LOCK, name).body for name in "ij"] == [{"by": "a"}, {"by": "b"}]
    assert not a.update(Named(Kind.LOCK, ("i", "j")), change, session="s").alive


def test_a_change_that_answers_with_another_document_is_refused() -> None:
    store = MemoryStore()
    put(store, job("j"))
    for other in (job("k"), note(Kind.LOCK, "j")):
        (result,) = write(store, Kind.JOB, "j", lambda doc, now, other=other: Change(other)).results  # type: ignore[misc]
        assert result.verdict is Verdict.BLOCKED
        assert "returned" in (result.error or "")
    assert store.read(All(Kind.JOB)) == (job("j"),)
    assert store.read(All(Kind.LOCK)) == ()


def test_what_a_client_changed_itself_is_no_news_to_it() -> None:
    world = World()
    a, b = MemoryStore(world=world), MemoryStore(world=world)
    put(a, job("j", due_at=a.clock() + HOUR))
    assert a.wait(0) is False
    assert b.wait(0) is True
    assert b.wait(0) is False


def test_claims_and_renewals_wake_nobody() -> None:
    world = World()
    a, b = MemoryStore(world=world), MemoryStore(world=world)
    put(a, session("s", expires_at=a.clock()), job("j", due_at=a.clock() - SECOND))
    b.wait(0)
    assert take(a, "s", session="s") == ["j"]
    write(a, Kind.SESSION, "s", lambda doc, now: Change(replace(doc, expires_at=now + HOUR)))
    put(a, note(Kind.LOCK, "l"))
    assert b.wait(0) is False


@pytest.mark.parametrize(
    "wake", [MemoryStore.signal, lambda store: store.shift_clock(SECOND)], ids=["a signal", "a shifted clock"]
)
def test_everybody_wakes_also_the_threads_of_the_client_that_rang(wake: Callable[[MemoryStore], None]) -> None:
    world = World()
    a, b = MemoryStore(world=world), MemoryStore(world=world)

    def ring() -> bool:
        for _ in patience():
            with world.condition:
                if len(world.condition._waiters) == 3:  # type: ignore[attr-defined]
                    break
        wake(a)
        return True

    assert race([lambda: a.wait(30), lambda: a.wait(30), lambda: b.wait(30), ring]) == [True] * 4


def test_only_what_was_written_counts_as_a_commit() -> None:
    store = MemoryStore()
    put(store, job("j"))
    commits = store.statements["commit"]
    write(store, Kind.JOB, "j", lambda doc, now: None)
    write(store, Kind.JOB, "j", lambda doc, now: Change(doc, answer="the same"))
    store.update(everything(), add_hold("s"))
    assert store.statements["commit"] == commits
    store.update(Named(Kind.JOB, ("j", "k")), lambda doc, now: Change(job(doc.name, fence=1)))
    assert store.statements["commit"] == commits + 1


def test_after_a_fork_the_child_goes_on_with_a_copy_of_its_own() -> None:
    """The mutex may have been in another thread's hand at the moment of the fork; that thread is not in the child."""
    store = MemoryStore()
    put(store, job("j"))
    inside, leave = threading.Event(), threading.Event()

    def hold_the_mutex() -> None:
        with store.world.condition:
            inside.set()
            leave.wait(30)

    holder = threading.Thread(target=hold_the_mutex)
    holder.start()
    try:
        assert inside.wait(30)
        assert processes([lambda: [names(store.read(All(Kind.JOB))), _delete(store)]]) == [[["j"], "applied"]]
    finally:
        leave.set()
        holder.join()
    assert names(store.read(All(Kind.JOB))) == ["j"]


def test_the_reference_store_is_read_in_one_go() -> None:
    """Two hundred and fifty lines at most: it is what the author of a store reads first."""
    assert len(Path(memory.__file__).read_text(encoding="utf-8").splitlines()) <= 250


def _delete(store: MemoryStore) -> str:
    return verdicts(write(store, Kind.JOB, "j", lambda doc, now: Change(None)))["j"]


def _raise(doc: Any | Absent, now: int) -> Change:
    raise ValueError("not you")
