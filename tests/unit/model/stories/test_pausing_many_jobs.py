"""A pause of many jobs at once: what it keeps back, what it leaves a record of, and what starts once it is lifted."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.model._fast.claim import ordinary
from solocron.model._fast.values import replace
from solocron.model.change import Change
from solocron.model.timetable import Timetable
from solocron.model.transitions import backfill, claiming, rejoin
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import Later, Needs
from solocron.schedules import Every
from solocron.schedules.calendar import Calendar, Calendared
from tests.unit.model.one_job import LATE_FOR, T0, OneJob, resolve


def test_slots_within_it_are_skipped_as_they_come_and_say_why() -> None:
    job = OneJob("1m").at(30)
    job.pause_many(note="moving the database")
    assert job.at(60).run_all() == []
    assert job.at(180).run_all() == []
    job.at(190).lift()
    assert job.at(240).run_all() == [240]
    assert job.covered("skipped") == [(60, 60, 1), (120, 180, 2)]
    assert set(job.reasons("skipped")) == {"paused (all jobs): moving the database"}


@pytest.mark.parametrize("catch_up", ["skip", "latest", "all"])
def test_slots_that_no_node_saw_are_skipped_too_and_never_caught_up(catch_up: str) -> None:
    """Every node was down during the pause, as in a move of the database."""
    job = OneJob("1m", catch_up=catch_up).at(30)
    job.pause_many("pool", "default", note="move")
    job.at(3600).lift("pool", "default")
    assert job.at(3600 + 120).run_all() == ([3720] if catch_up == "skip" else [3660, 3720])
    assert job.covered("skipped") == [(60, 3600, 60)]
    assert job.reasons("skipped") == ["paused (pool default): move"]


def test_slots_before_it_are_decided_as_if_they_had_been_then() -> None:
    job = OneJob("1m", catch_up="latest").at(190)
    job.pause_many()
    assert job.at(600).run_all() == []
    assert job.covered("missed") == [(60, 60, 1)], "late at most 25 s before the pause"
    assert job.covered("skipped") == [(240, 600, 7)]
    assert all(record.recorded_at == T0 + 600 * SECOND for record in job.log.values())
    job.at(610).lift()
    assert job.run_all() == [120, 180]


def test_it_may_end_by_itself() -> None:
    job = OneJob("1m").at(30)
    job.pause_many("match", "wo*", until=150)
    assert job.at(60).run_all() == []
    assert job.at(180).run_all() == [180]
    assert job.covered("skipped") == [(60, 60, 1), (120, 120, 1)]


@pytest.mark.parametrize(("reach", "value"), [("pool", "other"), ("match", "x*"), ("match", "WORK")])
def test_jobs_out_of_its_scope_run(reach: str, value: str) -> None:
    job = OneJob("1m").at(30)
    job.pause_many(reach, value)
    assert job.at(60).run_all() == [60]


def test_of_several_each_covers_its_own_time() -> None:
    job = OneJob("1m").at(30)
    job.pause_many(note="a")
    job.at(90).pause_many("match", "work", note="b")
    job.at(130).lift()
    assert job.at(180).run_all() == []
    job.at(190).lift("match", "work")
    assert job.at(240).run_all() == [240]
    assert job.reasons("skipped") == ["paused (all jobs): a", "paused (jobs matching work): b"]
    assert job.covered("skipped") == [(60, 120, 2), (180, 180, 1)]


def test_an_attempt_that_is_due_waits_until_it_is_lifted() -> None:
    """As with a job's own pause."""
    job = OneJob("1h", retries=1).at(3600)
    job.fail(job.claims())
    job.pause_many()
    job.at(3700)
    before = job.job
    assert isinstance(job.claim(), Later)
    assert job.job is before, "a look at a paused job writes nothing"
    job.at(3800).lift()
    assert job.claims().attempt == 2


def test_shards_that_have_not_begun_wait() -> None:
    job = OneJob("1h", shards=3).at(3600)
    first = job.claims()
    job.pause_many()
    assert isinstance(job.claim("b"), Later)
    assert job.finish(first) == "accepted"
    job.at(3700).lift()
    assert len(job.run_all()) == 2


def test_what_a_person_asks_for_runs_unless_the_pause_says_otherwise() -> None:
    job = OneJob("1h").at(30)
    job.pause_many()
    job.trigger("by hand")
    assert job.run_all() == [30]
    job.pause_many(triggers=True)
    job.at(40).trigger("once more")
    assert isinstance(job.claim(), Later)
    job.at(50).lift()
    assert job.run_all() == [40]


def test_a_backfill_waits() -> None:
    job = OneJob("1m").at(60)
    job.run_all()
    job.pause_many()
    job.apply(
        lambda doc: backfill.backfill(
            doc, start=T0, end=T0 + 61 * SECOND, limit=None, pace=None, request="r", now=job.now, resolve=job.by
        )
    )
    assert isinstance(job.claim(), Later)
    job.at(70).lift()
    assert job.run_all() == [0, 60]


