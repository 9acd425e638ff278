"""Slots, not locks: the thing claimed is (job, scheduled instant), and claiming it moves the cursor past it."""

from __future__ import annotations

from tests.unit.model.one_job import OneJob, seconds


def test_five_nodes_fire_in_the_same_millisecond_and_one_gets_the_slot() -> None:
    job = OneJob("1m").at(60)
    holds = [job.claim(node) for node in "abcde"]
    assert [hold is not None for hold in holds] == [True, False, False, False, False]


def test_a_node_that_was_frozen_cannot_claim_an_old_slot_again() -> None:
    """There is no lock to expire: the cursor remembers what has been decided, however long ago."""
    job = OneJob("1m").at(60)
    job.finish(job.claims("a"))
    assert job.at(119).claim("frozen since 60") is None
    assert seconds(job.at(120).claims("b").slot) == 120


def test_the_stores_clock_decides_so_an_early_node_gets_nothing() -> None:
    job = OneJob("1m").at(59.999)
    assert job.claim("a node whose clock is ahead") is None


def test_what_runs_is_in_the_document_and_what_has_ended_in_the_log() -> None:
    job = OneJob("1m").at(60)
    hold = job.claims("a")
    assert job.job.active == (hold,)
    assert seconds(job.job.cursor) == 60
    assert job.ended() == []
    job.finish(hold)
    assert job.job.active == ()
    assert job.ended() == [(60, "succeeded")]
