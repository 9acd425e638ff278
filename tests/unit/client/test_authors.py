"""Who did it, and why: kept with the run, the job or the records, and read back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from solocron import InvalidError, JobSpec, Run, Scheduler, every
from solocron.model.change import Change, Kind
from solocron.stores.contract import Named
from solocron.testing.clock import ManualClock


@every("1h", retries=1)
def work(run: Run) -> None:
    if run.payload == "broken" and run.attempt == 1:
        raise ValueError(run.payload)


FAILING: list[bool] = []
SPEC = JobSpec("data", "work", "0 3 * * *")


@every("1h")
def flaky() -> None:
    if FAILING:
        raise ValueError("as told")


def started(clock: ManualClock) -> Scheduler:
    scheduler = clock.scheduler(work)
    scheduler.tick()
    clock.advance("3h")
    scheduler.tick()
    return scheduler


def test_a_trigger_says_who_asked_for_it_while_it_waits_in_each_attempt_and_on_record() -> None:
    clock = ManualClock()
    scheduler = started(clock)
    run = scheduler.trigger("work", "broken", by="ana", note="the file came late")
    assert (scheduler.get_run(run).asked_by, scheduler.get_run(run).note) == ("ana", "the file came late")
    scheduler.tick()
    assert scheduler.get_run(run).status == "waiting", "for its second attempt"
    assert scheduler.get_run(run).asked_by == "ana"
    clock.advance("1m")
    scheduler.tick()
    attempts = scheduler.open().attempts(run)
    assert [(one.status, one.asked_by, one.note) for one in attempts] == [
        ("failed", "ana", "the file came late"),
        ("succeeded", "ana", "the file came late"),
    ]
    assert {one.asked_by for one in scheduler.runs("work") if one.origin == "schedule"} == {None}


def test_a_trigger_of_a_transaction_says_it_too() -> None:
    scheduler = started(ManualClock())
    client = scheduler.open()
    document = client.request("work", by="ana", note="from the form")
    client.store.update(Named(Kind.REQUEST, (document.name,)), lambda doc, now: Change(document))
    (ran,) = scheduler.tick()
    assert (ran.asked_by, ran.note) == ("ana", "from the form")


def test_a_rerun_and_a_backfill_say_who_asked() -> None:
    clock = ManualClock()
    scheduler = started(clock)
    slot = scheduler.runs("work", status="succeeded")[0].slot
    again = scheduler.rerun("work", slot, by="bo", note="new rates")
    scheduler.tick()
    assert (scheduler.get_run(again).asked_by, scheduler.get_run(again).note) == ("bo", "new rates")
    view = scheduler.backfill("work", clock.now - timedelta(hours=3), clock.now, by="cy", note="audit")
    assert (view.asked_by, view.note) == ("cy", "audit")
    (under_way,) = scheduler.backfills()
    assert (under_way.asked_by, under_way.note) == ("cy", "audit")
    scheduler.tick()
    ran = [one for one in scheduler.runs("work", limit=200) if one.origin == "backfill"]
    assert ran
    assert {(one.asked_by, one.note) for one in ran} == {("cy", "audit")}


def test_a_cancelled_run_says_who_stopped_it() -> None:
    clock = ManualClock()
    scheduler = started(clock)
    run = scheduler.trigger("work", at=clock.now + timedelta(hours=5), by="ana")
    assert scheduler.cancel(run, by="bo", note="not needed") == "cancelled"
    over = scheduler.get_run(run)
    assert (over.reason, over.asked_by) == ("cancelled by bo: not needed", "ana")
    other = scheduler.trigger("work", at=clock.now + timedelta(hours=5))
    scheduler.cancel(other)
    assert scheduler.get_run(other).reason == "cancelled by request"


def test_a_resume_says_who_resumed_with_the_slots_that_were_skipped() -> None:
    clock = ManualClock()
    scheduler = started(clock)
    scheduler.pause("work", by="ana", note="audit")
    clock.advance("2h")
    scheduler.resume("work", by="bo", note="done")
    (skipped,) = scheduler.runs("work", status="skipped")
    assert skipped.reason == "paused: audit; resumed by bo: done"


def test_a_resume_is_kept_with_the_job_although_no_slot_was_skipped() -> None:
    clock = ManualClock()
    scheduler = started(clock)
    assert scheduler.get_job("work").resumed_at is None
    scheduler.pause("work", by="ana", note="audit")
    clock.advance("1m")
    view = scheduler.resume("work", by="bo", note="done")
    assert scheduler.runs("work", status="skipped") == []
    assert (view.resumed_at, view.resumed_by, view.resumed_note) == (clock.now, "bo", "done")
    clock.advance("2h")
    scheduler.tick()
    assert scheduler.get_job("work").resumed_by == "bo", "claims and ends leave it"
    before = clock.now
    scheduler.resume("work", by="cy")
    assert scheduler.get_job("work").resumed_by == "bo", "it was not paused"
    scheduler.pause("work")
    scheduler.resume("work")
    found = scheduler.get_job("work")
    assert (found.resumed_at, found.resumed_by, found.resumed_note) == (before, None, None)


def test_a_job_as_data_says_who_added_and_who_removed_it() -> None:
    clock = ManualClock()
    scheduler = started(clock)
    view = scheduler.add("data", "work", "0 3 * * *", by="ana", note="ticket 7")
    assert (view.defined_by, view.defined_note) == ("ana", "ticket 7")
    assert scheduler.add("data", "work", "0 4 * * *", by="bo").defined_note is None
    assert scheduler.get_job("work").defined_by is None
    run = scheduler.trigger("data", at=clock.now + timedelta(hours=5))
    scheduler.remove("data", by="cy", note="old")
    assert scheduler.get_run(run).reason == "the job was removed by cy: old"


def test_many_jobs_as_data_say_who_added_changed_and_removed_them() -> None:
    clock = ManualClock()
    scheduler = started(clock)
    specs = [JobSpec(f"data:{number}", "work", "0 3 * * *") for number in range(3)]
    assert len(scheduler.add_all(specs, by="ana", note="ticket 7")) == 3
    assert authors_of_data(scheduler) == [("ana", "ticket 7")] * 3
    scheduler.add_all([JobSpec("data:0", "work", "0 4 * * *"), *specs[1:]], by="bo")
    assert authors_of_data(scheduler) == [("bo", None), *[("ana", "ticket 7")] * 2], (
        "what is so already keeps its author"
    )
    removed = {name: scheduler.trigger(name, at=clock.now + timedelta(hours=5)) for name in ("data:1", "data:2")}
    scheduler.remove_all(["data:1"], by="cy", note="old")
    assert scheduler.get_run(removed["data:1"]).reason == "the job was removed by cy: old"
    new = JobSpec("data:new", "work", "0 5 * * *")
    scheduler.sync([new], within="data:", by="di", note="release 8")
    assert authors_of_data(scheduler) == [("di", "release 8")]
    assert scheduler.get_run(removed["data:2"]).reason == "the job was removed by di: release 8"


def authors_of_data(scheduler: Scheduler) -> list[tuple[str | None, str | None]]:
    return [(one.defined_by, one.defined_note) for one in scheduler.jobs() if one.name.startswith("data")]


def test_a_backfill_with_the_same_key_is_one_backfill() -> None:
    clock = ManualClock()
    scheduler = started(clock)
    start, end = clock.now - timedelta(hours=3), clock.now
    first = scheduler.backfill("work", start, end, key="k")
    assert scheduler.backfill("work", start, end, key="k").id == first.id
    assert len(scheduler.backfills()) == 1
    while scheduler.tick():
        pass
    ran = [one for one in scheduler.runs("work", limit=200) if one.origin == "backfill"]
    assert len(ran) == first.total
    over = scheduler.backfill("work", start, end, key="k")
    assert (over.id, over.waiting, over.done, over.total) == (first.id, 0, first.total, first.total)
    for number in range(40):  # the job has forgotten the request by then, the log has not
        scheduler.trigger("work", key=f"other {number}")
    while scheduler.tick():
        pass
    assert scheduler.backfill("work", start, end, key="k").waiting == 0
    assert scheduler.backfills() == []
    assert scheduler.backfill("work", start, end, key="another").waiting == first.total


def past(clock: ManualClock) -> Scheduler:
    """Of the slots at 1 to 4 o'clock the second was skipped and the third failed; the others ran well."""
    scheduler = clock.scheduler(flaky)
    scheduler.tick()
    clock.advance("1h")
    scheduler.tick()
    scheduler.pause("flaky")
    clock.advance("1h")
    scheduler.resume("flaky")
    FAILING.append(True)
    clock.advance("1h")
    scheduler.tick()
    FAILING.clear()
    clock.advance("1h")
    scheduler.tick()
    statuses = [run.status for run in reversed(scheduler.runs("flaky"))]
    assert statuses == ["succeeded", "skipped", "failed", "succeeded"]
    return scheduler


