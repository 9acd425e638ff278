"""Events carry what users of the library know: aware datetimes, strings and numbers, `Status`; no internal class."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest

import solocron
from solocron import Backoff, Event, Run, Scheduler, Status, every
from solocron.events import INSTANTS, Events
from solocron.testing.cluster import Cluster

PLAIN = (str, int, float, bool, datetime, type(None))


def test_instants_are_aware_datetimes(caplog: pytest.LogCaptureFixture) -> None:
    scheduler, seen = Scheduler("memory://", enabled=True), list[Event]()
    scheduler.every("365d", name="job")(lambda: None)
    scheduler.on("*", seen.append)
    with caplog.at_level(logging.DEBUG, "solocron"), scheduler:
        view = scheduler.wait(scheduler.trigger("job"), "10s")
    facts = {event.name: event for event in seen}
    assert facts["claimed"].slot == facts["started"].slot == facts["finished"].slot == view.slot
    assert (view.status, facts["finished"].outcome) == (Status.SUCCEEDED, Status.SUCCEEDED)
    assert facts["finished"].slot.utcoffset() == timedelta(0)
    for event in seen:
        for name, value in event.facts.items():
            assert type(value) in (*PLAIN, Status), (event.name, name, value)
    assert f"slot={view.slot:%Y-%m-%dT%H:%M:%S}" in caplog.text


def test_every_instant_among_the_facts_is_converted_and_none_stays_none() -> None:
    events, seen = Events(), list[Event]()
    events.on("*", seen.append)
    events.emit("taken over", **dict.fromkeys(INSTANTS, 1_000_000))
    events.emit("taken over", **dict.fromkeys(INSTANTS))
    assert set(seen[0].facts.values()) == {datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)}
    assert set(seen[1].facts.values()) == {None}


def test_an_end_says_whether_an_attempt_follows() -> None:
    scheduler, seen = Scheduler("memory://", enabled=True, max_running=1), list[Event]()
    tries: list[int] = []

    @scheduler.every("365d", name="job", retries=1, backoff=Backoff(first="1ms"))
    def job(run: Run) -> None:
        tries.append(run.attempt)
        if len(tries) < 4:
            raise ValueError("not yet")

    for name in ("started", "finished"):
        scheduler.on(name, seen.append)
    with scheduler:
        for _ in range(2):
            scheduler.wait(scheduler.trigger("job"), "10s")
    assert [event.first for event in seen if event.name == "started"] == [True, False, True, False]
    ends = [(event.outcome, event.final, event.origin, event.carrier) for event in seen if event.name == "finished"]
    assert ends == [
        (Status.FAILED, False, "trigger", None), (Status.FAILED, True, "trigger", None),
        (Status.FAILED, False, "trigger", None), (Status.SUCCEEDED, True, "trigger", None),
    ]  # fmt: skip


@pytest.mark.parametrize(("retries", "final"), [(0, True), (1, False)])
def test_a_takeover_names_what_was_lost_and_whether_it_is_tried_again(retries: int, final: bool) -> None:
    """No process is left that could emit the end of those attempts."""
    seen: list[Event] = []

    @every("10m", name="bill", retries=retries)
    def bill(run: Run) -> None:
        cluster.sleep("1m")

    cluster = Cluster(bill, nodes=2, lease="15s")
    for member in cluster.fleet.members.values():
        member.scheduler.on("taken over", seen.append)
    cluster.run("10m30s")
    (start,) = cluster.started("bill")
    cluster.kill(next(number for number in range(2) if cluster.process(number).name == start.node))
    cluster.run("30s")
    assert [event.runs for event in seen] == [
        ({"run": start.run, "attempt": 1, "origin": "schedule", "node": start.node, "final": final},)
    ]


def test_views_events_and_statuses_are_exported() -> None:
    names = {"JobView", "RunView", "NodeView", "StatusView", "Event", "Status", "AsyncScheduler", "JobOptions"}
    assert names <= set(solocron.__all__)
    assert all(getattr(solocron, name).__name__ == name for name in names)
