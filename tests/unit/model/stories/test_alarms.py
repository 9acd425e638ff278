"""What should have run and did not is an alarm: opened by one look, closed by another, and told with its like."""

from __future__ import annotations

from solocron.clock import SECOND
from solocron.model.change import Absent, Kind, SmallDocument
from solocron.model.documents.alarm import Bounds, Cause, close, is_open, open_
from solocron.model.documents.alarm_causes import causes
from solocron.model.documents.session import Session
from tests.unit.model.one_job import T0, OneJob

BOUNDS = Bounds(every=30 * SECOND, late=300 * SECOND, failing=3, patience=0)
NODE = Session(name="s", node="a", host="h", pid=1, handlers=("work",), lease=15 * SECOND, expires_at=T0 + 10**12)


def test_a_job_that_nobody_claims_is_late_until_somebody_does() -> None:
    job = OneJob("1m").at(0)
    absent = Absent(Kind.ALARM, "late:work")

    def look(second: int) -> dict[str, Cause]:
        now = T0 + second * SECOND
        return dict(causes([job.doc], [NODE], aside=frozenset(), tier="A", bounds=BOUNDS, now=now))

    assert look(360) == {}, "due for five minutes: not yet an alarm"
    (cause,) = look(361).values()
    raised = open_(absent, cause, seen=361, now=361)
    assert raised is not None
    assert isinstance(raised.doc, SmallDocument)
    assert is_open(raised.doc)
    assert open_(raised.doc, cause, seen=362, now=362) is None, "another node finds it open"
    job.at(400).run_all()
    assert look(400) == {"missed:work": look(400)["missed:work"]}, "it runs again; what was missed is another alarm"
    assert look(400)["missed:work"].info, "a later slot ran instead: worth a line, not a call at night"
    cleared = close(raised.doc, seen=400, now=400)
    assert cleared is not None
    assert isinstance(cleared.doc, SmallDocument)
    assert not is_open(cleared.doc)


def test_a_message_that_no_worker_picks_up_is_late_however_often_it_is_published() -> None:
    """Each time that the offer lapses the job is due anew; the alarm counts from the first hand-over."""
    job = OneJob("1h", run_in="queue", hand_over={}).at(3600)

    def look() -> dict[str, Cause]:
        return dict(causes([job.job], [NODE], aside=frozenset(), tier="A", bounds=BOUNDS, now=job.now))

    first = job.claims()
    job.hand_over(first, pickup=200)
    job.at(3800).hand_over(job.claims(), pickup=200)
    assert look() == {}
    job.at(3901)
    assert look()["late:work"].detail == "waits in queue since 2026-01-05T01:00:00Z, and no worker picked it up"
    job.finish(job.picks_up(first))
    assert look() == {}


def test_a_broker_that_accepts_nothing_is_told_in_its_own_words() -> None:
    job = OneJob("1h", run_in="queue", hand_over={}).at(3600)
    job.put_back(job.claims(), wait=400, note="not accepted by queue (no connection)")
    job.at(3901)
    (cause,) = causes([job.job], [NODE], aside=frozenset(), tier="A", bounds=BOUNDS, now=job.now).values()
    assert cause.detail == "not accepted by queue (no connection), since 2026-01-05T01:00:00Z"
