"""What jobs keep beside their slots, on every store: calendars in their revisions, paced ranges, pauses."""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from solocron import Run, Scheduler, catch_up_all
from solocron.clock import from_us

STORES = ["sqlite", "postgres", "mariadb", "redis_server", pytest.param("valkey", marks=pytest.mark.long)]


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/solocron.db"
    found: str = request.getfixturevalue(request.param).fresh_url()
    return found


def test_a_calendar_is_kept_in_revisions_and_followed_by_its_jobs(url: str) -> None:
    scheduler, other = Scheduler(url), Scheduler(url)
    today = from_us(scheduler.open().store.clock()).date()
    made = scheduler.calendar("bank", weekend=(), holidays={today: "größer als \U0001f552", date(2030, 5, 1): "x"})
    assert made.revision == 1
    ran: list[datetime] = []
    scheduler.every("1s", name="every", calendar="bank")(lambda run: ran.append(run.slot))
    scheduler.tick()
    assert [slot.date() > today for slot in scheduler.upcoming("every", 2)] == [True, True]
    assert other.calendar("bank", weekend=()).jobs == ("every",)
    assert other.upcoming("every", 1)[0].date() == from_us(other.open().store.clock()).date()
    (seen,) = scheduler.calendars()
    assert (seen.revision, dict(seen.holidays), seen.jobs) == (2, {}, ("every",))
    for one in (scheduler, other):
        one.stop()


def test_a_rate_survives_in_the_document(url: str) -> None:
    scheduler = Scheduler(url)
    ran: list[datetime] = []
    scheduler.every("1s", name="every", catch_up=catch_up_all(rate="1/d"))(lambda run: ran.append(run.slot))
    scheduler.tick()
    ran.clear()  # a slot may have fallen due while it was declared
    scheduler.open().store.shift_clock(60_000_000)
    scheduler.tick()
    first = len(ran)
    assert scheduler.get_job("every").waiting > 0
    scheduler.tick()
    late = [slot for slot in ran if slot < datetime.now(UTC) + timedelta(seconds=30)]
    assert len(late) == 1, "one missed slot a day"
    assert len(ran) >= first
    scheduler.stop()


def test_a_pause_after_failures_is_written_with_the_outcome(url: str) -> None:
    scheduler = Scheduler(url)

    @scheduler.every("1d", name="fails", pause_after=1)
    def fails() -> None:
        raise ValueError("no")

    scheduler.tick()
    scheduler.trigger("fails")
    scheduler.tick()
    paused = scheduler.get_job("fails").paused
    assert paused is not None
    assert (paused.note or "").endswith("ValueError: no")
    scheduler.stop()


def test_a_backfill_and_a_rerun_go_through_every_store(url: str) -> None:
    scheduler = Scheduler(url)
    ran: list[tuple[datetime, str]] = []
    scheduler.every("1h", name="hourly")(lambda run: ran.append((run.slot, run.key)))
    scheduler.tick()
    now = from_us(scheduler.open().store.clock())
    made = scheduler.backfill("hourly", now - timedelta(hours=5), now)
    assert (made.total, scheduler.backfills()[0].id) == (5, made.id)
    scheduler.tick()
    assert len({slot for slot, _ in ran}) == 5
    assert scheduler.backfills() == []
    slot, key = ran[0]
    run = scheduler.rerun("hourly", slot, key="once")
    assert scheduler.rerun("hourly", slot, key="once") == run
    scheduler.tick()
    assert ran[-1] == (slot, key)
    assert scheduler.get_run(run).status == "succeeded"
    scheduler.stop()


def test_a_body_in_the_callers_thread_is_claimed_and_recorded_as_any_other(url: str) -> None:
    scheduler, mails = Scheduler(url, enabled=True), list[str]()

    @scheduler.every("1000d", limit="mail:1", retries=2, timeout="1m")
    def send(run: Run) -> int:
        with run.once(f"mail:{run.payload}") as first:
            if first:
                mails.append(run.payload)
        assert run.step("count").call(lambda: len(mails)) == len(mails)
        if run.payload == "fail":
            raise ValueError("no paper")
        return threading.get_ident()

    assert scheduler.run_now(send, "ada") == scheduler.run_now(send, "ada") == threading.get_ident()
    assert mails == ["ada"]
    with pytest.raises(ValueError, match="no paper"):
        scheduler.run_now(send, "fail")
    found = scheduler.runs("send")
    assert [view.status for view in found] == ["failed", "succeeded", "succeeded"]
    assert found[0].fence > found[1].fence > found[2].fence
    assert (scheduler.get_job("send").waiting, scheduler.limits()[0].taken, scheduler.nodes()) == (0, (), [])
    scheduler.stop()