def test_a_job_for_every_node_asks_for_no_sessions_while_it_is_paused() -> None:
    job = OneJob("1m", nodes="all").at(30)
    job.pause_many()
    assert job.at(60).claim() is None
    job.at(90).lift()
    assert job.at(120).claim() == Needs(sessions=True)


def test_what_runs_goes_on_and_its_queued_slot_starts_after_it() -> None:
    job = OneJob("1m", overlap="queue").at(60)
    running = job.claims()
    assert job.at(120).claim() is None
    job.at(130).pause_many()
    assert job.at(180).claim() is None
    assert job.finish(running) == "accepted"
    assert isinstance(job.claim(), Later)
    job.at(200).lift()
    assert job.run_all() == [120]
    assert job.covered("skipped") == [(180, 180, 1)]


def test_a_slot_that_a_client_decided_without_knowing_of_the_pause_is_skipped_all_the_same() -> None:
    job = OneJob("1m").at(30)
    job.pause_many(note="n")
    known, job.pauses = job.pauses, ()
    job.at(60).define("2m")
    job.pauses = known
    assert isinstance(job.claim(), Later)
    job.at(70).lift()
    assert job.run_all() == []
    assert job.covered("skipped") == [(60, 60, 1)]
    assert job.at(120).run_all() == [120]


@pytest.mark.parametrize("verb", ["define", "pause", "remove"])
def test_whatever_else_decides_slots_skips_those_of_the_pause(verb: str) -> None:
    job = OneJob("1m", catch_up="all").at(30)
    job.pause_many()
    job.at(300)
    {"define": lambda: job.define("7m"), "pause": job.pause, "remove": job.remove}[verb]()
    assert job.ended() == [(300, "skipped")]


@pytest.mark.parametrize("retries", [0, 1])
def test_slots_of_the_pause_are_not_written_off_after_the_store_went_back(retries: int) -> None:
    job = OneJob("1m", retries=retries).at(70)
    job.pause_many()
    job.at(300)
    until, late_for = T0 + 200 * SECOND, LATE_FOR * SECOND
    job.apply(
        lambda doc: rejoin.write_off(
            doc, until=until, late_for=late_for, now=job.now, resolve=job.by, pauses=job.pauses
        )
    )
    assert job.covered("skipped") == [(120, 180, 2)]
    assert job.covered("lost") == [(60, 60, 1)]


HOUR = 3600
SHUT = Calendar.make("bank", 1, frozenset({5, 6}), {date(2026, 1, 5): "shut", date(2026, 1, 7): "shut"})


def six_hourly() -> OneJob:
    """A job every six hours whose first and third days are days off."""
    slots = Timetable(Calendared(Every("6h"), SHUT))
    spec = {"kind": "every", "period": "6h", "calendar": SHUT.name, "on_holiday": "skip"}
    job = OneJob("6h", by=lambda _: slots)
    job.apply(lambda _: Change(replace(job.job, definition=replace(job.job.definition, schedule=spec))))
    return job


def test_days_off_before_it_are_on_record_although_no_slot_lay_between() -> None:
    job = six_hourly().at(13 * HOUR)
    job.pause_many()
    assert job.at(24 * HOUR).run_all() == []
    assert sorted(job.covered("skipped")) == [(6 * HOUR, 18 * HOUR, 3), (24 * HOUR, 24 * HOUR, 1)]


@pytest.mark.parametrize(
    ("until", "lost", "skipped"),
    [(13, [], [(6, 66, 7)]), (50, [(24, 42, 4)], [(6, 18, 3), (48, 66, 4)])],
    ids=["no slot was due", "slots before a day off were due"],
)
def test_days_off_are_recorded_once_after_the_store_went_back(
    until: int, lost: list[tuple[int, int, int]], skipped: list[tuple[int, int, int]]
) -> None:
    def in_hours(status: str) -> list[tuple[float, float, int]]:
        return [(first / HOUR, last / HOUR, count) for first, last, count in job.covered(status)]

    job = six_hourly().at(until * HOUR)
    job.apply(lambda _: Change(replace(job.job, due_at=T0)))
    job.apply(lambda doc: rejoin.write_off(doc, until=job.now, late_for=LATE_FOR * SECOND, now=job.now, resolve=job.by))
    assert in_hours("lost") == lost
    job.at(72 * HOUR).run_all()
    assert in_hours("skipped") == skipped


@pytest.mark.parametrize("options", [{}, {"overlap": "queue"}, {"catch_up": "all"}])
def test_the_short_way_is_taken_again_once_it_is_over(options: dict[str, Any]) -> None:
    job = OneJob("1m", **options).at(30)
    job.pause_many(until=70)
    assert job.at(60).run_all() == []
    job.at(120)
    who = Claimant(session="s", node="n", late_for=LATE_FOR * SECOND, pauses=job.pauses)
    slots = resolve(job.job.definition.schedule)
    assert ordinary(job.job, slots, now=job.now, by=who) is None, "the pause ended after the cursor"
    job.finish(job.claims())
    job.at(180)
    short = ordinary(job.job, slots, now=job.now, by=who)
    assert short is not None
    assert short == claiming._claim(job.job, slots, now=job.now, by=who, resolve=resolve)
