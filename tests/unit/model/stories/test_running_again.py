"""Rerun one slot, or backfill a range of the past: new runs with the slots and keys of old, and live slots go first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from solocron import ConflictError, InvalidError, NotFoundError, Run, Scheduler
from solocron.clock import SECOND, to_us
from solocron.model.documents.job import WaitingRange
from solocron.model.documents.run import Origin
from solocron.model.policy import allow
from solocron.model.transitions import backfill as again
from solocron.stores.memory import MemoryStore, World
from tests.unit.model.one_job import T0, OneJob, seconds

NOON = datetime(2027, 1, 4, 12, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)


def backfill(job: OneJob, start: float, end: float, request: str = "b1", **options: object) -> WaitingRange | str:
    how = {"limit": None, "pace": None, **options}
    answer: WaitingRange | str = job.apply(
        lambda doc: again.backfill(
            doc, start=T0 + round(start * SECOND), end=T0 + round(end * SECOND), request=request, now=job.now,
            resolve=job.by, **how,  # type: ignore[arg-type]
        )
    )  # fmt: skip
    return answer


# --- rerun -----------------------------------------------------------------------------------------------------------


class Shop:
    """An hourly job that fails when it is told to, and what it did."""

    def __init__(self) -> None:
        self.store = MemoryStore(world=World(clock=lambda: to_us(NOON)))
        self.scheduler = Scheduler(self.store)
        self.broken = False
        self.ran: list[tuple[datetime, str]] = []
        self.charged: list[str] = []

        @self.scheduler.every("1h", name="charge", overlap="queue-all")
        def charge(run: Run) -> None:
            self.ran.append((run.slot, run.key))
            if self.broken:
                raise ConnectionError("the bank is closed")
            with run.once(run.key) as claim:
                if claim:
                    self.charged.append(run.key)

        self.scheduler.tick()

    def hours(self, n: int) -> None:
        for _ in range(n):
            self.store.shift_clock(3_600 * SECOND)
            self.scheduler.tick()


def test_a_rerun_has_the_slot_and_the_key_of_the_first_so_that_effects_happen_once() -> None:
    shop = Shop()
    shop.hours(1)
    slot, key = shop.ran[0]
    run = shop.scheduler.rerun("charge", slot)
    shop.scheduler.tick()
    assert shop.ran == [(slot, key), (slot, key)]
    assert shop.charged == [key]
    again = shop.scheduler.get_run(run)
    assert (again.origin, again.status, again.slot) == ("rerun", "succeeded", slot)


def test_everything_that_failed_since_runs_again_and_nothing_else() -> None:
    shop = Shop()
    shop.hours(1)
    shop.broken = True
    shop.hours(3)
    shop.broken = False
    shop.hours(1)
    runs = shop.scheduler.rerun("charge", failed_since=NOON)
    assert len(runs) == 3
    shop.scheduler.tick()
    assert len(shop.charged) == 5
    assert shop.scheduler.rerun("charge", failed_since=NOON) == [], "what was mended has not failed"


def test_the_same_request_twice_is_one_rerun() -> None:
    shop = Shop()
    shop.hours(1)
    slot = shop.ran[0][0]
    first = shop.scheduler.rerun("charge", slot, key="ticket-7")
    shop.scheduler.tick()
    assert shop.scheduler.rerun("charge", slot, key="ticket-7") == first
    assert shop.scheduler.rerun("charge", slot, key="ticket-8") != first


def test_a_slot_that_is_not_on_record_or_not_over_is_refused() -> None:
    shop = Shop()
    shop.hours(1)
    slot = shop.ran[0][0]
    with pytest.raises(NotFoundError, match="no slot at 2027-01-04T13:07:00Z on record"):
        shop.scheduler.rerun("charge", slot + timedelta(minutes=7))
    shop.scheduler.rerun("charge", slot)
    with pytest.raises(ConflictError, match="still runs or waits"):
        shop.scheduler.rerun("charge", slot)
    with pytest.raises(InvalidError, match="give a slot, or failed_since="):
        shop.scheduler.rerun("charge")  # type: ignore[call-overload]
    with pytest.raises(InvalidError, match="no time zone"):
        shop.scheduler.rerun("charge", slot.replace(tzinfo=None))


# --- backfill --------------------------------------------------------------------------------------------------------


def test_a_backfill_is_counted_first_and_runs_every_slot_of_the_range() -> None:
    shop = Shop()
    shop.hours(1)
    start, end = NOON - 10 * HOUR, NOON
    counted = shop.scheduler.backfill("charge", start, end, dry_run=True)
    assert (counted.id, counted.total) == (None, 10)
    made = shop.scheduler.backfill("charge", start, end, limit=4)
    assert (made.total, made.done) == (4, 0)
    assert [view.id for view in shop.scheduler.backfills()] == [made.id]
    shop.scheduler.tick()
    assert [slot.hour for slot, _ in shop.ran] == [13, 9, 10, 11, 12]
    assert shop.scheduler.backfills("charge") == []
    origins = [view.origin for view in shop.scheduler.runs("charge")]
    assert sorted(origins) == ["backfill"] * 4 + ["schedule"]


def test_live_slots_go_first_and_are_never_skipped_for_a_backfill() -> None:
    """With overlap="skip": the slot that falls due while a run of the past is active waits for its end."""
    job = OneJob("1m", overlap="skip").at(3600)
    job.run_all()
    backfill(job, 0, 1800)
    past = job.claims("a")
    assert (past.origin, seconds(past.slot)) == (Origin.BACKFILL, 0)
    assert job.at(3660).claim("b") is None, "one run of a job at a time, as ever"
    job.finish(past)
    assert seconds(job.claims("b").slot) == 3660
    assert job.records("skipped") == []


def test_a_backfill_takes_half_of_what_a_job_allows_at_once() -> None:
    job = OneJob("1m", overlap=allow(4)).at(3600)
    job.run_all()
    backfill(job, 0, 1800)
    assert [job.claims("a").origin for _ in range(2)] == [Origin.BACKFILL] * 2
    assert job.claim("a") is None
    assert seconds(job.at(3660).claims("a").slot) == 3660


def test_a_rate_spreads_a_backfill() -> None:
    job = OneJob("1h").at(36_000)
    job.run_all()
    backfill(job, 0, 18_000, pace=60 * SECOND)
    assert job.run_all() == [0]
    assert job.at(36_059).claim() is None
    assert job.at(36_060).run_all() == [3600]


def test_a_backfill_waits_while_the_job_is_paused_and_goes_on_after_a_redefinition() -> None:
    job = OneJob("1h").at(36_000)
    job.run_all()
    backfill(job, 0, 10_800)
    job.pause()
    assert job.claim() is None
    job.resume()
    job.define("2h")
    assert job.run_all() == [0, 3600, 7200]


def test_a_backfill_can_be_cancelled() -> None:
    shop = Shop()
    made = shop.scheduler.backfill("charge", NOON - 10 * HOUR, NOON)
    assert made.id is not None
    assert shop.scheduler.cancel(made.id) == "cancelled"
    shop.scheduler.tick()
    assert shop.ran == []
    (told,) = shop.scheduler.runs("charge", status="cancelled")
    assert (told.count, told.origin) == (10, "backfill")


def test_what_is_too_much_or_nothing_is_refused() -> None:
    shop = Shop()
    with pytest.raises(InvalidError, match="more than 100000; nothing was asked for"):
        shop.scheduler.backfill("charge", NOON - timedelta(days=5000), NOON)
    with pytest.raises(NotFoundError, match="has no slot there"):
        shop.scheduler.backfill("charge", NOON - timedelta(minutes=10), NOON)
    with pytest.raises(InvalidError, match="is in the future"):
        shop.scheduler.backfill("charge", NOON, NOON + HOUR)
    with pytest.raises(InvalidError, match="is not a rate"):
        shop.scheduler.backfill("charge", NOON - HOUR, NOON, rate="fast")
    with pytest.raises(InvalidError, match="is not after start"):
        shop.scheduler.backfill("charge", NOON, NOON - HOUR)
