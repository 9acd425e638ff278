"""Only the runs that a broker did not accept are due when it is back."""

from __future__ import annotations

from solocron.clock import SECOND
from solocron.model._fast.values import replace
from solocron.model.change import Absent, Kind
from solocron.model.documents.job import Job
from solocron.model.transitions.offering import publish_now
from tests.unit.model.one_job import OneJob, resolve

HOUR = 3600
REFUSED = "not accepted by queue (NotAccepted: no connection to the broker)"


def put_back_for_an_hour(note: str) -> OneJob:
    job = OneJob("1h", run_in="queue", hand_over={})
    job.put_back(job.at(HOUR).claims("a"), wait=HOUR, note=note)
    return job


def test_it_is_due_now_and_keeps_its_attempt_and_its_tries() -> None:
    job = put_back_for_an_hour(REFUSED)
    (before,) = job.job.waiting_runs
    change = publish_now(job.job, now=job.now + SECOND, resolve=resolve)
    assert change is not None
    assert isinstance(change.doc, Job)
    assert (job.job.due_at, change.doc.due_at) == (job.now + HOUR * SECOND, job.now + SECOND)
    assert change.doc.waiting_runs == (replace(before, ready_at=job.now + SECOND),)
    assert publish_now(change.doc, now=job.now + SECOND, resolve=resolve) is None, "once is enough"


def test_no_other_wait_is_ended() -> None:
    job = put_back_for_an_hour("no handler 'work' on a")
    assert publish_now(job.job, now=job.now, resolve=resolve) is None
    job = OneJob("1h", run_in="queue", hand_over={})
    job.hand_over(job.at(HOUR).claims("a"))
    assert publish_now(job.job, now=job.now, resolve=resolve) is None, "its message is in the queue"
    assert publish_now(Absent(Kind.JOB, "gone"), now=job.now, resolve=resolve) is None
