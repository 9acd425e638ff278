"""The sweeper beside nodes that start at the very same moment, and with very much to prune."""

from __future__ import annotations

from functools import partial

import pytest

from solocron import Scheduler
from solocron.clock import SECOND
from solocron.engine.housekeeping import PRUNE_BATCHES, PRUNE_PAUSE
from solocron.engine.node import Node
from solocron.errors import StoreUnavailable
from solocron.model.change import Kind
from solocron.model.documents.job import Job
from solocron.model.documents.session import Session, begin, bury
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import claim
from solocron.scheduler.hooks import core_of, make_node
from solocron.stores.contract import All, Due, Named, Which
from solocron.stores.memory import MemoryStore


@pytest.mark.invariant("I1: a slot has one live claim at a time")
def test_a_node_that_begins_while_another_sweeps_keeps_its_claims() -> None:
    """The newcomer begins its session and claims right after the sweeper has read the sessions."""
    scheduler = Scheduler("memory://", enabled=True, lease="3s")
    scheduler.every("1h", name="job")(lambda: None)
    scheduler.tick()
    scheduler.trigger("job")
    store = scheduler.open().store
    assert isinstance(store, MemoryStore)
    node = make_node(scheduler)
    node.keeper.step(core_of(scheduler).runtime.clock.boot())
    real, claimed = store.read, []

    def newcomer() -> None:
        session = Session(name="newcomer", node="n", host="h", pid=1, lease=3 * SECOND)
        store.update(Named(Kind.SESSION, ("newcomer",)), lambda doc, now: begin(doc, session, now=now))
        by = Claimant(session="newcomer", node="n", late_for=5 * SECOND)
        due = Due(handlers=frozenset({"job"}), pools=frozenset({"default"}), limit=1)
        change = partial(claim, by=by, resolve=scheduler.registry.resolve)
        claimed.extend(store.update(due, lambda doc, now: change(doc, now=now), session="newcomer").results)

    def read(which: Which) -> object:
        found = real(which)
        if which == All(Kind.SESSION) and not claimed:
            newcomer()
        return found

    store.read = read  # type: ignore[method-assign,assignment]
    node.sweeper.step(core_of(scheduler).runtime.clock.boot())
    (job,) = real(Named(Kind.JOB, ("job",)))
    assert isinstance(job, Job)
    assert [hold.session for hold in job.active] == ["newcomer"]


def test_pruning_goes_on_while_there_is_more_and_lets_the_sessions_be_looked_at_in_between() -> None:
    """It stopped at 10,000 records a minute: who writes more than that never got rid of any."""
    scheduler = Scheduler("memory://", enabled=True, lease="15s")
    store = scheduler.open().store
    assert isinstance(store, MemoryStore)
    node = make_node(scheduler)
    node.keeper.step(core_of(scheduler).runtime.clock.boot())
    calls: list[str] = []
    left, read = 25_300, store.read

    def prune(before: int, limit: int) -> int:
        nonlocal left
        calls.append("prune")
        removed = min(limit, left)
        left -= removed
        return removed

    def noted(which: Which) -> object:
        if which == All(Kind.SESSION):
            calls.append("look")
        return read(which)

    store.prune, store.read = prune, noted  # type: ignore[method-assign,assignment]
    now, steps = core_of(scheduler).runtime.clock.boot(), 0
    while steps < 10 and left:
        pause = node.sweeper.step(now) - core_of(scheduler).runtime.clock.boot()
        steps += 1
    assert (left, steps) == (0, 6)
    assert pause > 1, "then it rests"
    looks = "".join("|" if call == "look" else "." for call in calls).strip("|").split("|")
    assert max(map(len, looks)) <= PRUNE_BATCHES


def test_a_step_that_has_more_to_prune_is_followed_by_the_next_at_once() -> None:
    scheduler = Scheduler("memory://", enabled=True, lease="15s")
    store = scheduler.open().store
    assert isinstance(store, MemoryStore)
    node = make_node(scheduler)
    node.keeper.step(core_of(scheduler).runtime.clock.boot())
    store.prune = lambda before, limit: limit  # type: ignore[method-assign]
    boot = core_of(scheduler).runtime.clock.boot
    assert node.sweeper.step(boot()) - boot() <= PRUNE_PAUSE


def with_dead_sessions(*names: str) -> tuple[Scheduler, Node, list[str]]:
    """A node that has a session, sessions that were buried and not swept, and the list of those that it sweeps."""
    scheduler = Scheduler("memory://", enabled=True, lease="15s")
    store, clock = scheduler.open().store, core_of(scheduler).runtime.clock
    node = make_node(scheduler)
    node.keeper.step(clock.boot())
    for name in names:
        session = Session(name=name, node="n", host="h", pid=1, lease=3 * SECOND)
        store.update(Named(Kind.SESSION, (name,)), lambda doc, now, one=session: begin(doc, one, now=now))  # type: ignore[misc]
        store.update(Named(Kind.SESSION, (name,)), lambda doc, now: bury(doc, now=now, reason="it died"))
    return scheduler, node, []


def test_each_node_begins_to_sweep_after_its_own_session() -> None:
    """All nodes swept hundreds of dead sessions in the same order, and each did the work of all."""
    scheduler, node, swept = with_dead_sessions("-1", "-2", "x1", "x2")
    real = node.sweeper.sweep

    def noted(session: Session) -> bool:
        swept.append(session.name)
        return real(session)

    node.sweeper.sweep = noted  # type: ignore[method-assign]
    node.sweeper.step(core_of(scheduler).runtime.clock.boot())
    assert swept == ["x1", "x2", "-1", "-2"]
    node.sweeper.step(core_of(scheduler).runtime.clock.boot())
    assert len(swept) == 4, "nothing is left"


@pytest.mark.invariant("I14: after a fault what is overdue starts within a bound")
def test_a_step_that_fails_at_one_dead_session_is_followed_by_one_that_begins_with_the_next() -> None:
    """Where replies are lost often, no step came past the first few, and the holds of the others stayed."""
    scheduler, node, swept = with_dead_sessions("x1", "x2", "x3")

    def fails(session: Session) -> bool:
        swept.append(session.name)
        raise StoreUnavailable("the store did not answer")

    node.sweeper.sweep = fails  # type: ignore[method-assign]
    for _ in range(4):
        with pytest.raises(StoreUnavailable):
            node.sweeper.step(core_of(scheduler).runtime.clock.boot())
    assert swept == ["x1", "x2", "x3", "x1"], "I14: none of them waits for another one"


@pytest.mark.invariant("I14: after a fault what is overdue starts within a bound")
def test_the_other_sessions_are_looked_at_while_many_dead_ones_are_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that died meanwhile was not buried before the last of them was swept."""
    scheduler, node, swept = with_dead_sessions(*(f"x{number}" for number in range(9)))
    clock, later = core_of(scheduler).runtime.clock, 0.0
    real = clock.boot
    monkeypatch.setattr(type(clock), "boot", lambda self: real() + later)

    def slowly(session: Session) -> bool:
        nonlocal later
        later += 2.0
        swept.append(session.name)
        return True

    node.sweeper.sweep = slowly  # type: ignore[method-assign]
    began = clock.boot()
    assert node.sweeper.step(began) <= began
    assert swept == ["x0", "x1", "x2"], "I14: a beat of 5 s is over, so it looks again"
