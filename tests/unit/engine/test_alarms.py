"""Alarms of a whole fleet on virtual time: five nodes, one word for each alarm, whoever is killed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from solocron import Run, Scheduler, every
from solocron.events import Event
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents.alarm import is_open
from solocron.testing.cluster import Cluster
from solocron.testing.simulation.kernel import Process

START = datetime(2026, 1, 5, tzinfo=UTC)


@every("1m", name="ill")
def ill(run: Run) -> None:
    if run.slot.minute < 10:
        raise ValueError("not before ten past")


@every("1m", name="elsewhere", pool="gpu")
def elsewhere() -> None: ...


@every("10s", name="often", catch_up="skip")
def often() -> None: ...


class Watched(Cluster):
    """A cluster that keeps what its nodes say of alarms."""

    def __init__(self, *targets: object, bounds: dict[str, Any] | None = None, **options: Any) -> None:
        self.told: list[tuple[str, str, str]] = []
        self.bounds = bounds or {}
        super().__init__(*targets, start=START, **options)

    def _declare(self, scheduler: Scheduler, process: Process) -> None:
        super()._declare(scheduler, process)
        scheduler.alarms(**self.bounds)

        def note(event: Event) -> None:
            self.told.append((event.name, event.kind, event.subject))

        scheduler.on("alarm", note)
        scheduler.on("alarm cleared", note)

    def open(self) -> list[str]:
        docs = (doc for doc, _ in self.fleet.database.docs.values() if isinstance(doc, SmallDocument))
        return sorted(doc.name for doc in docs if doc.kind is Kind.ALARM and is_open(doc))


def test_five_nodes_raise_one_alarm_and_clear_it_once() -> None:
    cluster = Watched(ill, nodes=5)
    cluster.run("6m")
    assert cluster.told == [("alarm", "failing", "ill")]
    assert cluster.open() == ["failing:ill"]
    cluster.run("6m")
    assert cluster.told == [("alarm", "failing", "ill"), ("alarm cleared", "failing", "ill")]
    assert cluster.open() == []


@pytest.mark.parametrize("seed", range(8))
def test_alarms_are_told_once_while_nodes_die_and_their_messages_are_lost(seed: int) -> None:
    cluster = Watched(ill, nodes=5, seed=seed, bounds={"every": "5s"})
    for round_ in range(24):
        number = (seed + round_) % 5
        cluster.kill(number)
        cluster.run("20s")
        cluster.start(number)
        other = (number + 2) % 5
        cluster.cut_off(other)
        cluster.run("20s")
        cluster.connect(other)
    cluster.run("2m")
    assert cluster.open() == []
    raised = [kind for name, kind, _ in cluster.told if name == "alarm"]
    assert raised.count("failing") <= 1, "one episode, one alarm; the node that wrote it may have died before a word"


def test_a_pool_without_a_node_alarms_after_the_patience_and_only_then() -> None:
    cluster = Watched(elsewhere, nodes=2, bounds={"patience": "3m"})
    cluster.run("2m")
    assert cluster.told == []
    cluster.run("3m")
    assert cluster.told == [("alarm", "no node", "gpu")]
    cluster.start(7, pools=("gpu",))
    cluster.run("2m")
    about_the_pool = [(name, kind) for name, kind, _ in cluster.told if kind == "no node"]
    assert about_the_pool == [("alarm", "no node"), ("alarm cleared", "no node")]


def test_slots_that_were_missed_are_an_alarm_although_the_job_runs_again() -> None:
    cluster = Watched(often, nodes=2)
    cluster.run("1m")
    for number in (0, 1):
        cluster.kill(number)
    cluster.run("5m")
    cluster.start(0)
    cluster.run("2m")
    assert ("alarm", "missed", "often") in cluster.told
    cluster.run("20m")
    assert cluster.told.count(("alarm", "missed", "often")) == 1
    assert cluster.told[-1] == ("alarm cleared", "missed", "often")


def test_a_passed_slot_is_told_with_its_reason() -> None:
    passed: list[Event] = []
    cluster = Cluster(often, nodes=1, start=START)
    cluster.member(0).scheduler.on("slot passed", passed.append)
    cluster.run("1m")
    cluster.freeze(0)
    cluster.run("3m")
    cluster.thaw(0)
    cluster.run("1m")
    missed = [event for event in passed if event.outcome == "missed"]
    assert [event.job for event in missed] == ["often"]
    assert missed[0].count > 10
    assert missed[0].reason


def test_a_tick_looks_for_alarms_too() -> None:
    scheduler = Scheduler("memory://", enabled=True)
    scheduler.alarms(every="1ms", patience=0)
    told: list[str] = []
    scheduler.on("alarm", lambda event: told.append(f"{event.kind}: {event.detail}"))

    @scheduler.every("1h", name="job", pool="gpu")
    def job() -> None: ...

    scheduler.tick()
    scheduler.tick()
    assert told == ["no node: job and whatever else is in it cannot run"]
    assert [(alarm.kind, alarm.subject) for alarm in scheduler.status().alarms] == [("no node", "gpu")]