@pytest.mark.parametrize(("only", "hours"), [("all", [1, 2, 3, 4]), ("missed", [2]), ("not_well", [2, 3])])
def test_a_backfill_runs_all_what_did_not_run_or_what_did_not_succeed(only: Any, hours: list[int]) -> None:
    clock = ManualClock()
    scheduler = past(clock)
    midnight = clock.now - timedelta(hours=4)
    clock.advance("1s")
    start, end = midnight + timedelta(minutes=1), clock.now
    counted = scheduler.backfill("flaky", start, end, only=only, dry_run=True)
    made = scheduler.backfill("flaky", start, end, only=only, key="k")
    assert (made.total, counted.total, counted.id) == (len(hours), len(hours), None)
    (under_way,) = scheduler.backfills()
    assert (under_way.id, under_way.total, under_way.waiting) == (made.id, len(hours), len(hours))
    while scheduler.tick():
        pass
    ran = sorted(run.slot for run in scheduler.runs("flaky", limit=99) if run.origin == "backfill")
    assert [(slot - midnight) // timedelta(hours=1) for slot in ran] == hours
    assert scheduler.backfill("flaky", start, end, only=only, key="k").done == len(hours), "the same backfill"
    if only != "all":
        nothing = scheduler.backfill("flaky", start, end, only=only)
        assert (nothing.id, nothing.total) == (None, 0), "by now all of it has run well"
        assert scheduler.backfills() == []


def test_a_backfill_of_what_did_not_succeed_has_pieces_a_limit_and_one_id() -> None:
    clock = ManualClock()
    scheduler = clock.scheduler(flaky)
    scheduler.tick()
    for number in range(8):
        FAILING[:] = [True] if number % 2 else []
        clock.advance("1h")
        scheduler.tick()
    FAILING.clear()
    start, end = clock.now - timedelta(hours=8), clock.now
    made = scheduler.backfill("flaky", start, end, only="not_well", limit=2)
    assert made.total == 2, "the newest two that lie before the end"
    assert scheduler.cancel(str(made.id)) == "cancelled"
    assert scheduler.backfills() == []
    assert scheduler.backfill("flaky", start, end, only="not_well", rate="60/m").total == 3 + 1


def test_what_a_backfill_cannot_choose_is_refused() -> None:
    clock = ManualClock()
    scheduler = started(clock)
    wrong: Any = "failed"
    with pytest.raises(InvalidError, match=r"choose from all, missed, not_well\. Nothing was asked for"):
        scheduler.backfill("work", clock.now - timedelta(hours=2), clock.now, only=wrong)
    assert scheduler.backfills() == []


def test_the_async_face_passes_it_on() -> None:
    clock = ManualClock()
    scheduler = started(clock)

    async def app() -> None:
        aio = scheduler.aio
        run = await aio.trigger("work", at=clock.now + timedelta(hours=5), by="ana", note="n")
        assert (await aio.get_run(run)).asked_by == "ana"
        await aio.cancel(run, by="bo")
        assert (await aio.get_run(run)).reason == "cancelled by bo"
        view = await aio.backfill("work", clock.now - timedelta(hours=2), clock.now, key="k", by="cy", note="n")
        assert view.asked_by == "cy"
        assert (await aio.add("data", "work", "0 3 * * *", by="ana")).defined_by == "ana"
        await aio.remove("data", by="ana", note="n")
        spec = JobSpec("data", "work", "0 3 * * *")
        await aio.add_all([spec], by="bo")
        assert (await aio.get_job("data")).defined_by == "bo"
        await aio.remove_all(["data"], by="ana", note="n")
        await aio.sync([spec], within="data", by="cy", note="n")
        assert (await aio.get_job("data")).defined_by == "cy"
        await aio.pause("work")
        await aio.resume("work", by="ana", note="n")

    asyncio.run(app())


@pytest.mark.parametrize("author", [{"by": "x" * 201}, {"by": 7}, {"note": "x" * 501}, {"note": ["a"]}])
@pytest.mark.parametrize(
    ("call", "undone"),
    [
        (lambda s, now, **a: s.trigger("work", **a), "nothing was triggered"),
        (lambda s, now, **a: s.cancel("work@1", **a), "nothing was cancelled"),
        (lambda s, now, **a: s.resume("work", **a), "nothing was resumed"),
        (lambda s, now, **a: s.rerun("work", failed_since=now, **a), "nothing was asked for"),
        (lambda s, now, **a: s.backfill("work", now - timedelta(hours=2), now, **a), "nothing was asked for"),
        (lambda s, now, **a: s.add("data", "work", "0 3 * * *", **a), "nothing was added"),
        (lambda s, now, **a: s.remove("work", **a), "nothing was removed"),
        (lambda s, now, **a: s.add_all([SPEC], **a), "nothing was changed"),
        (lambda s, now, **a: s.remove_all(["work"], **a), "nothing was removed"),
        (lambda s, now, **a: s.sync([SPEC], within="data", **a), "nothing was changed"),
        (lambda s, now, **a: s.pause("work", **a), "nothing was paused"),
        (lambda s, now, **a: s.pause_all(**a), "nothing was paused"),
        (lambda s, now, **a: s.resume_all(**a), "nothing was resumed"),
        (lambda s, now, **a: s.silence("work", until=now + timedelta(hours=1), **a), "nothing was silenced"),
    ],
)
def test_an_author_that_is_no_short_string_changes_nothing(
    call: Callable[..., Any], undone: str, author: dict[str, Any]
) -> None:
    clock = ManualClock()
    scheduler = started(clock)
    before = (scheduler.jobs(), scheduler.runs())
    with pytest.raises(InvalidError, match=undone):
        call(scheduler, clock.now, **author)
    assert (scheduler.jobs(), scheduler.runs()) == before
