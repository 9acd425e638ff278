"""Backfills over random stories: every slot of the range runs once, and no live slot pays for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.clock import SECOND
from solocron.model.documents.run import Origin
from solocron.model.policy import Overlap, allow
from solocron.model.transitions import backfill
from tests.properties import calm
from tests.unit.model.one_job import T0, OneJob, seconds


@pytest.mark.invariant("I5: no slot is lost")
@pytest.mark.invariant("I10: after an outage each slot fares as its policy promises")
@calm(60)
@given(
    st.sampled_from([Overlap.parse("skip"), Overlap.parse("queue"), Overlap.parse("queue-all"), allow(2)]),
    st.sampled_from([None, 1, 10]),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=40),
)
def test_a_backfill_runs_each_slot_once_and_costs_no_live_slot(
    overlap: Overlap, pace: int | None, story: list[tuple[int, int]]
) -> None:
    """Runs are shorter than the period, and a node always looks in time: then every live slot runs."""
    job = OneJob("1m", overlap=overlap).at(3600)
    job.run_all()
    job.apply(
        lambda doc: backfill.backfill(
            doc, start=T0, end=T0 + 1200 * SECOND, limit=None, pace=None if pace is None else pace * SECOND,
            request="b", now=job.now, resolve=job.by,
        )
    )  # fmt: skip
    now, past, live = 3600.0, [], []
    for wait, length in [*story, *[(10, 1)] * 60]:
        now += wait
        hold = job.at(now).claim()
        if hold is not None:
            (past if hold.origin is Origin.BACKFILL else live).append(seconds(hold.slot))
            now += length
            job.at(now).finish(hold)
    assert past == [float(slot) for slot in range(0, 1200, 60)][: len(past)]
    assert len(past) == 20 - sum(s.count for s in job.job.waiting_ranges if s.origin is Origin.BACKFILL)
    waiting = [seconds(waiting_run.slot) for waiting_run in job.job.waiting_runs]
    assert sorted(live + waiting) == [float(slot) for slot in range(3660, int(seconds(job.job.cursor)) + 1, 60)]
    assert job.records("skipped") == []
