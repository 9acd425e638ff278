"""Races: of any number of callers at once, one wins; no write is lost, nothing deleted comes back."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.alarm import Bounds
from solocron.model.documents.alarm_message import Finding, OpenAlarm, decide, document_of
from solocron.stores.contract import All, HeldBy, Named, Store, Verdict
from solocron.testing.conformance.kit import (
    Clients,
    add_hold,
    everything,
    get,
    hold,
    job,
    note,
    patience,
    put,
    take,
    verdicts,
    write,
)
from solocron.testing.conformance.rivals import Meanwhile, processes, race

__all__ = ["Races"]


class Races:
    """Chapter four."""

    @pytest.mark.invariant("I1: a slot has one live claim at a time")
    def test_of_twenty_clients_one_gets_the_slot(self, clients: Clients) -> None:
        stores = [clients.new() for _ in range(20)]
        put(stores[0], job("j", due_at=stores[0].clock() - SECOND))
        got = race([partial(take, store, f"s{i}") for i, store in enumerate(stores)])
        winners = [f"s{i}" for i, names in enumerate(got) if names]
        assert len(winners) == 1
        assert [hold.session for hold in get(stores[0], Kind.JOB, "j").active] == winners

    def test_of_twenty_clients_one_creates_a_document(self, clients: Clients) -> None:
        stores = [clients.new() for _ in range(20)]

        def create(me: int) -> str:
            def change(doc: Any, now: int) -> Change | None:
                return Change(note(Kind.LOCK, "l", {"by": me}), answer=me) if isinstance(doc, Absent) else None

            return _surely(stores[me], "l", change)

        verdict = Counter(race([partial(create, i) for i in range(20)]))
        assert verdict == {Verdict.APPLIED: 1, Verdict.DECLINED: 19}

    def test_of_many_clients_one_takes_the_step_of_a_message(self, clients: Clients) -> None:
        """An outage is told once in the fleet, although every node finds it."""
        stores, name = [clients.new() for _ in range(8)], document_of("late")
        seen = stores[0].clock()
        found = Finding(seen=seen, watched_since=0, members=[OpenAlarm(subject="j", detail="", since=seen, began=seen)])
        bounds = Bounds(every=SECOND, late=1, failing=1, patience=0, settle=0)

        def tell(me: int) -> str:
            def change(doc: Any, now: int) -> Change | None:
                return decide(doc, found, bounds=bounds, now=now, token=f"t{me}", by=f"n{me}")

            return _surely(stores[me], name, change, kind=Kind.ALARM)

        verdict = race([partial(tell, i) for i in range(8)])
        assert Counter(verdict) == {Verdict.APPLIED: 1, Verdict.DECLINED: 7}
        assert get(stores[0], Kind.ALARM, name).body["by"] == f"n{verdict.index(Verdict.APPLIED)}"

    def test_no_write_is_lost(self, clients: Clients) -> None:
        stores = [clients.new() for _ in range(8)]
        put(stores[0], note(Kind.LOCK, "n", {"count": 0}))

        def add(doc: Any, now: int) -> Change:
            return Change(replace(doc, body={"count": doc.body["count"] + 1}))

        def five_times(store: Store) -> list[Verdict]:
            return [_surely(store, "n", add) for _ in range(5)]

        race([partial(five_times, store) for store in stores])
        assert get(stores[0], Kind.LOCK, "n").body == {"count": 40}

    def test_a_change_in_between_is_not_overwritten(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, note(Kind.LOCK, "n", {"by": []}))

        def add(who: str, rival: Meanwhile[Any] | None, doc: Any, now: int) -> Change:
            if rival:
                rival.begin()
            return Change(replace(doc, body={"by": sorted([*doc.body["by"], who])}))

        rival = Meanwhile(lambda: _surely(b, "n", partial(add, "b", None)))
        assert _surely(a, "n", partial(add, "a", rival)) is Verdict.APPLIED
        assert rival.join() is Verdict.APPLIED
        assert get(a, Kind.LOCK, "n").body == {"by": ["a", "b"]}

    def test_what_was_lost_to_another_is_tried_again(self, clients: Clients) -> None:
        """One rival must not make an update return empty-handed: a renewal would cost a session."""
        a, b = clients.new(), clients.new()
        put(a, note(Kind.LOCK, "n", {}))
        rival = Meanwhile(lambda: put(b, note(Kind.LOCK, "n", {"b": 1})))

        def change(doc: Any, now: int) -> Change:
            rival.begin()
            return Change(replace(doc, body=doc.body | {"a": 1}))

        assert verdicts(write(a, Kind.LOCK, "n", change)) == {"n": Verdict.APPLIED}
        rival.join()

    def test_what_was_deleted_in_between_does_not_come_back(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, note(Kind.LOCK, "n", {}))
        rival = Meanwhile(lambda: _surely(b, "n", lambda doc, now: Change(None)))

        def keep(doc: Any, now: int) -> Change | None:
            rival.begin()
            return None if isinstance(doc, Absent) else Change(replace(doc, body={"kept": True}))

        _surely(a, "n", keep)
        rival.join()
        assert get(a, Kind.LOCK, "n") is None

    def test_a_document_deleted_and_made_anew_is_another_document(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, note(Kind.LOCK, "n", {"made by": "a"}))

        def make_anew() -> None:
            _surely(b, "n", lambda doc, now: Change(None))
            put(b, note(Kind.LOCK, "n", {"made by": "b"}))

        rival = Meanwhile(make_anew)

        def touch(doc: Any, now: int) -> Change | None:
            rival.begin()
            return None if isinstance(doc, Absent) else Change(replace(doc, body=doc.body | {"touched": True}))

        _surely(a, "n", touch)
        rival.join()
        assert get(a, Kind.LOCK, "n").body["made by"] == "b"

    def test_a_due_job_that_another_took_in_between_is_not_claimed_again(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, job("j", due_at=a.clock() - SECOND))
        rival = Meanwhile(lambda: take(b, "b"))
        not_due: list[Any] = []

        def claim(doc: Any, now: int) -> Change | None:
            rival.begin()
            if doc.due_at is None:
                not_due.append(doc)
            return add_hold("a")(replace(doc, active=()), now)  # blind: only the selection says that it is free

        applied = a.update(everything(), claim)
        winners = ["a"] * (verdicts(applied).get("j") is Verdict.APPLIED) + ["b"] * len(rival.join())
        assert not_due == []
        assert [hold.session for hold in get(a, Kind.JOB, "j").active] == winners

    @pytest.mark.invariant("I5: no slot is lost")
    def test_a_sweep_passes_over_nothing_that_is_just_being_changed(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, *(job(f"j{i}", active=(hold("r", "s"),)) for i in range(3)))
        rival = Meanwhile(lambda: b.update(HeldBy("s"), lambda doc, now: Change(replace(doc, active=()))))

        def change(doc: Any, now: int) -> Change:
            rival.begin()
            return Change(replace(doc, failures=7))

        _surely(a, "j1", change, Kind.JOB)
        assert verdicts(rival.join()) == dict.fromkeys(("j0", "j1", "j2"), Verdict.APPLIED)
        assert get(a, Kind.JOB, "j1") == job("j1", failures=7)
        assert a.read(HeldBy("s")) == ()

    def test_many_due_jobs_are_shared_out_each_to_one(self, clients: Clients) -> None:
        stores = [clients.new() for _ in range(6)]
        jobs = [f"j{i:02}" for i in range(60)]
        put(stores[0], *(job(name, due_at=stores[0].clock() - SECOND) for name in jobs))
        got = race([partial(_take_all, store, f"s{i}") for i, store in enumerate(stores)])
        assert sorted(name for names in got for name in names) == jobs

    def test_batches_in_opposite_orders_all_get_through(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        many = tuple(f"n{i:02}" for i in range(20))
        put(a, *(note(Kind.KEY, name, {"count": 0}) for name in many))

        def add_to_all(store: Store, order: tuple[str, ...]) -> None:
            for _ in range(10):
                left = order
                for _ in patience():
                    applied = store.update(Named(Kind.KEY, left), _add_one)
                    left = tuple(r.name for r in applied.results if r.verdict is Verdict.CONTENDED)
                    if not left:
                        break

        race([partial(add_to_all, a, many), partial(add_to_all, b, many[::-1])])
        assert [doc.body["count"] for doc in a.read(All(Kind.KEY))] == [20] * 20  # type: ignore[union-attr]

    def test_one_client_serves_many_threads(self, clients: Clients) -> None:
        store = clients.new()
        put(store, *(job(f"j{i:02}", due_at=store.clock() - SECOND) for i in range(24)))
        got = race([partial(_take_all, store, f"s{i}") for i in range(8)])
        assert sorted(name for names in got for name in names) == [f"j{i:02}" for i in range(24)]

    def test_processes_share_out_due_jobs_each_to_one(self, clients: Clients) -> None:
        store = clients.new()
        if not store.capabilities.shared:
            pytest.skip("this store says that it cannot be shared by processes")
        jobs = [f"j{i:02}" for i in range(40)]
        put(store, *(job(name, due_at=store.clock() - SECOND) for name in jobs))
        got = processes([partial(_open_and_take_all, clients, f"s{i}") for i in range(4)])
        assert sorted(name for names in got for name in names) == jobs
        assert sorted(hold.session for doc in store.read(All(Kind.JOB)) for hold in doc.active) == sorted(  # type: ignore[union-attr]
            f"s{i}" for i, names in enumerate(got) for _ in names
        )

    def test_a_client_that_was_forked_goes_on_in_both_processes(self, clients: Clients) -> None:
        store = clients.new()
        if not store.capabilities.shared:
            pytest.skip("this store says that it cannot be shared by processes")
        put(store, note(Kind.KEY, "n", {"count": 0}))

        def add() -> str:
            return _surely(store, "n", _add_one, Kind.KEY)

        assert processes([add, add, add]) == ["applied"] * 3
        assert add() == "applied"
        assert get(store, Kind.KEY, "n").body == {"count": 4}


def _add_one(doc: Any, now: int) -> Change:
    return Change(replace(doc, body={"count": doc.body["count"] + 1}))


def _surely(store: Store, name: str, change: Any, kind: Kind = Kind.LOCK) -> Verdict:
    """Repeat while contended, as callers must."""
    verdict = Verdict.CONTENDED
    for _ in patience():
        verdict = verdicts(write(store, kind, name, change))[name]
        if verdict is not Verdict.CONTENDED:
            break
    return verdict


def _open_and_take_all(clients: Clients, by: str) -> list[str]:
    return _take_all(clients.new(), by)


def _take_all(store: Store, by: str) -> list[str]:
    """Claim five at a time until nothing is due any more; no log, whose own keys would hide a second claim."""
    got: list[str] = []
    for _ in patience():
        applied = store.update(everything(limit=5), add_hold(by))
        got += [result.name for result in applied.results if result.verdict is Verdict.APPLIED]
        if applied.next_due is None and not applied.results:
            break
    return got
