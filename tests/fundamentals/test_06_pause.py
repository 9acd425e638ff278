"""A person pauses a job: its slots are skipped and say who and why. What that person triggers runs all the same."""

from __future__ import annotations

from solocron import Scheduler, every
from solocron.testing.clock import ManualClock


@every("1h")
def sync() -> None: ...


def due_once(clock: ManualClock) -> Scheduler:
    scheduler = clock.scheduler(sync)
    scheduler.tick()
    clock.advance("1h")
    assert len(scheduler.tick()) == 1
    return scheduler


def test_the_slots_of_a_pause_do_not_run_and_say_why() -> None:
    clock = ManualClock()
    scheduler = due_once(clock)
    scheduler.pause("sync", by="ada", note="release 2.0")
    clock.advance("3h")
    assert scheduler.tick() == []
    scheduler.resume("sync")
    (skipped,) = scheduler.runs("sync", status="skipped")
    assert (skipped.count, skipped.reason) == (3, "paused: release 2.0")
    clock.advance("1h")
    assert [run.slot.hour for run in scheduler.tick()] == [5], "the pause is over, and nothing is made up for"


def test_a_pause_may_end_by_itself() -> None:
    clock = ManualClock()
    scheduler = due_once(clock)
    scheduler.pause("sync", until=clock.now.replace(hour=3, minute=30))
    clock.advance("2h")
    assert scheduler.tick() == []
    clock.advance("1h")
    assert [run.slot.hour for run in scheduler.tick()] == [4]


def test_what_a_person_triggers_runs_during_a_pause() -> None:
    clock = ManualClock()
    scheduler = due_once(clock)
    scheduler.pause("sync")
    scheduler.trigger("sync")
    assert [run.status for run in scheduler.tick()] == ["succeeded"]


def test_every_replica_sees_the_pause() -> None:
    clock = ManualClock()
    due_once(clock).pause("sync", by="ada")
    paused = clock.scheduler(sync).get_job("sync").paused
    assert paused is not None
    assert paused.by == "ada"
