"""A run that waits says what it waits for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from solocron.model.documents.job import Job, Pause, WaitingRun
from solocron.model.documents.offer import Offer
from solocron.model.documents.run import Origin
from solocron.model.documents.scoped_pause import Reach, Scope, ScopedPause
from solocron.model.policy import allow
from solocron.testing.conformance.kit import hold, job
from solocron.views.waits import waits_of

WAITS = WaitingRun(run="j@1", slot=10, origin=Origin.SCHEDULE, ready_at=100)
PLAIN = job("j", waiting_runs=(WAITS,))
OFFER = Offer(carrier="celery", since=1, until=100)
REFUSED = Offer(carrier="celery", since=1, note="not accepted by celery")
ASKED = replace(PLAIN, waiting_runs=(replace(WAITS, origin=Origin.TRIGGER),))
PARALLEL = replace(PLAIN, definition=replace(PLAIN.definition, overlap=allow(2)))
LIMITED = replace(PLAIN, definition=replace(PLAIN.definition, limit="db:2"))


@pytest.mark.parametrize(
    ("doc", "now", "why"),
    [
        (PLAIN, 99, "its time"),
        (replace(PLAIN, waiting_runs=(replace(WAITS, attempt=2),)), 99, "a retry"),
        (PLAIN, 100, "a node"),
        (replace(PLAIN, paused=Pause(at=1)), 100, "the job to be resumed"),
        (replace(PLAIN, definition=replace(PLAIN.definition, enabled=False)), 100, "the job to be enabled"),
        (replace(ASKED, paused=Pause(at=1)), 100, "a node"),
        (replace(PLAIN, waiting_runs=(replace(WAITS, only="n2"),)), 100, "node n2"),
        (replace(PLAIN, active=(hold("j@0", "s"),)), 100, "the run before"),
        (replace(ASKED, active=(hold("j@0", "s"),)), 100, "the run before"),
        (replace(PARALLEL, active=(hold("j@0", "s"),)), 100, "a node"),
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


@pytest.mark.parametrize(
    ("doc", "triggers", "why"),
    [
        (PLAIN, False, "the pause of all jobs to be lifted"),
        (PLAIN, True, "the pause of all jobs to be lifted"),
        (ASKED, False, "a node"),
        (ASKED, True, "the pause of all jobs to be lifted"),
    ],
)
def test_a_run_waits_for_a_pause_of_many_jobs(doc: Job, triggers: bool, why: str) -> None:
    other = ScopedPause(scope=Scope(Reach.MATCH, "x*"), at=1, triggers=True)
    over = ScopedPause(scope=Scope(Reach.ALL), at=1, until=100)
    pauses = (other, over, ScopedPause(scope=Scope(Reach.ALL), at=1, triggers=triggers))
    assert [one.why for one in waits_of(doc, pauses=pauses, now=100)] == [why]
