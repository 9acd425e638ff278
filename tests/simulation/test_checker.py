"""The judge of simulated worlds: cases in which it once condemned what was right."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from proof.invariants.checker import Violation
from proof.invariants.policies import i5_no_backfill_vanishes
from proof.oracles.slots import Even, fate_through
from solocron.clock import SECOND
from solocron.model.documents.job import Pause, WaitingRange, WaitingRun
from solocron.model.documents.offer import Offer
from solocron.model.documents.run import Origin
from solocron.testing.conformance.kit import job


def test_a_pause_of_many_covers_what_follows_the_jobs_own_pause() -> None:
    """The own pause ended at 20 s; the pause of all jobs has stood since 5 s and stands."""
    paused = replace(job("j"), cursor=10 * SECOND, paused=Pause(at=10 * SECOND, until=20 * SECOND))
    fates = fate_through(paused, Even(5 * SECOND), [(5 * SECOND, None)], now=31 * SECOND, late_for=25 * SECOND)
    assert fates == dict.fromkeys((15 * SECOND, 20 * SECOND, 25 * SECOND, 30 * SECOND), "skipped")


def test_the_jobs_own_pause_alone_lets_the_slots_after_it_wait() -> None:
    paused = replace(job("j"), cursor=10 * SECOND, paused=Pause(at=10 * SECOND, until=20 * SECOND))
    fates = fate_through(paused, Even(5 * SECOND), [], now=26 * SECOND, late_for=25 * SECOND)
    assert fates == {15 * SECOND: "skipped", 20 * SECOND: "skipped", 25 * SECOND: "waiting"}


def handed_over(shard: str, *, left: int) -> Any:
    """A commit that hands over a shard of a slot that a backfill of seven more slots had begun."""
    waiting = WaitingRun(run="j@1#0", slot=1, origin=Origin.BACKFILL, ready_at=1, shard=0, shards=2)
    offered = replace(waiting, run=shard, offer=Offer(carrier="queue", since=1, until=9))
    rest = WaitingRange(first=2, last=8, count=7, origin=Origin.BACKFILL, request="r", total=8)
    before = job("j", waiting_runs=(waiting,), waiting_ranges=(rest,))
    after = replace(before, waiting_runs=(offered,), waiting_ranges=(replace(rest, count=left),))
    return SimpleNamespace(name="j", before=before, after=after, records=())


def test_a_further_shard_of_a_backfilled_slot_is_not_another_slot() -> None:
    i5_no_backfill_vanishes(None, handed_over("j@1#1", left=7))  # type: ignore[arg-type]


def test_a_backfilled_slot_that_begins_leaves_its_range() -> None:
    with pytest.raises(Violation, match="I5"):
        i5_no_backfill_vanishes(None, handed_over("j@2#0", left=7))  # type: ignore[arg-type]
    i5_no_backfill_vanishes(None, handed_over("j@2#0", left=6))  # type: ignore[arg-type]
