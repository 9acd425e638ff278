"""An attempt fails half-way, and the next begins anew. What the first has done must not happen twice."""

from __future__ import annotations

from solocron import Backoff, Run, every
from solocron.testing.clock import ManualClock

SOON = Backoff("1s", jitter=0)


def attempts(job: object, clock: ManualClock) -> list[str]:
    """Let the first slot come, and its retries; return how each attempt ended."""
    scheduler = clock.scheduler(job)
    scheduler.tick()
    clock.advance("1h")
    ended = [run.status for run in scheduler.tick()]
    clock.advance("1s")
    return ended + [run.status for run in scheduler.tick()]


def test_a_key_is_claimed_by_one_caller() -> None:
    mails: list[str] = []

    @every("1h", retries=1, backoff=SOON)
    def receipts(run: Run) -> None:
        for customer in ("ada", "grace"):
            with run.once(f"receipt:{customer}") as first:
                if first:
                    mails.append(customer)
            if run.attempt == 1 and customer == "ada":
                raise ConnectionError("after the first mail")

    assert attempts(receipts, ManualClock()) == ["failed", "succeeded"]
    assert mails == ["ada", "grace"], "not: ada, ada, grace"


def test_a_step_that_has_been_taken_returns_what_it_returned() -> None:
    charged: list[str] = []

    def charge() -> str:
        charged.append("card")
        return "payment-1"

    @every("1h", retries=1, backoff=SOON)
    def order(run: Run) -> None:
        payment = run.step("charge").call(charge)
        assert payment == "payment-1"
        if run.attempt == 1:
            raise ConnectionError("before the parcel is sent")

    assert attempts(order, ManualClock()) == ["failed", "succeeded"]
    assert charged == ["card"]
