"""The keeper while other work is done on its thread, and what it asks the store for with each beat."""

from __future__ import annotations

from dataclasses import replace

import pytest

from solocron.clock import SystemClock
from solocron.engine.registrar import BATCH
from solocron.errors import StoreUnavailable
from solocron.lease.trust import Standing
from solocron.model.change import Kind
from solocron.runtime import Threads
from solocron.scheduler.hooks import make_node, scheduler_on
from solocron.stores.contract import All, Applied, ChangeFn, Doc, Gate, Named, Which
from solocron.stores.memory import MemoryStore


class Still(SystemClock):
    """A boot clock that moves when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def boot(self) -> float:  # type: ignore[override]
        return self.now


def test_a_start_with_more_jobs_than_fit_into_a_lease_keeps_its_session() -> None:
    clock = Still()
    scheduler = scheduler_on(Threads(clock), "memory://", enabled=True, lease="15s")
    for number in range(4 * BATCH):
        scheduler.cron("0 9 * * *", name=f"job-{number}")(lambda: None)
    store = scheduler.open().store
    assert isinstance(store, MemoryStore)
    real = store.update

    def slowly(which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None) -> Applied:
        if isinstance(which, Named) and which.kind is Kind.JOB:
            clock.now += 6.0
        return real(which, change, session=session)

    store.update = slowly  # type: ignore[method-assign]
    node = make_node(scheduler)
    node.keeper.step(clock.boot())
    assert clock.now == 1_024.0, "longer than the lease"
    assert node.lease.standing() is Standing.HELD
    assert scheduler.events.counts["session begun"] == 1
    assert scheduler.events.counts["session renewed"] == 4
    assert len(scheduler.jobs()) == 4 * BATCH


def test_a_renewal_that_says_that_nothing_is_held_is_the_look_of_that_beat() -> None:
    """And one that says otherwise, or nothing at all, is followed by a look: a claim may have landed late."""
    clock = Still()
    scheduler = scheduler_on(Threads(clock), "memory://", enabled=True, lease="15s")
    scheduler.every("1h", name="job")(lambda: None)
    store = scheduler.open().store
    assert isinstance(store, MemoryStore)
    node = make_node(scheduler)
    node.keeper.step(clock.boot())
    looks: list[Which] = []
    update, read, says = store.update, store.read, [False]

    def noted(which: Which) -> tuple[Doc, ...]:
        looks.append(which)
        return read(which)

    def told(which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None) -> Applied:
        applied = update(which, change, session=session)
        assert applied.holds is False, "as it is"
        return replace(applied, holds=says[0])

    store.read, store.update = noted, told  # type: ignore[method-assign]
    for says[0], expected in ((False, 0), (True, 1), (None, 1)):  # type: ignore[assignment]
        looks.clear()
        clock.now += 5.0
        node.keeper.step(clock.boot())
        assert len(looks) == expected
    assert scheduler.events.counts["session renewed"] == 3


@pytest.mark.invariant("I8: a body that can be stopped does nothing after its lease")
def test_a_session_is_watched_although_the_store_fails_right_after_it_began() -> None:
    """The watchdog slept for half a minute then, and bodies went on after the lease was over.

    The node has not seen who else lives, so it claims a barrier later, as beside others.
    """
    clock = Still()
    scheduler = scheduler_on(Threads(clock), "memory://", enabled=True, lease="15s")
    store = scheduler.open().store
    assert isinstance(store, MemoryStore)
    real = store.read

    def failing(which: Which) -> tuple[Doc, ...]:
        if isinstance(which, All) and which.kind is Kind.SESSION:
            raise StoreUnavailable("it went away")
        return real(which)

    store.read = failing  # type: ignore[method-assign]
    node = make_node(scheduler)
    node.context.signals.watch.clear()
    with pytest.raises(StoreUnavailable):
        node.keeper.step(clock.boot())
    assert node.lease.standing() is Standing.HELD
    assert node.context.signals.watch.is_set()
    store.read = real  # type: ignore[method-assign]
    node.keeper.step(clock.boot())
    assert not node.gate.may_claim()
    assert node.gate.claims_from() == clock.boot() + node.context.settings.barrier
