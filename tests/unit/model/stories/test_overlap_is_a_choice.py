"""A slot falls due while the previous run still runs: skip it, queue it, run it beside, or replace what runs."""

from __future__ import annotations

from solocron.model.policy import Overlap, allow
from tests.unit.model.one_job import OneJob


def while_the_first_still_runs(overlap: str | Overlap) -> tuple[OneJob, list[float]]:
    """The slot of 60 runs until 250; what ran after it, and what became of the slots of 120, 180 and 240."""
    job = OneJob("1m", overlap=overlap).at(60)
    first = job.claims("a")
    for second in (120, 180, 240):
        job.at(second).claim("b")
    job.at(250).finish(first)
    return job, job.run_all("b")


def test_skip() -> None:
    job, ran = while_the_first_still_runs("skip")
    assert ran == []
    assert job.ended()[:3] == [(120, "skipped"), (180, "skipped"), (240, "skipped")]
    assert job.reasons("skipped")[0] == f"overlap: {job.job.last.run if job.job.last else ''} still runs on a"


def test_queue_keeps_one_waiting() -> None:
    job, ran = while_the_first_still_runs("queue")
    assert ran == [120]
    assert job.covered("skipped") == [(180, 180, 1), (240, 240, 1)]


def test_queue_all_keeps_a_thousand() -> None:
    _, ran = while_the_first_still_runs("queue-all")
    assert ran == [120, 180, 240]


def test_allow_lets_n_run_at_once() -> None:
    job = OneJob("1m", overlap=allow(2))
    assert job.at(60).claim("a") is not None
    assert job.at(120).claim("b") is not None
    assert job.at(180).claim("c") is None
    assert job.ended() == [(180, "skipped")]


def test_replace_asks_the_old_run_to_stop_and_waits_until_it_has() -> None:
    """Two never run at once, not even here: the newest waits until the old one is gone."""
    job = OneJob("1m", overlap="replace").at(60)
    old = job.claims("a")
    assert job.at(120).claim("b") is None
    assert job.job.active[0].cancel == "overlap: replaced by a later slot"
    job.finish(old)
    assert job.run_all("b") == [120]
