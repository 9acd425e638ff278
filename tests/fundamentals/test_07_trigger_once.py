"""A trigger asks for a run outside the schedule. With a key, the same request twice is one run."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from solocron import NotFoundError, Run, every
from solocron.testing.clock import ManualClock


@every("1d")
def invoice(run: Run) -> str:
    return f"invoice for {run.payload['customer']}"


def test_a_triggered_run_has_the_payload_of_its_request() -> None:
    scheduler = ManualClock().scheduler(invoice)
    scheduler.tick()
    asked = scheduler.trigger("invoice", {"customer": "ada"})
    (run,) = scheduler.tick()
    assert (run.run, run.result) == (asked, "invoice for ada")


def test_the_same_key_is_the_same_run_however_often_it_is_asked_for() -> None:
    """A web handler that is called twice, or whose reply was lost, bills a customer once."""
    clock = ManualClock()
    web, worker = clock.scheduler(invoice), clock.scheduler(invoice)
    worker.tick()
    first = web.trigger("invoice", {"customer": "ada"}, key="order-7")
    assert web.trigger("invoice", {"customer": "ada"}, key="order-7") == first
    assert len(worker.tick()) == 1
    assert web.trigger("invoice", {"customer": "ada"}, key="order-7") == first, "although it has run by now"
    assert worker.tick() == []


def test_a_run_may_be_asked_for_at_a_later_time() -> None:
    clock = ManualClock()
    scheduler = clock.scheduler(invoice)
    scheduler.tick()
    scheduler.trigger("invoice", {"customer": "grace"}, at=datetime(2026, 1, 1, 8, tzinfo=UTC))
    clock.advance("7h59m")
    assert scheduler.tick() == []
    clock.advance("1m")
    assert [run.result for run in scheduler.tick()] == ["invoice for grace"]


def test_a_job_that_does_not_exist_is_refused() -> None:
    scheduler = ManualClock().scheduler(invoice)
    scheduler.tick()
    with pytest.raises(NotFoundError, match="there is no job 'invoce'"):
        scheduler.trigger("invoce")
