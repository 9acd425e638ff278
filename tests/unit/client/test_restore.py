"""`restored()`: every job is moved to now, or named in the error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from solocron import Scheduler
from solocron.client import Client
from solocron.clock import SECOND
from solocron.effects.locks.listing import list_locks
from solocron.engine.namespace_gate import change_namespace
from solocron.errors import StoreError
from solocron.model.change import Kind
from solocron.model.documents import namespace
from solocron.stores.contract import All, Applied, Gate, Result, Verdict
from solocron.stores.memory import MemoryStore
from solocron.stores.memory_state import Kept
from solocron.stores.paging import iter_jobs, read_namespace


def shop(name: str) -> MemoryStore:
    scheduler = Scheduler(f"memory://{name}")
    for job in ("bake", "deliver", "report"):
        scheduler.every("1h", name=job)(lambda: None)
    scheduler.tick()
    return MemoryStore(name)


def test_what_others_got_in_the_way_of_is_repeated() -> None:
    class Crowded(MemoryStore):
        turns = 0

        def update(self, which: Any, change: Any, *, session: str | None = None, gate: Gate | None = None) -> Applied:
            if which.kind is Kind.NAMESPACE:
                return super().update(which, change)
            Crowded.turns += 1
            if Crowded.turns <= 2:
                names = [job.name for job in iter_jobs(self)] if isinstance(which, All) else which.names
                return Applied(results=tuple(Result(name, Verdict.CONTENDED) for name in names), now=0)
            return super().update(which, change, session=session, gate=gate)

    shop("crowded")
    client = Client(Crowded("crowded"))
    assert client.restored() == 3
    assert Crowded.turns == 4, "two in vain, one that moves them, one that finds no further page"
    Crowded.turns = -100
    with pytest.raises(StoreError, match="3 jobs could not be moved to now"):
        client.restored()


def test_a_job_that_cannot_be_decoded_is_named_and_the_others_are_moved() -> None:
    """Decoded by a later release, it would run from the cursor of the backup on: the user must know."""
    store = shop("broken")
    kept = store.world.spaces[store.namespace].docs[Kind.JOB]
    kept["bake"] = replace(kept["bake"], row=kept["bake"].row._replace(state='{"c": 1, "broken'))
    store.shift_clock(3600 * 5_000_000)
    with pytest.raises(StoreError, match="1 job cannot be read and kept the cursor of the backup, bake among them"):
        Client(store).restored()
    moved = [job.cursor > store.clock() - 1_000_000 for job in iter_jobs(store)]
    assert moved == [True, True]


def test_jobs_of_every_page_are_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solocron.client.restore.PAGE", 2)
    store = shop("paged")
    store.shift_clock(3600 * 5_000_000)
    assert Client(store).restored() == 3
    assert all(job.cursor > store.clock() - 1_000_000 for job in iter_jobs(store))


class Struck(MemoryStore):
    """Goes back before one of its calls, to what it held before an earlier one."""

    calls, strikes, returns_to = 0, -1, 0
    kept: Mapping[Kind, dict[str, Kept]]

    def _call(self) -> None:
        docs = self.world.spaces[self.namespace].docs
        if self.calls == self.returns_to:
            self.kept = {kind: dict(found) for kind, found in docs.items()}
        if self.calls == self.strikes:
            docs.update({kind: dict(found) for kind, found in self.kept.items()})
            self.world.versions += 1
        self.calls += 1

    def update(self, which: Any, change: Any, *, session: str | None = None, gate: Gate | None = None) -> Applied:
        self._call()
        return super().update(which, change, session=session, gate=gate)

    def read(self, which: Any, **more: Any) -> Any:
        self._call()
        return super().read(which, **more)


def restored_while_it_goes_back(to: int, at: int) -> int:
    """Call `restored` on a store that goes back before call `at` to what it held before call `to`.

    Returns how many calls there were. Whatever is open then was moved: jobs by their cursor, locks by their fence.
    """
    scheduler = Scheduler("memory://")
    for job in ("bake", "deliver"):
        scheduler.every("1h", name=job)(lambda: None)
    scheduler.tick()
    world = scheduler.open().store.world  # type: ignore[attr-defined]
    with scheduler.lock("till"):
        pass
    store = Struck(world=world)
    store.shift_clock(5 * 3600 * SECOND)
    store.strikes, store.returns_to = at, to
    now = store.clock()
    Client(store).restored()
    plain = MemoryStore(world=world)
    known = read_namespace(plain)
    assert known is not None
    assert known.openness is namespace.Openness.OPEN
    behind = [job.name for job in iter_jobs(plain) if job.cursor < now]
    behind += [lock.name for lock in list_locks(plain) if lock.fence < now // 1000]
    assert behind == [], f"I22: opened, and never moved since the store went back before call {at}"
    return store.calls


@pytest.mark.invariant("I22: no attempt starts twice although the store forgets")
def test_a_store_that_goes_back_meanwhile_is_not_opened_as_it_then_is() -> None:
    """A second restore, or a failover, at any call of `restored`, to any moment of it."""
    calls = restored_while_it_goes_back(0, -1)
    assert calls > 8
    for at in range(1, calls):
        for to in range(at):
            restored_while_it_goes_back(to, at)


def test_it_gives_up_where_the_store_goes_back_each_time() -> None:
    class Restless(MemoryStore):
        def update(self, which: Any, change: Any, *, session: str | None = None, gate: Gate | None = None) -> Applied:
            if which.kind is Kind.JOB:
                change_namespace(
                    MemoryStore(world=self.world),
                    lambda doc, now: namespace.close(doc, identity="another", known=0, token="t", now=now),
                )
            return super().update(which, change, session=session, gate=gate)

    shop("restless")
    store = Restless("restless")
    with pytest.raises(StoreError, match="while jobs were moved to now, 5 times; the namespace was not opened"):
        Client(store).restored()
    known = read_namespace(store)
    assert known is not None
    assert known.openness is namespace.Openness.CLOSED


@pytest.mark.parametrize(("ahead", "believed"), [(-60, 0), (60, 60), (3_600, 300)])
def test_the_end_of_the_nodes_work_counts_up_to_five_minutes_ahead_of_the_clock(ahead: int, believed: int) -> None:
    """A clock that had been an hour fast must not keep every job from running for an hour."""
    scheduler = Scheduler("memory://", enabled=True)
    scheduler.every("1s", name="job")(lambda: None)
    scheduler.tick()
    client = scheduler.open()
    identity, now = client.store.identity(), client.store.clock()
    change_namespace(
        client.store,
        lambda doc, _: namespace.close(doc, identity=identity, known=0, token="t", now=now + ahead * SECOND),
    )
    assert client.restored() == 1
    later = client.store.clock()
    (found,) = client.documents.all()
    assert now + believed * SECOND <= found.cursor <= later + believed * SECOND
