"""Pauses of many jobs at the nodes: tested in the claim's commit, respected within a beat, and free of statements."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from solocron import Scheduler, every
from solocron.engine import claim_pass
from solocron.events import Event
from solocron.model.change import Kind
from solocron.model.documents.namespace import Namespace
from solocron.model.documents.scoped_pause import Reach, Scope, ScopedPause
from solocron.model.documents.session import begin, renew
from solocron.model.transitions.claiming import claim
from solocron.stores.contract import Gate
from solocron.stores.url import make_store
from solocron.testing.clock import ManualClock
from solocron.testing.cluster import Cluster
from solocron.testing.conformance.kit import HOUR, job, put, session, take, write
from solocron.testing.fleet import wait_until
from solocron.testing.simulation.kernel import Process


@every("1h")
def work() -> None: ...


@pytest.mark.invariant("I27: what a pause covers does not start while it stands")
def test_a_claim_that_is_under_way_when_it_is_written_is_refused_in_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    node, person = clock.scheduler(work), clock.scheduler(work)
    node.tick()
    clock.advance("1h")
    decided: list[str] = []

    def late(doc: Any, **options: Any) -> Any:
        if not decided:
            decided.append(doc.name)
            person.pause_all()
        return claim(doc, **options)

    monkeypatch.setattr(claim_pass, "claim", late)
    assert node.tick() == []
    assert decided == ["work"]
    assert node.runs("work") == []
    monkeypatch.undo()
    person.resume_all()
    assert [run.status for run in node.tick()] == ["succeeded"], "its slot came before the pause"


def test_a_pause_costs_a_claim_and_a_renewal_no_statement(tmp_path: Path) -> None:
    """The same statements, whether or not pauses stand that the claim names."""
    costs = []
    for number, pauses in enumerate(((), (ScopedPause(scope=Scope(Reach.POOL, "other"), at=1),))):
        store = make_store(f"sqlite:///{tmp_path}/{number}.db")
        store.open()
        known = Namespace(count=1, token="t", identity=store.identity(), pauses=pauses)
        put(store, known.note(), job("j", due_at=store.clock() - 1))
        described = session("s", expires_at=store.clock() + HOUR)
        write(store, Kind.SESSION, "s", lambda doc, at, described=described: begin(doc, described, now=at))
        before = store.statements.copy()
        assert take(store, "s", session="s", gate=Gate(0, ("open 1.t",), known.mark)) == ["j"]
        assert write(store, Kind.SESSION, "s", lambda doc, at: renew(doc, now=at)).gate is not None
        costs.append(store.statements - before)
        store.close()
    assert costs[0] == costs[1]


def test_running_nodes_hear_of_it_within_a_beat_and_go_on_when_it_is_lifted() -> None:
    """The jobs come every 50 ms: what starts after the nodes have read the pause would be seen at once."""
    ran: list[int] = []
    first = Scheduler("memory://paused-fleet", lease="1s")
    second = Scheduler("memory://paused-fleet", lease="1s")
    for scheduler in (first, second):
        scheduler.every("50ms", name="often")(lambda: ran.append(1))
    with first, second:
        wait_until(lambda: len(ran) > 3, within=60, what="the jobs")
        first.pause_all(note="stop")
        wait_until(lambda: bool(first.runs("often", status="skipped")), within=60, what="the jobs")
        count = len(ran)
        seen = len(first.runs("often", status="skipped"))
        wait_until(
            lambda: len(first.runs("often", status="skipped", limit=500)) > seen + 20, within=60, what="the jobs"
        )
        assert len(ran) <= count + 1, "at most what had been claimed before"
        second.resume_all()
        wait_until(lambda: len(ran) > count + 3, within=60, what="the jobs")


class Attentive(Cluster):
    """A cluster that keeps what its nodes say of pauses, with a thousand jobs in two pools."""

    def __init__(self, **options: Any) -> None:
        self.told: list[tuple[str, ...]] = []
        super().__init__(**options)

    def _declare(self, scheduler: Scheduler, process: Process) -> None:
        super()._declare(scheduler, process)
        for number in range(1_000):
            scheduler.every("1d", name=f"job-{number}", pool="etl" if number % 2 else "default")(nothing)

        def note(event: Event) -> None:
            told = [event.node.partition(".")[0], event.name, event.scope, event.by, event.reason]
            self.told.append(tuple(map(str, told)))

        scheduler.on("pause begun", note)
        scheduler.on("pause ended", note)

    def ask(self, call: Callable[[Scheduler], Any]) -> list[tuple[str, ...]]:
        """Let a person ask for something; return what the nodes have said within a beat."""
        self.told.clear()
        member = self.member(0)
        member.process.spawn(lambda: call(member.scheduler), "person")
        self.run("20s")
        return sorted(self.told)


def nothing() -> None: ...


def test_a_node_says_once_that_a_pause_begins_and_once_that_it_ends() -> None:
    """With the author and the note; a thousand jobs are one line. A pool that it does not serve is not its concern."""
    cluster = Attentive(nodes=2)
    cluster.run("20s")
    assert cluster.told == []
    both = ("n0", "n1")
    said = cluster.ask(lambda one: one.pause_all(by="ana", note="audit"))
    assert said == [(node, "pause begun", "all jobs", "ana", "audit") for node in both]
    cluster.run("5m")
    assert len(cluster.told) == 2, "and not with every beat"
    assert cluster.ask(lambda one: one.pause_all(pool="etl", by="ana")) == []
    assert [one[2] for one in cluster.ask(lambda one: one.pause_all(match="job-7*"))] == ["jobs matching job-7*"] * 2
    said = cluster.ask(lambda one: one.resume_all(by="bo", note="done"))
    assert said == [(node, "pause ended", "all jobs", "bo", "done") for node in both]
    until = cluster.now + timedelta(minutes=2)
    said = cluster.ask(lambda one: one.pause_all(match="job-7*", by="cy", until=until))
    assert [one[1:] for one in said] == [("pause begun", "jobs matching job-7*", "cy", "None")] * 2, "changed"
    cluster.told.clear()
    cluster.run("3m")
    assert sorted(cluster.told) == [(node, "pause ended", "jobs matching job-7*", "None", "None") for node in both]


def test_a_node_that_comes_later_says_what_it_found(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    clock.scheduler(work).pause_all(by="ana", note="audit")
    with caplog.at_level("INFO", logger="solocron"):
        clock.scheduler(work).tick()
    (line,) = [one for one in caplog.records if getattr(one, "event", None) == "pause begun"]
    assert line.levelname == "INFO"
    assert "scope=all jobs by=ana reason=audit" in line.getMessage()
