"""A trigger is a run that a person or a program asked for; the same request twice is one run."""

from __future__ import annotations

from solocron.model.refusals import Refusal, Refused
from tests.unit.model.one_job import OneJob


def test_it_runs_now_with_its_own_payload_beside_the_schedule() -> None:
    job = OneJob("1h").at(100)
    run = job.trigger("r1", payload={"user": 7})
    hold = job.claims()
    assert (hold.run, hold.payload) == (run, {"user": 7})


def test_the_same_request_is_the_same_run_even_after_it_has_ended() -> None:
    job = OneJob("1h").at(100)
    run = job.trigger("r1")
    job.run_all()
    assert job.trigger("r1") == run
    assert job.claim() is None


def test_it_may_be_told_to_wait_and_be_cancelled_while_it_waits() -> None:
    job = OneJob("1h").at(100)
    job.trigger("later", at=200)
    run = job.trigger("never", at=300)
    assert run is not None
    assert job.cancel(run, "not needed") == "cancelled"
    assert job.at(400).run_all() == [200]
    assert job.reasons("cancelled") == ["not needed"]


def test_a_disabled_job_refuses_it() -> None:
    assert OneJob("1h", enabled=False).trigger("r1") == Refusal(Refused.DISABLED)
