"""A run that waits says what it waits for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from solocron.model.documents.job import Job, Pause, WaitingRun
from solocron.model.documents.offer import Offer
from solocron.model.documents.run import Origin
from solocron.testing.conformance.kit import hold, job
from solocron.views.waits import waits_of

WAITS = WaitingRun(run="j@1", slot=10, origin=Origin.SCHEDULE, ready_at=100)
PLAIN = job("j", waiting_runs=(WAITS,))
OFFER = Offer(carrier="celery", since=1, until=100)
REFUSED = Offer(carrier="celery", since=1, note="not accepted by celery")
LIMITED = replace(PLAIN, definition=replace(PLAIN.definition, limit="db:2"))


@pytest.mark.parametrize(
    ("doc", "now", "why"),
    [
        (PLAIN, 99, "its time"),
        (replace(PLAIN, waiting_runs=(replace(WAITS, attempt=2),)), 99, "a retry"),
        (PLAIN, 100, "a node"),
        (replace(PLAIN, paused=Pause(at=1)), 100, "the job to be resumed"),
        (replace(PLAIN, waiting_runs=(replace(WAITS, only="n2"),)), 100, "node n2"),
        (replace(PLAIN, active=(hold("j@0", "s"),)), 100, "the run before"),
        (LIMITED, 100, "a permit of db:2"),
        (replace(PLAIN, waiting_runs=(replace(WAITS, offer=OFFER),)), 99, "a worker of celery"),
        (replace(PLAIN, waiting_runs=(replace(WAITS, offer=REFUSED),)), 99, "celery to accept it"),
    ],
)
def test_what_a_run_waits_for(doc: Job, now: int, why: str) -> None:
    (found,) = waits_of(doc, now=now)
    assert (found.run, found.why) == ("j@1", why)


def test_a_long_queue_is_cut() -> None:
    many = tuple(replace(WAITS, run=f"j@{i}") for i in range(60))
    assert len(waits_of(replace(PLAIN, waiting_runs=many), now=1)) == 50
