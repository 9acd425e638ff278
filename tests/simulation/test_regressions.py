"""Bugs that the simulator has found, each with the shortest history that shows it and a line on what it taught."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from solocron import Run, at, every
from solocron.clock import to_us
from solocron.model._fast.values import replace
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents.job import Job
from solocron.stores.contract import HeldBy, Named, Result, Verdict
from solocron.testing.cluster import Cluster
from solocron.testing.simulation.database import Commit


def test_a_session_that_began_while_the_sweeper_worked_is_not_unknown() -> None:
    """What names a session must be looked at before the sessions are: one that begins in between is no stranger."""

    @every("2s", name="job", overlap="skip")
    def body(run: Run) -> None:
        cluster.sleep("20s")

    cluster = Cluster(body, nodes=0)
    cluster.start(0, pools=("elsewhere",))
    cluster.fleet.network.script(cluster.process(0).name, "holders", after=3.0)
    cluster.run("500ms")
    cluster.start(1)
    cluster.run("20s")
    first = cluster.runs("job")[0]
    assert (first.status, first.node) == ("running", cluster.process(1).name)


@pytest.mark.invariant("I8: a body that can be stopped does nothing after its lease")
def test_the_watchdog_learns_of_a_new_session_also_when_the_store_falls_silent_right_after_it() -> None:
    """What guards the bodies is told first; whatever else a new session means may fail.

    The watchdog slept for as long as there was no session. The new one began, the very next call went unanswered, and
    with it the watchdog's wake-up was lost: bodies of that session were never stopped.
    """
    seen: list[float] = []

    @every("10s", name="job", overlap="skip")
    async def body(run: Run) -> None:
        while True:
            cluster.sleep("500ms")
            seen.append(cluster.fleet.kernel.now)

    cluster = Cluster(body, nodes=1)
    name = cluster.process(0).name
    cluster.run("1s")
    cluster.cut_off(0)
    cluster.run("15s")
    assert cluster.events["session lost"] == 1
    for _ in range(8):
        cluster.fleet.network.script(name, "read", after=None)
    cluster.connect(0)
    while not seen:
        cluster.run("1s")
    cluster.cut_off(0)
    alone = cluster.fleet.kernel.now
    cluster.run("25s")
    assert seen
    assert seen[-1] <= alone + 15


@pytest.mark.invariant("I20: there is no storm of starts")
def test_a_node_with_a_fast_clock_does_not_ask_the_store_again_and_again_before_each_slot() -> None:
    """One answer is enough to know that one woke too early: it was given between the question and the reply."""

    @every("10s", name="job")
    def body(run: Run) -> None:
        pass

    cluster = Cluster(body, nodes=0)
    cluster.start(0, rate=1.02)
    cluster.run("605s")
    cluster.assert_ran("job", times=60)
    asked = cluster.member(0).store.statements["select claim"]
    assert asked <= 60 * 5, f"{asked} claims for 60 slots"


@pytest.mark.invariant("I19: a job that goes wrong leaves the others alone")
@pytest.mark.parametrize("done", [object(), float("nan"), "half"])
def test_progress_that_is_no_number_is_the_bodys_own_error(done: object) -> None:
    """What a body hands over is looked at in its own call. The node's beat choked on it, and its run never ended."""

    @every("1m", name="odd")
    def odd(run: Run) -> None:
        run.progress(done)  # type: ignore[arg-type]

    @every("1m", name="other")
    def other() -> None:
        pass

    cluster = Cluster(odd, other, nodes=1)
    cluster.run("125s")
    assert [view.status for view in cluster.runs("odd")] == ["failed", "failed"]
    assert [view.status for view in cluster.runs("other")] == ["succeeded", "succeeded"]
    assert "progress(done" in (cluster.runs("odd")[0].error or "")


@pytest.mark.invariant("I1: a slot has one live claim at a time")
def test_a_lock_that_is_asked_for_once_does_not_bury_its_holder_after_a_step_of_the_stores_clock() -> None:
    """A step expires every session at once, so "no other node is alive" proves nothing: a node that asks is alive."""
    got: list[bool] = []

    @every("1h", name="holder")
    def holder(run: Run) -> None:
        held = cluster.member(0).scheduler.lock("it", keep_alive=True).acquire()
        assert held is not None
        cluster.sleep("10m")
        held.release()

    @every("1h", name="asker", pool="other")
    def asker(run: Run) -> None:
        while True:
            cluster.sleep("1s")
            got.append(cluster.member(1).scheduler.lock("it", keep_alive=True, wait=None).acquire() is not None)

    cluster = Cluster(holder, asker, nodes=0)
    cluster.start(0)
    cluster.start(1, pools=("other",))
    cluster.run("3601s")
    before = {session.name for session in cluster.sessions()}
    cluster.step_store_clock("30s")
    cluster.run("20s")
    assert set(got) == {False}
    assert {session.name for session in cluster.sessions()} == before
    assert cluster.events["session lost"] == 0


