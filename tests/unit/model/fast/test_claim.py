"""The ordinary claim goes the short way, and comes to what the long way comes to."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from solocron.clock import SECOND
from solocron.model._fast.claim import ordinary
from solocron.model._fast.values import replace
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job
from solocron.model.timetable import Timetable
from solocron.model.transitions import claiming
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import claim
from solocron.schedules import Cron, Schedule
from tests.unit.model.one_job import T0, OneJob, definition, resolve
from tests.unit.model.samples import jobs

WHO = Claimant(session="s", node="n", late_for=25 * SECOND)
ZONES = ("UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe")


def plain(wanted: Definition) -> Definition:
    """Without the policies that ask for more than a hold."""
    return replace(wanted, enabled=True, shards=None, nodes=None, prefer=None, limit=None)


idle = jobs().map(
    lambda job: replace(
        job, definition=plain(job.definition), active=(), waiting_runs=(), waiting_ranges=(), paused=None, removed=False
    )
)
"""Documents of every shape of which nothing runs or waits, so that a claim may be an ordinary one."""


@given(job=jobs() | idle, after=st.integers(-SECOND, 40 * SECOND), late_for=st.integers(1, 30 * SECOND))
def test_whatever_goes_the_short_way_comes_to_what_the_long_way_comes_to(job: Job, after: int, late_for: int) -> None:
    slots = resolve(job.definition.schedule)
    first = slots.after(slots.decided_until(job.cursor, job.nominal)) if slots.known else None
    assume(first is not None)
    now, by = (first or 0) + after, replace(WHO, late_for=late_for)
    short = ordinary(job, slots, now=now, by=by)
    if short is not None:
        assert short == claiming._claim(job, slots, now=now, by=by, resolve=resolve)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("options", [{}, {"timeout": 30}, {"start_within": 5}, {"overlap": "queue"}, {"retries": 3}])
def test_a_slot_on_time_of_a_job_at_rest_goes_the_short_way(zone: str, options: dict[str, Any]) -> None:
    one = OneJob(Cron("*/5 * * * *", tz=zone), **options)
    for slot in (300, 600, 900):
        one.at(slot + 2)
        slots = resolve(one.job.definition.schedule)
        short = ordinary(one.job, slots, now=one.now, by=WHO)
        assert short is not None
        assert isinstance(short.answer, Hold)
        assert short == claiming._claim(one.job, slots, now=one.now, by=WHO, resolve=resolve)
        assert short == claim(one.job, now=one.now, by=WHO, resolve=resolve)
        one.finish(one.claims())


@pytest.mark.parametrize(
    "wanted",
    [
        *(definition("1m", shards=2), definition("1m", nodes="all"), definition("1m", prefer="last")),
        *(definition("1m", limit="db:1"), definition("1m", enabled=False), definition(None)),
    ],
)
def test_a_policy_that_asks_for_more_goes_the_long_way(wanted: Definition) -> None:
    job = replace(OneJob("1m").job, definition=wanted)
    assert ordinary(job, resolve(wanted.schedule), now=T0 + 60 * SECOND, by=WHO) is None


def test_a_slot_that_is_missed_goes_the_long_way() -> None:
    job, slots = OneJob("1m").job, resolve(definition("1m").schedule)
    assert ordinary(job, slots, now=T0 + 84 * SECOND, by=WHO) is not None
    assert ordinary(job, slots, now=T0 + 85 * SECOND, by=WHO) is None
    assert ordinary(job, slots, now=T0 + 59 * SECOND, by=WHO) is None
    assert ordinary(job, slots, now=T0 + 121 * SECOND, by=replace(WHO, late_for=600 * SECOND)) is None


def test_jobs_that_share_a_timetable_and_stand_at_different_slots_each_get_their_own() -> None:
    slots = resolve(definition("1m").schedule)
    early = OneJob("1m").job
    late = replace(early, cursor=early.cursor + 60 * SECOND)
    for job in (early, early, late, early):
        at = job.cursor + 62 * SECOND
        short = ordinary(job, slots, now=at, by=WHO)
        assert short is not None
        assert short == claiming._claim(job, slots, now=at, by=WHO, resolve=resolve)


def test_a_schedule_of_ones_own_is_asked_every_time() -> None:
    """It may read a file or a flag; what is remembered of built-in ones must not be remembered of it."""

    class Moody:
        minutes = 1

        def after(self, at: datetime) -> datetime:
            return at + timedelta(minutes=self.minutes)

    moody = Moody()
    slots = Timetable(cast(Schedule, moody))
    job = OneJob("1m").job
    first = ordinary(job, slots, now=job.cursor + 62 * SECOND, by=WHO)
    assert first is not None
    assert first.answer.slot == job.cursor + 60 * SECOND
    moody.minutes = 2
    second = ordinary(job, slots, now=job.cursor + 122 * SECOND, by=WHO)
    assert second is not None
    assert second.answer.slot == job.cursor + 120 * SECOND
