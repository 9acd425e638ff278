"""`make_run`: a run for a body that a test calls itself, without a scheduler and without a database."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from solocron import AsyncRun, Cancelled, InvalidError, LeaseLost, Run, TimedOut
from solocron.testing.runs import make_async_run, make_run


def test_a_body_gets_the_facts_that_the_test_chose() -> None:
    run = make_run("invoice", payload={"customer": 42}, slot=datetime(2027, 1, 4, 9, tzinfo=UTC), attempt=2, fence=7)
    assert isinstance(run, Run)
    assert (run.job, run.payload["customer"], run.attempt, run.fence, run.cancelled) == ("invoice", 42, 2, 7, False)
    assert run.key == "invoice@2027-01-04T09:00:00Z"
    run.check()


def test_its_effects_happen_once_in_a_memory_of_its_own() -> None:
    run, other = make_run(), make_run()
    for expected in (True, False):
        with run.once("receipt:42") as first:
            assert bool(first) is expected
    with other.once("receipt:42") as first:
        assert first, "another run knows nothing of it"
    assert run.step("charge").call(lambda: "payment-1") == "payment-1"
    with pytest.raises(InvalidError, match="used before in this attempt"):
        run.step("charge").call(lambda: "payment-2")


def test_a_coroutine_gets_the_run_of_coroutines() -> None:
    async def body(run: AsyncRun) -> list[int]:
        await run.sleep("1ms")
        async with run.once("key") as first:
            assert first
        return [item async for item in run.track([1, 2])]

    assert asyncio.run(body(make_async_run())) == [1, 2]


@pytest.mark.parametrize(("stop", "raised"), [("cancel", Cancelled), ("timeout", TimedOut), ("lost", LeaseLost)])
def test_a_body_can_be_told_to_stop(stop: Any, raised: type[BaseException]) -> None:
    run = make_run(stop=stop)
    assert run.cancelled
    with pytest.raises(raised):
        run.check()


def test_progress_is_reported_to_the_test() -> None:
    told: list[dict[str, Any]] = []
    assert list(make_run(report=told.append).track("ab")) == ["a", "b"]
    assert [one["done"] for one in told] == [0, 1, 2]


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"slot": datetime(2027, 1, 4)}, "has no time zone"),  # noqa: DTZ001 - the mistake under test
        ({"payload": object()}, "is not JSON"),
        ({"attempt": 0}, "attempt=0: give a whole number from 1 up"),
        ({"stop": "now"}, "stop='now' is not known; choose cancel, timeout, lost"),
        ({"pyload": 1}, "a run has no 'pyload'; known are payload, slot"),
    ],
)
def test_a_fact_that_no_run_could_have_is_refused(facts: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        make_run(**facts)
