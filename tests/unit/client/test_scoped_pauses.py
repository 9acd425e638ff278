"""`pause_all` and `resume_all`: every job, a pool or matching names, through one document that every node reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from solocron import ConflictError, InvalidError, Scheduler, every
from solocron.model.change import Change, Kind
from solocron.model.documents.request import run_named
from solocron.stores.contract import Named
from solocron.testing.clock import ManualClock


@every("1h", name="invoice:monthly", pool="money")
def monthly() -> None: ...


@every("1h", name="invoice:daily")
def daily() -> None: ...


@every("1h", name="report")
def report() -> None: ...


def ticked(clock: ManualClock) -> Scheduler:
    """A scheduler of both pools whose jobs have run once."""
    scheduler = clock.scheduler(monthly, daily, report, pools=("default", "money"))
    scheduler.tick()
    clock.advance("1h")
    assert len(scheduler.tick()) == 3
    return scheduler


def ran(scheduler: Scheduler) -> list[str]:
    return sorted(run.job for run in scheduler.tick())


@pytest.mark.parametrize(
    ("scope", "runs"),
    [
        ({}, []),
        ({"pool": "money"}, ["invoice:daily", "report"]),
        ({"match": "invoice:*"}, ["report"]),
        ({"match": "nothing"}, ["invoice:daily", "invoice:monthly", "report"]),
    ],
)
def test_what_it_covers_is_skipped_with_the_note_until_it_is_lifted(scope: dict[str, Any], runs: list[str]) -> None:
    clock = ManualClock()
    scheduler = ticked(clock)
    made = scheduler.pause_all(**scope, by="ana", note="moving the database")
    assert (made.by, made.note, made.until, made.triggers) == ("ana", "moving the database", None, False)
    clock.advance("1h")
    assert ran(scheduler) == runs
    reasons = {run.reason for run in scheduler.runs(status="skipped")}
    assert reasons == ({f"paused ({made.scope}): moving the database"} if len(runs) < 3 else set())
    lifted = scheduler.resume_all(**scope, by="bo")
    assert lifted is not None
    assert lifted.scope == made.scope
    clock.advance("1h")
    assert len(ran(scheduler)) == 3, "nothing is made up for"
    assert scheduler.resume_all(**scope) is None


def test_it_covers_a_job_that_is_deployed_while_it_stands() -> None:
    clock = ManualClock()
    scheduler = ticked(clock)
    scheduler.pause_all()

    @every("1h", name="new")
    def new() -> None: ...

    later = clock.scheduler(new)
    later.tick()
    clock.advance("1h")
    assert later.tick() == []
    assert [run.status for run in later.runs("new")] == ["skipped"]


def test_several_stand_at_once_and_each_is_lifted_alone() -> None:
    clock = ManualClock()
    scheduler = ticked(clock)
    scheduler.pause_all(pool="money", note="a")
    clock.advance("1s")
    scheduler.pause_all(match="invoice:*", note="b")
    assert [one.scope for one in scheduler.pauses()] == ["pool money", "jobs matching invoice:*"]
    assert [one.note for one in scheduler.get_job("invoice:monthly").pauses] == ["a", "b"]
    assert [one.note for one in scheduler.status().pauses] == ["a", "b"]
    assert scheduler.get_job("invoice:daily").next is None
    scheduler.resume_all(match="invoice:*")
    clock.advance("1h")
    assert ran(scheduler) == ["invoice:daily", "report"]


def test_until_ends_it_without_anybody() -> None:
    clock = ManualClock()
    scheduler = ticked(clock)
    scheduler.pause_all(until=clock.now + timedelta(hours=2, minutes=30))
    clock.advance("2h")
    assert ran(scheduler) == []
    clock.advance("1h")
    assert len(ran(scheduler)) == 3
    assert scheduler.pauses() == []


def test_triggers_run_unless_they_were_paused_too() -> None:
    clock = ManualClock()
    scheduler = ticked(clock)
    scheduler.pause_all()
    scheduler.trigger("report")
    assert ran(scheduler) == ["report"]
    scheduler.pause_all(triggers=True)
    waits = scheduler.trigger("report")
    assert ran(scheduler) == []
    assert scheduler.get_run(waits).status == "waiting"
    assert scheduler.status().overdue == ()
    clock.advance("10m")
    assert scheduler.status().overdue == (), "it waits for the pause, not for a node"
    scheduler.resume_all()
    assert ran(scheduler) == ["report"]


def test_a_trigger_of_a_transaction_waits_too_if_triggers_were_paused() -> None:
    scheduler = ticked(ManualClock())
    client = scheduler.open()
    scheduler.pause_all(pool="default", triggers=True)
    left = client.request("report")
    client.store.update(Named(Kind.REQUEST, (left.name,)), lambda doc, now: Change(left))
    assert ran(scheduler) == []
    assert scheduler.get_run(run_named(left)).status == "waiting", "it was taken in, and is not lost"
    scheduler.resume_all(pool="default")
    assert ran(scheduler) == ["report"]


def test_nothing_is_caught_up_although_no_node_was_there() -> None:
    clock = ManualClock()
    scheduler = ticked(clock)
    scheduler.pause_all(note="all nodes are down")
    clock.advance("5h")
    scheduler.resume_all()
    assert ran(scheduler) == []
    assert {(run.count, run.reason) for run in scheduler.runs(status="skipped")} == {
        (5, "paused (all jobs): all nodes are down")
    }


def test_before_the_first_node_a_pause_stands_for_it() -> None:
    clock = ManualClock()
    scheduler = clock.scheduler(report)
    scheduler.pause_all()
    scheduler.tick()
    clock.advance("1h")
    assert scheduler.tick() == []
    assert [run.status for run in scheduler.runs("report")] == ["skipped"]


def test_the_async_face_does_the_same() -> None:
    clock = ManualClock()
    scheduler = ticked(clock)

    async def app() -> None:
        await scheduler.aio.pause_all(match="rep*", by="ana", note="n", triggers=True)
        (found,) = await scheduler.aio.pauses()
        assert (found.match, found.by, found.note, found.triggers) == ("rep*", "ana", "n", True)
        assert await scheduler.aio.resume_all(match="rep*") is not None
        assert await scheduler.aio.pauses() == []

    asyncio.run(app())


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (lambda now: {"pool": "a", "match": "b"}, "not both; nothing was paused"),
        (lambda now: {"pool": ""}, "pool='' cannot be used"),
        (lambda now: {"match": "a b"}, "without a space; nothing was paused"),
        (lambda now: {"match": 3}, "match=3 cannot be used"),
        (lambda now: {"note": "x" * 501}, "at most 500 characters; nothing was paused"),
        (lambda now: {"by": 1}, "by=1 cannot be used"),
        (lambda now: {"until": now.replace(tzinfo=None)}, "has no time zone; nothing was paused"),
        (lambda now: {"until": now - timedelta(hours=1)}, "is in the past; nothing was paused"),
    ],
)
def test_bad_input_changes_nothing(wanted: Callable[[datetime], dict[str, Any]], why: str) -> None:
    clock = ManualClock()
    scheduler = ticked(clock)
    with pytest.raises(InvalidError, match=r"(?s).*") as caught:
        scheduler.pause_all(**wanted(clock.now))
    assert why in str(caught.value)
    assert scheduler.pauses() == []


def test_more_pauses_than_may_stand_are_refused() -> None:
    scheduler = ticked(ManualClock())
    for number in range(100):
        scheduler.pause_all(pool=f"p{number}")
    with pytest.raises(ConflictError, match="all jobs was not paused; lift some of them first"):
        scheduler.pause_all()
    scheduler.pause_all(pool="p7", note="the same scope again is not one more")
    assert len(scheduler.pauses()) == 100
