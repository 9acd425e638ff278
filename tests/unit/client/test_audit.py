"""The audit has an act before it is done; without an entry nothing is done."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from solocron import Scheduler
from solocron.client import Client
from solocron.client import audit as module
from solocron.clock import SECOND
from solocron.engine.small_documents import SmallDocuments
from solocron.errors import ConflictError, InvalidError, NotFoundError, StoreUnavailable
from solocron.model.documents.audit import KEEP, Act
from solocron.stores.memory import MemoryStore
from tests.unit.engine.kit import context_of

PAUSE = Act(act="pause", subject="etl.load", via="cli", who="ana", note="schema move")


def test_an_act_is_on_record_while_it_is_under_way_and_afterwards() -> None:
    client = Client(MemoryStore())
    with client.audited(PAUSE) as act:
        (entry,) = client.audit().entries
        assert (entry.who, entry.act, entry.subject, entry.note) == ("ana", "pause", "etl.load", "schema move")
        assert entry.result == "outcome unknown"
        act.after = {"paused": True}
    (entry,) = client.audit().entries
    assert (entry.result, entry.after) == ("done", {"paused": True})


def test_a_refusal_is_on_record_with_its_sentence() -> None:
    client = Client(MemoryStore())
    with pytest.raises(ConflictError), client.audited(PAUSE):
        raise ConflictError("etl.load is disabled, so it was not paused.")
    (entry,) = client.audit().entries
    assert entry.result == "etl.load is disabled, so it was not paused."


def test_nothing_is_done_that_cannot_be_put_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    client, done = Client(store), list[str]()
    monkeypatch.setattr(store, "update", away)
    with pytest.raises(StoreUnavailable), client.audited(PAUSE):
        done.append("paused")
    assert not done


def test_what_was_done_stands_although_its_outcome_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    client, done = Client(store), list[str]()
    with client.audited(PAUSE):
        done.append("paused")
        monkeypatch.setattr(store, "update", away)
    assert done
    assert [entry.result for entry in client.audit().entries] == ["outcome unknown"]


def test_entries_come_newest_first_in_pages_and_by_who_and_what() -> None:
    store = MemoryStore()
    client = Client(store)
    for i in range(7):
        store.shift_clock(SECOND)
        with client.audited(Act(act="pause", subject=f"job{i % 2}", via="cli", who="ana" if i < 6 else "bo")):
            pass
    first = client.audit(limit=4)
    second = client.audit(limit=4, after=first.next)
    found = [*first.entries, *second.entries]
    assert [entry.subject for entry in found] == [f"job{i % 2}" for i in range(6, -1, -1)]
    assert found == sorted(found, key=lambda entry: entry.at, reverse=True)
    assert second.next is None
    assert [entry.who for entry in client.audit(who="bo").entries] == ["bo"]
    assert len(client.audit(subject="job1").entries) == 3
    with pytest.raises(InvalidError, match="limit=0"):
        client.audit(limit=0)


def test_a_search_that_finds_little_is_bounded_and_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE", 2)
    client = Client(MemoryStore())
    for i in range(6):
        with client.audited(Act(act="pause", subject="first" if i == 0 else "rest", via="cli")):
            pass
    page = client.audit(subject="first", scan=4)
    assert (page.entries, page.looked_back_to is not None) == ((), True)
    assert [entry.subject for entry in client.audit(subject="first", after=page.next).entries] == ["first"]


def test_entries_go_after_a_year_and_not_with_the_log() -> None:
    store = MemoryStore()
    client = Client(store)
    with client.audited(PAUSE):
        pass
    store.shift_clock(KEEP - SECOND)
    with client.audited(PAUSE):
        pass
    documents = SmallDocuments(context_of(store))
    assert documents.prune(now=store.clock(), keep=SECOND) == 0
    store.shift_clock(2 * SECOND)
    before = store.statements["scan"] + store.statements["select"]
    assert documents.prune(now=store.clock(), keep=SECOND) == 1
    assert store.statements["scan"] + store.statements["select"] - before <= 4, "keys, steps, old entries, the update"
    assert len(client.audit().entries) == 1


def away(*args: Any, **more: Any) -> Any:
    raise StoreUnavailable("the store is away; nothing was done.")


def test_a_call_from_python_is_on_record_if_it_names_its_author(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = Scheduler("memory://audited-python")
    scheduler.every("1000d", name="work")(lambda: None)
    scheduler.tick()
    scheduler.trigger("work")
    scheduler.pause("work")
    assert scheduler.audit().entries == ()
    tomorrow = scheduler.status().now + timedelta(days=1)
    run = scheduler.trigger("work", by="ana", note="now")
    scheduler.cancel(run, by="ana")
    scheduler.pause("work", by="ana")
    scheduler.resume("work", by="ana")
    scheduler.pause_all(pool="default", by="ana")
    scheduler.resume_all(pool="default", by="ana")
    assert scheduler.resume_all(pool="default", by="ana") is None, "an act on what does not stand is none"
    scheduler.silence("late", until=tomorrow, by="ana")
    scheduler.lift_silence("late", by="ana")
    with scheduler.lock("till"):
        scheduler.force_release("till", reason="stuck", by="ana")
    with pytest.raises(NotFoundError):
        scheduler.remove("nothing", by="ana")
    with pytest.raises(InvalidError):
        scheduler.pause("work", by=object())  # type: ignore[arg-type]
    found = scheduler.audit().entries[::-1]
    assert [(one.act, one.subject) for one in found] == [
        ("trigger", "work"),
        ("cancel", run),
        ("pause", "work"),
        ("resume", "work"),
        ("pause", "--pool default"),
        ("resume", "--pool default"),
        ("silence", "late"),
        ("lift", "late"),
        ("release", "till"),
    ]
    assert {(one.who, one.via, one.result) for one in found} == {("ana", "python", "done")}

    def full(*args: Any, **more: Any) -> Any:
        raise StoreUnavailable("full")

    monkeypatch.setattr("solocron.client.audit.write", full)
    with pytest.raises(StoreUnavailable):
        scheduler.pause("work", by="ana")
    assert scheduler.get_job("work").paused is None, "what cannot be put on record is not done"
