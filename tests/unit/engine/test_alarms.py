"""Alarms of a whole fleet on virtual time: five nodes, one message for each kind, whichever of them is killed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
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


@every("10s", name="ordinary")
def ordinary() -> None: ...


class Watched(Cluster):
    """A cluster that keeps what its nodes say of alarms."""

    def __init__(self, *targets: object, bounds: dict[str, Any] | None = None, **options: Any) -> None:
        self.told: list[tuple[str, str, int]] = []
        self.texts: list[str] = []
        self.bounds = bounds or {}
        super().__init__(*targets, start=START, **options)

    def _declare(self, scheduler: Scheduler, process: Process) -> None:
        super()._declare(scheduler, process)
        scheduler.alarms(**self.bounds)

        def note(event: Event) -> None:
            self.told.append((event.name, event.kind, event.count))
            self.texts.append(event.text)

        scheduler.on("alarm", note)
        scheduler.on("alarm cleared", note)

    def ask(self, number: int, call: Callable[[Scheduler], Any]) -> list[Any]:
        """Let a person in the process of a node ask its scheduler; returns the answer."""
        answers: list[Any] = []
        member = self.member(number)
        member.process.spawn(lambda: answers.append(call(member.scheduler)), "person")
        self.run("1s")
        return answers

    def open(self) -> list[str]:
        docs = (doc for doc, _ in self.fleet.database.docs.values() if isinstance(doc, SmallDocument))
        return sorted(doc.name for doc in docs if doc.kind is Kind.ALARM and is_open(doc))


def test_five_nodes_raise_one_alarm_and_clear_it_once() -> None:
    cluster = Watched(ill, nodes=5)
    cluster.run("6m")
    assert cluster.told == [("alarm", "failing", 1)]
    assert cluster.open() == ["failing:ill"]
    cluster.run("7m")
    assert cluster.told == [("alarm", "failing", 1), ("alarm cleared", "failing", 1)]
    assert cluster.open() == []
    assert cluster.texts[0] == "failing: ill: 4 runs in a row ended badly: ValueError: not before ten past"


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 16))])
def test_alarms_are_told_once_while_nodes_die_and_their_messages_are_lost(seed: int) -> None:
    cluster = Watched(ill, nodes=5, seed=seed, bounds={"every": "5s", "settle": "10s"})
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
    assert raised.count("failing") <= 1, "one episode, one message; the node that wrote it may have died before a word"


def test_a_pool_without_a_node_alarms_after_the_patience_and_only_then() -> None:
    cluster = Watched(elsewhere, nodes=2, bounds={"patience": "3m"})
    cluster.run("2m")
    assert cluster.told == []
    cluster.run("4m")
    assert cluster.told == [("alarm", "no node", 1)]
    cluster.start(7, pools=("gpu",))
    cluster.run("3m")
    about_the_pool = [(name, kind) for name, kind, _ in cluster.told if kind == "no node"]
    assert about_the_pool == [("alarm", "no node"), ("alarm cleared", "no node")]


def test_slots_that_were_missed_are_an_alarm_although_the_job_runs_again() -> None:
    cluster = Watched(often, nodes=2)
    cluster.run("1m")
    for number in (0, 1):
        cluster.kill(number)
    cluster.run("5m")
    cluster.start(0)
    cluster.run("3m")
    assert cluster.told == [("alarm", "missed", 1)]
    cluster.run("20m")
    assert cluster.told == [("alarm", "missed", 1), ("alarm cleared", "missed", 1)]


def _many(count: int) -> list[object]:
    return [every("30s", name=f"job-{number:03}", catch_up="skip")(lambda: None) for number in range(count)]


def test_an_outage_of_the_store_is_one_message_of_each_kind_however_many_jobs_there_are() -> None:
    cluster = Watched(*_many(30), nodes=3)
    cluster.run("2m")
    for number in range(3):
        cluster.cut_off(number)
    cluster.run("10m")
    for number in range(3):
        cluster.connect(number)
    cluster.run("50s")
    assert cluster.told == [], "it has a minute to settle"
    cluster.run("30m")
    assert cluster.told == [("alarm", "missed", 30), ("alarm cleared", "missed", 30)]
    assert cluster.texts[0] == "missed: 30 jobs, such as job-000, job-001, job-002; `solocron alarms` lists them"
    assert cluster.texts[1].startswith("missed is over: 30 jobs, such as job-000, job-001, job-002, after ")


def test_slots_that_a_later_one_ran_instead_of_are_listed_and_not_told() -> None:
    for asked, told in ((False, []), (True, [("alarm", "missed", 1)])):
        cluster = Watched(ordinary, nodes=1, bounds={"missed_latest": asked})
        cluster.run("1m")
        cluster.cut_off(0)
        cluster.run("10m")
        cluster.connect(0)
        cluster.run("3m")
        assert cluster.told == told
        assert cluster.open() == ["missed:ordinary"]


def test_a_silence_keeps_every_node_quiet_until_it_ends() -> None:
    cluster = Watched(ill, nodes=3)
    cluster.run("2m")
    until = cluster.now + timedelta(minutes=4)
    cluster.ask(1, lambda person: person.silence("failing:ill", until=until, note="known", by="ann"))
    cluster.run("3m")
    assert cluster.told == []
    (found,) = cluster.ask(0, Scheduler.open_alarms)
    assert [(one.state, one.counts, one.silenced_until) for one in found.alarms] == [("silenced", False, until)]
    cluster.run("3m")
    assert cluster.told == [("alarm", "failing", 1)]
    (found,) = cluster.ask(2, Scheduler.open_alarms)
    assert found.silences == (), "it went by itself"
    assert [one.state for one in found.alarms] == ["told"]


def test_a_silence_that_is_lifted_lets_what_is_still_wrong_be_told() -> None:
    cluster = Watched(ill, nodes=2)
    until = cluster.now + timedelta(days=1)
    cluster.run("10s")
    cluster.ask(0, lambda person: person.silence("failing", until=until))
    cluster.run("6m")
    assert cluster.told == []
    cluster.ask(1, lambda person: person.lift_silence("failing"))
    cluster.run("2m")
    assert cluster.told == [("alarm", "failing", 1)]


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
    scheduler.on("alarm", lambda event: told.append(event.text))

    @scheduler.every("1h", name="job", pool="gpu")
    def job() -> None: ...

    scheduler.tick()
    scheduler.tick()
    assert told == ["no node: gpu: no live node serves this pool, which has job"]
    assert [(alarm.kind, alarm.subject) for alarm in scheduler.status().alarms] == [("no node", "gpu")]
