"""The judge of simulated worlds: cases in which it once condemned what was right."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from proof.invariants.checker import Violation
from proof.invariants.ledger import i7_fail_closed
from proof.invariants.losses import GoingBack, Loss
from proof.invariants.policies import i5_no_backfill_vanishes
from proof.invariants.quiescence import i5_nothing_is_left_lying
from proof.oracles.slots import Even, fate_through
from proof.simulator.options import Options
from proof.simulator.world import World, simulate
from proof.workloads.broker import Broker
from proof.workloads.effects import Effects
from proof.workloads.jobs import Plan, Workload, policies
from solocron.clock import SECOND
from solocron.dispatch.carrier import Message
from solocron.model.documents.job import Pause, WaitingRange, WaitingRun
from solocron.model.documents.offer import Offer
from solocron.model.documents.run import Origin
from solocron.testing.conformance.kit import hold, job


def test_a_pause_of_many_covers_what_follows_the_jobs_own_pause() -> None:
    """The own pause ended at 20 s; the pause of all jobs has stood since 5 s and stands."""
    paused = replace(job("j"), cursor=10 * SECOND, paused=Pause(at=10 * SECOND, until=20 * SECOND))
    fates = fate_through(paused, Even(5 * SECOND), [(5 * SECOND, None)], now=31 * SECOND, late_for=25 * SECOND)
    assert fates == dict.fromkeys((15 * SECOND, 20 * SECOND, 25 * SECOND, 30 * SECOND), "skipped")


def test_the_jobs_own_pause_alone_lets_the_slots_after_it_wait() -> None:
    paused = replace(job("j"), cursor=10 * SECOND, paused=Pause(at=10 * SECOND, until=20 * SECOND))
    fates = fate_through(paused, Even(5 * SECOND), [], now=26 * SECOND, late_for=25 * SECOND)
    assert fates == {15 * SECOND: "skipped", 20 * SECOND: "skipped", 25 * SECOND: "waiting"}


def handed_over(shard: str, *, left: int) -> Any:
    """A commit that hands over a shard of a slot that a backfill of seven more slots had begun."""
    waiting = WaitingRun(run="j@1#0", slot=1, origin=Origin.BACKFILL, ready_at=1, shard=0, shards=2)
    offered = replace(waiting, run=shard, offer=Offer(carrier="queue", since=1, until=9))
    rest = WaitingRange(first=2, last=8, count=7, origin=Origin.BACKFILL, request="r", total=8)
    before = job("j", waiting_runs=(waiting,), waiting_ranges=(rest,))
    after = replace(before, waiting_runs=(offered,), waiting_ranges=(replace(rest, count=left),))
    return SimpleNamespace(name="j", before=before, after=after, records=())


def test_a_further_shard_of_a_backfilled_slot_is_not_another_slot() -> None:
    i5_no_backfill_vanishes(None, handed_over("j@1#1", left=7))  # type: ignore[arg-type]


def test_a_backfilled_slot_that_begins_leaves_its_range() -> None:
    with pytest.raises(Violation, match="I5"):
        i5_no_backfill_vanishes(None, handed_over("j@2#0", left=7))  # type: ignore[arg-type]
    i5_no_backfill_vanishes(None, handed_over("j@2#0", left=6))  # type: ignore[arg-type]


# --- how long a world is left alone before it is judged


LEASE, LATE = 3.0, 20 * SECOND
"""Seconds, and microseconds that are more than the judge allows at this lease."""


def queue(*, busy: bool, waits: int = LATE, pace: int | None = None, **more: Any) -> World:
    """A world in which one job has five slots in its queue, the first of them for `waits` microseconds."""
    world = World(Options(seed=1, nodes=1, jobs=2, lease=LEASE))
    now = world.database.clock()
    slots = WaitingRange(first=now - waits, last=now - SECOND, count=5, origin=Origin.SCHEDULE, pace=pace)
    active = (hold("j@1", "s"),) if busy else ()
    due = now + SECOND if busy else now - waits  # a job that is busy is due with its next slot
    world.database.put(job("j", due_at=due, active=active, waiting_ranges=(slots,), **more))
    return world


@pytest.mark.parametrize("busy", [False, True])
def test_a_queue_is_a_backlog_whether_or_not_its_job_is_busy(busy: bool) -> None:
    """Else the world is judged as soon as one look happens to find the job busy, with its queue half worked off."""
    world = queue(busy=busy)
    assert world.backlog() == 5
    with pytest.raises(Violation, match="I5: j has a run that waits"):
        i5_nothing_is_left_lying(world.checker, 4 * LEASE + 1)


@pytest.mark.parametrize(
    "kept_back",
    [{"waits": 2 * SECOND}, {"paused": Pause(at=1)}, {"pace": 10 * SECOND}],
    ids=["young", "paused", "paced"],
)
def test_what_may_wait_is_not_a_backlog(kept_back: dict[str, Any]) -> None:
    world = queue(busy=True, **kept_back)
    assert world.backlog() == 0
    i5_nothing_is_left_lying(world.checker, 4 * LEASE + 1)


def overrun(monkeypatch: pytest.MonkeyPatch) -> Options:
    """A world with a job behind its broker whose slots come faster under fire than they can run, and all wait."""
    drawn = Workload.__init__

    def init(workload: Workload, options: Options, dice: Random) -> None:
        drawn(workload, options, dice)
        plain = policies(LEASE, Random(1), stoppable=False) | {"limit": None, "shards": None, "pause_after": None}
        plain |= {"overlap": "queue-all", "catch_up": "all", "start_within": None, "retries": 0}
        workload.plans = [
            Plan(number, 1.0 if number == 1 else 60.0, None, longest=3 * LEASE, stoppable=False, policies=plain)
            for number in range(3)
        ]

    monkeypatch.setattr(Workload, "__init__", init)
    return Options(seed=0, nodes=2, jobs=2, lease=LEASE, hours=0.03, delay=0.05, broker=20.0)


@pytest.mark.invariant("I5: no slot is lost")
def test_a_queue_that_gets_shorter_is_not_left_lying(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 988: 150 slots waited when the faults ended; it was judged while 20 still did, fewer each second."""
    report = simulate(overrun(monkeypatch))
    assert report.violation is None
    assert report.checked["i5_nothing_is_left_lying"] == 1


