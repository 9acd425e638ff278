"""A span in lanes: attempts, takeovers with both fences, refused results, slots to come; bounded by a limit."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from solocron import InvalidError
from solocron.client import Client
from solocron.clock import SECOND, from_us
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Pause, WaitingRun
from solocron.model.documents.offer import Offer
from solocron.model.documents.run import Origin, Status
from solocron.model.documents.session import Life, RefusedEnd, SelfReport, Session
from solocron.stores.contract import Store
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import hold, job, put, record, session
from solocron.views import TimelineView

MINUTE = 60 * SECOND
HOURLY = Definition(handler="h", schedule={"kind": "every", "period": "1h"})


def node(name: str, now: int, *, began: int, **more: Any) -> Session:
    made = session(f"{name}-session", expires_at=more.pop("expires_at", now + 10 * SECOND), **more)
    return replace(made, node=name, started_at=began)


def attempt(run: str, number: int, by: str, begun: int, end: int, *, fence: int, status: Status) -> Any:
    return record(run, attempt=number, at=end, status=status, node=by, fence=fence, claimed_at=begun, started_at=begun)


def story(store: Store) -> int:
    """Node c is frozen during a run, a takes it over, and c wakes up too late; a runs another one now."""
    now = store.clock()
    lost = attempt("j@1", 1, "c", now - 30 * MINUTE, now - 20 * MINUTE, fence=7, status=Status.LOST)
    again = attempt("j@1", 2, "a", now - 20 * MINUTE, now - 15 * MINUTE, fence=8, status=Status.SUCCEEDED)
    skipped = record("j@0", attempt=0, at=now - 10 * MINUTE, status=Status.SKIPPED)
    running: Hold = replace(hold("k@1", "a-session", fence=9), claimed_at=now - MINUTE, node="a")
    put(store, job("j"), records=(lost, again, skipped))
    put(store, job("k", definition=HOURLY, active=(running,), due_at=now + 20 * MINUTE))
    put(store, job("off", definition=HOURLY, paused=Pause(at=1), due_at=now + 20 * MINUTE))
    refused = RefusedEnd(run="j@1", fence=7, at=now - 5 * MINUTE, outcome="succeeded")
    dead = node("c", now, began=now - 50 * MINUTE, state=Life.SWEPT, ended_at=now - 20 * MINUTE)
    put(store, node("a", now, began=now - 40 * MINUTE))
    put(store, replace(dead, buried_by="a", report=SelfReport(refused=(refused,))))
    put(store, node("old", now, began=1, state=Life.SWEPT, ended_at=now - 90 * MINUTE))
    return now


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Store:
    return make_store(f"memory://{request.node.name}")


def read(store: Store, now: int, *, back: int = 60, ahead: int = 70, **more: Any) -> TimelineView:
    return Client(store).timeline(from_us(now - back * MINUTE), from_us(now + ahead * MINUTE), **more)


def test_each_node_of_the_span_has_a_lane_with_its_attempts(store: Store) -> None:
    found = read(store, story(store))
    assert [(lane.name, lane.state) for lane in found.lanes] == [("a", "live"), ("c", "ended")]
    bars = {lane.name: [(bar.run, bar.attempt, bar.status, bar.fence) for bar in lane.bars] for lane in found.lanes}
    assert bars == {"a": [("j@1", 2, "succeeded", 8), ("k@1", 1, "running", 9)], "c": [("j@1", 1, "lost", 7)]}


def test_a_takeover_has_both_nodes_and_both_fences(store: Store) -> None:
    now = story(store)
    found = read(store, now)
    (one,) = found.takeovers
    assert (one.run, one.lost_by, one.lost_fence, one.taken_by, one.taken_fence) == ("j@1", "c", 7, "a", 8)
    assert (one.lost_at, one.taken_at) == (from_us(now - 20 * MINUTE),) * 2
    assert [bar.taken_from for bar in found.lanes[0].bars] == [7, None]


def test_the_marks_of_a_node_are_its_begin_its_last_renewal_its_burial_and_what_was_refused(store: Store) -> None:
    now = story(store)
    marks = read(store, now).lanes[1].marks
    assert sorted(mark.kind for mark in marks) == ["began", "buried", "refused", "renewed"]
    told = next(mark for mark in marks if mark.kind == "refused")
    assert (told.run, told.fence, told.outcome, told.at) == ("j@1", 7, "succeeded", from_us(now - 5 * MINUTE))
    assert next(mark.by for mark in marks if mark.kind == "buried") == "a"
    assert {mark.session for mark in marks} == {"c-session"}


def test_slots_to_come_are_those_of_jobs_that_run(store: Store) -> None:
    now = story(store)
    coming = read(store, now).to_come
    assert {one.job for one in coming} == {"k"}
    assert all(from_us(now) < one.slot < from_us(now + 70 * MINUTE) for one in coming)
    assert read(store, now, ahead=0).to_come == ()


def test_lanes_by_job(store: Store) -> None:
    found = read(store, story(store), lanes="job")
    assert [(lane.name, len(lane.bars), lane.marks) for lane in found.lanes] == [("j", 2, ()), ("k", 1, ())]


def test_an_attempt_across_the_end_of_a_past_span_is_shown(store: Store) -> None:
    now = story(store)
    found = read(store, now, back=40, ahead=-17)
    assert [(bar.run, bar.status) for lane in found.lanes for bar in lane.bars] == [
        ("j@1", "succeeded"),
        ("j@1", "lost"),
    ]


def test_more_attempts_than_the_limit_are_counted(store: Store) -> None:
    now = store.clock()
    many = tuple(
        attempt(f"j@{n}", 1, "a", now - n * SECOND - 1, now - n * SECOND, fence=n, status=Status.SUCCEEDED)
        for n in range(1, 301)
    )
    put(store, job("j"), records=many)
    found = read(store, now, limit=50)
    assert sum(len(lane.bars) for lane in found.lanes) == 50
    assert sum(sum(one.counts.values()) for one in found.dense) == 250
    assert {one.node for one in found.dense} == {"a"}
    first = min(bar.end for lane in found.lanes for bar in lane.bars if bar.end is not None)
    assert all(found.start <= one.start < one.end <= first for one in found.dense)
    long = read(store, now, back=8 * 60, limit=50)
    assert {one.node for one in long.dense} == {None}
    assert sum(sum(one.counts.values()) for one in long.dense) == 250


def test_it_costs_a_few_statements(store: Store) -> None:
    now = story(store)
    client = Client(store)
    before = store.statements.total()
    client.timeline(from_us(now - 60 * MINUTE), from_us(now + 60 * MINUTE))
    assert store.statements.total() - before <= 10


@pytest.mark.parametrize(
    ("start", "end", "more", "said"),
    [
        (timedelta(), timedelta(), {}, "not one of up to 7 days"),
        (timedelta(days=-8), timedelta(), {}, "not one of up to 7 days"),
        (timedelta(hours=-1), timedelta(), {"lanes": "pool"}, "choose 'node' or 'job'"),
        (timedelta(hours=-1), timedelta(), {"limit": 0}, "from 1 to 2000"),
        (timedelta(hours=-1), timedelta(), {"limit": 2_001}, "from 1 to 2000"),
    ],
)
def test_a_wrong_span_is_refused(store: Store, start: timedelta, end: timedelta, more: Any, said: str) -> None:
    now: datetime = from_us(store.clock())
    with pytest.raises(InvalidError, match=said):
        Client(store).timeline(now + start, now + end, **more)


def test_an_instant_without_a_zone_is_refused(store: Store) -> None:
    now = from_us(store.clock())
    with pytest.raises(InvalidError, match="no time zone"):
        Client(store).timeline((now - timedelta(hours=1)).replace(tzinfo=None), now)


def waiting(now: int) -> WaitingRun:
    offer = Offer(carrier="celery", since=now - 2 * MINUTE, until=now + MINUTE)
    return WaitingRun(run="q@1", slot=now - 3 * MINUTE, origin=Origin.SCHEDULE, ready_at=now + MINUTE, offer=offer)


def test_a_message_that_waits_is_in_the_lane_of_its_queue(store: Store) -> None:
    """Below the live nodes and above the dead ones; in lanes by job it is in that of its job."""
    now = story(store)
    put(store, job("q", definition=replace(HOURLY, run_in="celery", hand_over={}), waiting_runs=(waiting(now),)))
    lanes = read(store, now).lanes
    assert [(lane.name, lane.state) for lane in lanes] == [("a", "live"), ("celery", "queue"), ("c", "ended")]
    (bar,) = lanes[1].bars
    assert (bar.job, bar.status, bar.node, bar.start, bar.end) == (
        "q",
        "offered",
        None,
        from_us(now - 3 * MINUTE),
        None,
    )
    (lane,) = (lane for lane in read(store, now, lanes="job").lanes if lane.name == "q")
    assert [bar.status for bar in lane.bars] == ["offered"]
