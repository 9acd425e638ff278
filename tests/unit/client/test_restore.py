"""`restored()`: every job is moved to now, or named in the error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from solocron import Scheduler
from solocron.client import Client
from solocron.clock import SECOND
from solocron.engine.namespace_gate import change_namespace
from solocron.errors import StoreError
from solocron.model.change import Kind
from solocron.model.documents import namespace
from solocron.stores.contract import All, Applied, Gate, Result, Verdict
from solocron.stores.memory import MemoryStore
from solocron.stores.paging import iter_jobs


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