@pytest.mark.invariant("I1: a slot has one live claim at a time")
@pytest.mark.parametrize("moment", range(100, 124, 3))
def test_a_step_of_the_stores_clock_right_after_a_renewal_costs_its_node_nothing(moment: int) -> None:
    """What is left of a lease can be told only by a clock that has run evenly since the renewal (seed 23, 1.6 hours).

    The session was renewed, the store's clock leapt by half a minute, and only then did a sweeper look: it took what
    was left by the new time for what was left, and buried a node half a lease after its last renewal.
    """

    @every("1h", name="job")
    def body(run: Run) -> None:
        pass

    cluster = Cluster(body, nodes=3, lease="1m")
    cluster.run(f"{moment}s")
    before = {session.name for session in cluster.sessions()}
    cluster.freeze(0)
    cluster.step_store_clock("30s")
    cluster.run("33s")
    cluster.thaw(0)
    cluster.run("30s")
    assert {session.name for session in cluster.sessions()} == before
    assert cluster.events["session lost"] == 0


@pytest.mark.invariant("I1: a slot has one live claim at a time")
def test_a_node_that_joins_after_a_step_of_the_stores_clock_buries_nobody_early() -> None:
    """Who has not seen the clock run does not know what is left of a lease: it watches a whole one."""

    @every("1h", name="job")
    def body(run: Run) -> None:
        pass

    cluster = Cluster(body, nodes=1, lease="1m")
    cluster.run("100s")
    (before,) = cluster.sessions()
    cluster.freeze(0)
    cluster.step_store_clock("50s")
    cluster.start(1)
    cluster.run("33s")
    cluster.thaw(0)
    cluster.run("30s")
    assert before.name in {session.name for session in cluster.sessions()}


@pytest.mark.invariant("I1: a slot has one live claim at a time")
def test_who_waits_for_a_lock_buries_nobody_early_after_a_step_of_the_stores_clock() -> None:
    """A waiter knows even less of the store's clock than a sweeper: it counts a lease from what it has seen itself."""

    @every("1h", name="holder")
    def holder(run: Run) -> None:
        held = cluster.member(0).scheduler.lock("it", keep_alive=True).acquire()
        assert held is not None
        cluster.sleep("10m")

    @every("1h", name="waiter", pool="other")
    def waiter(run: Run) -> None:
        cluster.sleep("65s")
        cluster.member(1).scheduler.lock("it", keep_alive=True, wait="5m").acquire()

    cluster = Cluster(holder, waiter, nodes=0, lease="1m")
    cluster.start(0)
    cluster.start(1, pools=("other",))
    cluster.run("3660s")
    before = cluster.member(0).process.name
    cluster.freeze(0)
    cluster.step_store_clock("30s")
    cluster.run("39s")
    assert before in {session.node for session in cluster.sessions()}


MONDAY = datetime(2026, 6, 15, 9, tzinfo=UTC)


def _bank(cluster: Cluster, revision: int) -> None:
    """A revision is written and announced, and the node that did it dies before any job was put under it."""
    body = {"revision": revision, "weekend": [5, 6], "holidays": [["2026-12-24", f"revision {revision}"]]}
    cluster.fleet.database.put(SmallDocument(kind=Kind.CALENDAR, name=f"bank@{revision}", body=body))
    cluster.fleet.database.put(SmallDocument(kind=Kind.CALENDAR, name="bank", body={"revision": revision}))


@every("10s", name="job", calendar="bank", catch_up="all")
def _old(run: Run) -> None:
    pass


@every("20s", name="job", calendar="bank", catch_up="all")
def _new(run: Run) -> None:
    pass


@pytest.mark.invariant("I5: no slot is lost")
def test_a_deploy_that_meets_an_older_revision_of_a_calendar_fetches_it_before_it_decides() -> None:
    """A new definition ends the old rule, whose slots only that revision can tell (seed 1, six leases of deploys).

    The new node knew the latest revision and not the one that the job was still under. To its eyes the old rule had no
    slots, and those that no node had decided yet were gone without a word.
    """
    cluster = Cluster(nodes=0, start=MONDAY, lease="6s")
    changed: list[int] = []

    def look(commit: Commit) -> None:
        spec = commit.after.definition.schedule if isinstance(commit.after, Job) else None
        if spec and spec["period"] == "20s" and not changed:
            changed.append(commit.now)

    cluster.fleet.database.on_commit.append(look)
    _bank(cluster, 1)
    cluster.start(0, _old)
    cluster.run("61s")
    cluster.kill(0)
    cluster.run("45s")
    _bank(cluster, 2)
    cluster.start(1, _new, revision=1)
    cluster.run("60s")
    assert changed
    slots = {to_us(start.slot) for start in cluster.started("job")}
    first = to_us(MONDAY) // 10_000_000 * 10_000_000 + 10_000_000
    assert [slot for slot in range(first, changed[0], 10_000_000) if slot not in slots] == []


