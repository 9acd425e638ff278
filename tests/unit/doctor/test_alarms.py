"""What the doctor says of alarms: whether nodes look for them, and whether what they told has arrived."""

from __future__ import annotations

from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.doctor.alarms import alarms
from solocron.model.change import Absent, Kind, SmallDocument
from solocron.model.documents import alarm, alarm_message
from solocron.model.documents.alarm import TURN, Bounds, Cause
from solocron.model.documents.alarm_message import Delivery, Finding, OpenAlarm
from solocron.model.documents.silence import Silence, document_of, silence
from tests.unit.doctor.kit import NOW, only, session, sight

EVERY = 30 * SECOND


def turn(ago: float) -> SmallDocument:
    change: Any = alarm.take_turn(Absent(Kind.ALARM, TURN), by="web-1", every=EVERY, now=NOW - round(ago * SECOND))
    return change.doc


def message(delivery: Delivery, ago: float = 600) -> SmallDocument:
    seen = NOW - round(ago * SECOND)
    found = Finding(seen=seen, watched_since=0, members=[OpenAlarm(subject="job", detail="", since=seen, began=seen)])
    bounds = Bounds(every=EVERY, late=1, failing=1, patience=0, settle=0)
    name = alarm_message.document_of("late")
    told: Any = alarm_message.decide(Absent(Kind.ALARM, name), found, bounds=bounds, now=seen, token="t", by="web-1")
    if delivery is not Delivery.UNKNOWN:
        told = alarm_message.record_delivery(told.doc, delivery, token="t")
    return told.doc


def opened(subject: str, **more: Any) -> SmallDocument:
    cause = Cause(kind="late", subject=subject, detail="why", **more)
    change: Any = alarm.open_(Absent(Kind.ALARM, cause.name), cause, seen=NOW - SECOND, now=NOW)
    return change.doc


def test_a_fleet_that_looks_for_no_alarms_is_told_so_without_blame() -> None:
    found = only(alarms(sight(session("a"))))
    assert (found.level, found.detail) == ("OK", "no node looks for them; scheduler.alarms(...) does")


def test_what_is_open_and_silenced_is_counted() -> None:
    quiet = silence(Absent(Kind.ALARM, document_of("b*")), Silence(what="b*", until=NOW + SECOND, at=0)).doc
    docs = (turn(10), opened("a"), opened("b"), opened("c", info=True), quiet)
    found = only(alarms(sight(session("a"), alarms=docs)))
    assert found.level == "OK"
    assert found.detail == "web-1 looked 10 s ago: 1 open, 1 silenced, 1 for information"


def test_nodes_that_have_stopped_looking_are_a_warning() -> None:
    found = only(alarms(sight(session("a"), alarms=(turn(301),))))
    assert found.level == "WARN"
    assert found.detail == "no node has looked for 301 s; it should be every 30 s"
    assert only(alarms(sight(alarms=(turn(301),)))).level == "OK", "without a node `nodes` says so"
    assert only(alarms(sight(session("a"), alarms=(turn(299),)))).level == "OK"


@pytest.mark.parametrize(
    ("delivery", "ago", "level"),
    [
        (Delivery.DONE, 600, "OK"),
        (Delivery.REFUSED, 1, "WARN"),
        (Delivery.DOUBTFUL, 1, "WARN"),
        (Delivery.UNKNOWN, 600, "WARN"),
        (Delivery.UNKNOWN, 60, "OK"),
    ],
)
def test_a_message_that_may_not_have_arrived_is_a_warning(delivery: Delivery, ago: float, level: str) -> None:
    found = only(alarms(sight(session("a"), alarms=(turn(10), message(delivery, ago)))))
    assert found.level == level
    if level == "WARN":
        assert found.detail.startswith("late was told at 20")
        assert found.remedy is not None