@pytest.mark.invariant("I5: no slot is lost")
def test_a_queue_that_does_not_get_shorter_is_left_lying(monkeypatch: pytest.MonkeyPatch) -> None:
    deliver = Broker._deliver

    def unless_calm(broker: Broker, message: Message) -> None:
        if not broker._world.calm:
            deliver(broker, message)

    monkeypatch.setattr(Broker, "_deliver", unless_calm)
    report = simulate(overrun(monkeypatch))
    assert report.violation is not None
    assert report.violation.startswith("I5: job-1 has a run that waits since")


@pytest.mark.parametrize(("lives", "promised"), [(True, True), (False, False)])
def test_of_a_fleet_that_was_restarted_nothing_is_promised(lives: bool, promised: bool) -> None:
    """The store went back, and the only node that lived was killed before its next beat: none could notice it."""
    world = SimpleNamespace(
        options=Options(seed=1), kernel=SimpleNamespace(now=0.0), database=SimpleNamespace(on_commit=[]),
        most_attempts=lambda job: 1,
    )  # fmt: skip
    losses = GoingBack(world)  # type: ignore[arg-type]
    losses.losses.append(Loss(8.0, 5.0, False, frozenset({"s"}), True, frozenset({"n0"})))
    if lives:
        losses._reached["n0"] = [9.0]
    dead = SimpleNamespace(name="n1", alive=False)
    first = SimpleNamespace(line=SimpleNamespace(run="j@1", fence=1, at=4.0, process=dead), session="s")
    second = SimpleNamespace(run="j@1", at=13.0, job="j")
    assert losses._is_promised(first, second) is promised  # type: ignore[arg-type]


@pytest.mark.parametrize(("asked", "promised"), [(9.5, True), (11.5, False)], ids=["before", "after"])
def test_a_request_that_is_sent_again_after_the_closing_may_run_again(asked: float, promised: bool) -> None:
    """No node remembers any more that the run was carried out; `solocron restored` cannot know of a later request."""
    alive = SimpleNamespace(alive=True, name="n0")
    losses = GoingBack(SimpleNamespace(options=Options(seed=1)))  # type: ignore[arg-type]
    losses.losses.append(Loss(8.0, 5.0, False, frozenset({"s"}), True, frozenset({"n0"})))
    losses._reached["n0"] = [9.0]
    losses._closings.append(10.0)
    losses._openings.append(11.0)
    losses._requested["run"] = asked
    first = SimpleNamespace(line=SimpleNamespace(run="run", fence=1, at=7.0, process=alive), session="s")
    second = SimpleNamespace(run="run#0", job="job", at=12.0)
    assert losses._is_promised(first, second) is promised  # type: ignore[arg-type]


@pytest.mark.parametrize(("session", "twice"), [("s", True), ("t", False)], ids=["same", "another"])
def test_a_fence_that_was_granted_again_to_another_session_is_not_judged_here(session: str, twice: bool) -> None:
    node = SimpleNamespace(name="n0")
    checker = SimpleNamespace(
        granted={("run", 1): SimpleNamespace(node="n0", session=session)}, started={("run", 1): "s"}
    )
    line = SimpleNamespace(what="start", run="run", fence=1, process=node)
    with pytest.raises(Violation) if twice else nullcontext():
        i7_fail_closed(checker, line)  # type: ignore[arg-type]


def saved(*, went_back: bool, acknowledged: bool) -> Effects:
    """The judge of a step that a living process has saved."""
    losses = SimpleNamespace(is_kept=lambda *_: True, went_back_since=lambda _: went_back)
    kernel, database = SimpleNamespace(dice=None), SimpleNamespace(on_commit=[])
    effects = Effects(SimpleNamespace(kernel=kernel, database=database, going_back=losses), 1)  # type: ignore[arg-type]
    effects._saved["j@1", "one"] = (5, SimpleNamespace(name="n0"), 1.0)  # type: ignore[assignment]
    if acknowledged:
        effects._acknowledged.add(("j@1", "one", "n0"))
    return effects


def test_nobody_puts_back_a_step_whose_save_was_lost_before_it_was_acknowledged() -> None:
    saved(went_back=True, acknowledged=False)._executed("j@1", "one", 6)


@pytest.mark.parametrize(("went_back", "acknowledged"), [(True, True), (False, False)])
def test_any_other_saved_step_is_not_carried_out_again(went_back: bool, acknowledged: bool) -> None:
    with pytest.raises(Violation, match="I17"):
        saved(went_back=went_back, acknowledged=acknowledged)._executed("j@1", "one", 6)
