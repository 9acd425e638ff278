"""All nodes are down for a while, then back: each policy runs exactly the slots it promises, the rest is on record."""

from __future__ import annotations

import pytest

from solocron.clock import SECOND
from solocron.model.documents.run import Record, Status
from solocron.stores.contract import Query
from solocron.testing.fleet import Fleet, wait_until
from tests.e2e.conftest import MakeFleet
from tests.e2e.jobs.policies import POLICIES

PERIOD = SECOND // 2
LATE_FOR = SECOND
"""A lease of 600 ms and two beats of 200 ms."""
DOWN = 4.0


@pytest.mark.invariant("I10: after an outage each slot fares as its policy promises")
def test_after_an_outage_each_policy_runs_what_it_promises(make_fleet: MakeFleet) -> None:
    fleet = make_fleet("tests.e2e.jobs.policies", lease="600ms")
    fleet.start(2)
    wait_until(lambda: all(_ran(fleet, job) for job in POLICIES), within=20, what="a first run of each")
    assert fleet.stop() == [0, 0]
    before = {job: max(_ran(fleet, job)) for job in POLICIES}
    store = fleet.scheduler.open().store
    until = store.clock() + round(DOWN * SECOND)
    wait_until(lambda: store.clock() >= until, within=20, what="the end of the outage")
    fleet.start(2)
    again = store.clock()
    wait_until(lambda: all(max(_ran(fleet, job)) > again for job in POLICIES), within=20, what="every job is back")
    assert fleet.stop() == [0, 0]
    for job in POLICIES:
        _check(job, fleet, before[job])


def _check(job: str, fleet: Fleet, before: int) -> None:
    log = fleet.scheduler.open().store.history(Query(job=job, limit=10_000)).records
    # Deciding about the outage and claiming the first run of it were one step, at this instant.
    claims = [record for record in log if record.attempt == 1 and record.slot > before]
    now = min(record.claimed_at or 0 for record in claims)
    down = list(range(before + PERIOD, now + 1, PERIOD))
    assert len(down) >= DOWN * 2 - 1
    ran = {slot for slot in _ran(fleet, job) if before < slot <= now}
    expected = _promised(job, down, now)
    assert ran == expected, f"{job}: ran {len(ran)} of {len(down)} slots, promised were {len(expected)}"
    assert _passed_over(log, down) == set(down) - expected, "whatever did not run says so"


def _promised(job: str, down: list[int], now: int) -> set[int]:
    """The policies in plain words, apart from the model's own: late slots run always, of the missed ones ..."""
    late = {slot for slot in down if slot > now - LATE_FOR}
    missed = [slot for slot in down if slot not in late]
    kept = {
        "skip": [],
        "latest": missed[-1:],
        "all": missed,
        "three": missed[-3:],
        "recent": [slot for slot in missed if slot >= now - 2_500_000],
    }[job]
    return late | set(kept)


def _ran(fleet: Fleet, job: str) -> list[int]:
    """The slots that bodies have ended."""
    return [line.slot for line in fleet.ledger.lines(job, "end")]


def _passed_over(log: tuple[Record, ...], down: list[int]) -> set[int]:
    """The slots that lie in records of slots that did not run; each record gives a reason and the right number."""
    found: set[int] = set()
    for record in log:
        if record.attempt == 0:
            slots = [slot for slot in down if (record.first or 0) <= slot <= record.slot]
            assert record.status is Status.MISSED
            assert record.reason
            assert record.count == len(slots)
            found |= set(slots)
    return found