@pytest.mark.invariant("I11: the cursor passes no slot without a record")
def test_a_job_never_goes_back_to_an_older_revision_of_its_calendar() -> None:
    """Between looking up the latest revision and proposing a definition under it, a later one may come (seed 26).

    A node that had looked before the change proposed after it, and the job was under the old days off again.
    """
    cluster = Cluster(nodes=0, start=MONDAY, lease="6s")
    seen: list[tuple[str, int]] = []

    def look(commit: Commit) -> None:
        spec = commit.after.definition.schedule if isinstance(commit.after, Job) else None
        if spec and seen[-1:] != [(spec["period"], spec["calendar_revision"])]:
            seen.append((spec["period"], spec["calendar_revision"]))

    cluster.fleet.database.on_commit.append(look)
    _bank(cluster, 1)
    cluster.start(0, _old)
    cluster.run("15s")
    cluster.kill(0)
    cluster.run("10s")
    person = cluster.fleet.join("person")
    cluster.start(1, _new, revision=1)
    cluster.fleet.network.script(cluster.process(1).name, "select job", after=1.0)
    cluster.run("500ms")
    person.process.spawn(lambda: person.scheduler.calendar("bank", holidays=[]), "person")
    cluster.run("30s")
    assert seen == [("10s", 1), ("10s", 2), ("20s", 2)]


@pytest.mark.invariant("I14: after a fault what is overdue starts within a bound")
def test_a_definition_that_comes_late_from_a_node_that_is_gone_is_put_under_the_latest_revision() -> None:
    """Every node has followed a change, and then a write arrives that was sent before it: a rarer look finds it."""
    cluster = Cluster(nodes=0, start=MONDAY, lease="6s")
    _bank(cluster, 1)
    cluster.start(0, _old)
    cluster.run("15s")
    late = cluster.job("job")
    _bank(cluster, 2)
    cluster.run("3m")
    assert (cluster.job("job").definition.schedule or {})["calendar_revision"] == 2
    cluster.fleet.database.put(replace(cluster.job("job"), definition=late.definition))
    cluster.run("6m")
    assert (cluster.job("job").definition.schedule or {})["calendar_revision"] == 2


@pytest.mark.invariant("I9: no more run at once than may")
def test_a_node_that_stops_frees_nothing_as_long_as_its_session_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a session comes before what it holds is free, and must be known to have come (seed 82, seven nodes).

    Closing the session was contended, and the result was not looked at: the permit of a claim under way was freed, the
    claim was granted after that, because the session still lived, and its body started under a permit that any node
    could take.
    """

    @every("1h", name="job", limit="scarce:1")
    def body(run: Run) -> None:
        pass

    cluster = Cluster(body, nodes=1)
    cluster.run("20s")
    store, freed = cluster.member(0).store, list[object]()
    real = store.update

    def contended(which: Any, change: Any, **more: Any) -> Any:
        if isinstance(which, HeldBy):
            freed.append(which)
        applied = real(which, (lambda doc, now: None) if _ends(which) else change, **more)
        return replace(applied, results=tuple(map(_unsettled, applied.results))) if _ends(which) else applied

    def _ends(which: Any) -> bool:
        return isinstance(which, Named) and which.kind is Kind.SESSION

    def _unsettled(result: Result) -> Result:
        return replace(result, verdict=Verdict.CONTENDED)

    monkeypatch.setattr(type(store), "update", lambda self, *args, **more: contended(*args, **more))
    cluster.stop(0)
    cluster.run("3s")
    assert freed == []


@pytest.mark.invariant("I9: no more run at once than may")
def test_a_late_claim_that_is_handed_back_does_not_give_away_the_permit_of_another_run() -> None:
    """A permit is given back for the run that has it, not for whichever hold names it.

    A claim was delivered long after its sender had given up, and after its permit had been given back and taken again
    for another run. The late one was handed back, and the permit with it, while the other run went on.
    """

    def at_minute(minute: float) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)

    @at(at_minute(10), name="late", limit="scarce:1", retries=1)
    def late(run: Run) -> None:
        pass

    @at(at_minute(10.2), name="long", limit="scarce:1")
    def long(run: Run) -> None:
        cluster.sleep("5m")

    @at(at_minute(12), name="third", limit="scarce:1")
    def third(run: Run) -> None:
        pass

    cluster = Cluster(late, long, third, nodes=1, locking=False)
    cluster.run("599.9s")
    node, network = cluster.process(0).name, cluster.fleet.network
    network.script(node, "commit job", after=9.0)  # the claim, which its sender gives up
    network.script(node, "commit permit", after=0.01)
    network.script(node, "commit permit", after=None)  # the first try to give back what is in doubt
    network.script(node, "commit job", after=None)  # the first try to hand back what was adopted
    cluster.run("60s")
    assert [start.job for start in cluster.starts] == ["long"]
    assert cluster.events["adopted"] == 1, "the late claim has landed"
    cluster.start(1)
    cluster.run("90s")
    assert [start.job for start in cluster.starts] == ["long"]
    cluster.run("5m")
    assert sorted({start.job for start in cluster.starts}) == ["late", "long", "third"]
