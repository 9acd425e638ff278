"""A pause stops what the schedule would start, says who and why, and leaves a record of what did not run."""

from __future__ import annotations

from tests.unit.model.one_job import OneJob


def test_the_slots_of_a_pause_are_skipped_and_say_why() -> None:
    job = OneJob("1m").at(30)
    job.pause(by="ada", note="release 2.0")
    assert job.at(180).claim() is None
    job.at(190).resume()
    assert job.covered("skipped") == [(60, 180, 3)]
    assert job.reasons("skipped") == ["paused: release 2.0"]
    assert job.at(240).run_all() == [240]


def test_a_pause_may_end_by_itself() -> None:
    job = OneJob("1m").at(30)
    job.pause(until=150)
    assert job.at(180).run_all() == [180]
    assert job.covered("skipped") == [(60, 120, 2)]


def test_what_runs_goes_on_and_what_a_person_asks_for_runs() -> None:
    job = OneJob("1m").at(60)
    running = job.claims("a")
    job.pause()
    assert job.finish(running) == "accepted"
    job.trigger("by hand")
    assert job.run_all() == [60]
