"""Events carry what users of the library know: aware datetimes, strings and numbers, `Status`; no internal class."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest

import solocron
from solocron import Event, Scheduler, Status
from solocron.events import INSTANTS, Events

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


def test_views_events_and_statuses_are_exported() -> None:
    names = {"JobView", "RunView", "NodeView", "StatusView", "Event", "Status", "AsyncScheduler", "JobOptions"}
    assert names <= set(solocron.__all__)
    assert all(getattr(solocron, name).__name__ == name for name in names)
