"""A deploy changes a schedule: nothing runs twice, nothing is forgotten, and no slot is invented."""

from __future__ import annotations

from solocron.schedules import Cron
from tests.unit.model.one_job import OneJob, seconds

HOUR = 3600


def test_what_was_due_before_is_decided_by_the_old_rule() -> None:
    job = OneJob("1m", catch_up="all").at(130)
    job.define("1h", catch_up="all")
    assert job.run_all() == [60, 120]
    assert job.at(HOUR).run_all() == [HOUR]


def test_a_rule_has_no_slots_before_it_was_made() -> None:
    """At half past nine a job moves from 10:00 to 09:00: it does not fire at deploy."""
    job = OneJob(Cron("0 10 * * *"), catch_up="all").at(9.5 * HOUR)
    job.define(Cron("0 9 * * *"), catch_up="all")
    assert job.run_all() == []
    assert job.job.due_at is not None
    assert seconds(job.job.due_at) == 33 * HOUR, "09:00 tomorrow"


def test_nothing_of_the_past_waits_in_a_new_job() -> None:
    job = OneJob("1m", catch_up="all")
    assert job.at(59).claim() is None


def test_a_deploy_does_not_end_a_pause_or_a_run() -> None:
    job = OneJob("1m").at(60)
    running = job.claims("a")
    job.pause(note="release")
    job.define("30s")
    assert job.job.paused is not None
    assert job.finish(running) == "accepted"


def test_a_removed_job_goes_with_its_last_run() -> None:
    job = OneJob("1m").at(60)
    running = job.claims("a")
    job.remove()
    assert job.job.active[0].cancel == "the job was removed"
    job.finish(running)
    assert not hasattr(job.doc, "active"), "the document is gone"
