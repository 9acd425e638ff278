"""A slot can be cut into shards: each is a run of its own, with one executor, its own retries and its own key."""

from __future__ import annotations

from solocron.clock import MILLISECOND
from solocron.model.documents.job import Hold, Job
from solocron.model.policy import allow
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import Later, claim
from tests.unit.model.one_job import LATE_FOR, OneJob, resolve


def test_a_slot_becomes_one_run_for_each_shard() -> None:
    job = OneJob("1m", shards=("eu", "us", "apac")).at(60)
    holds = [job.claims("a"), job.claims("b"), job.claims("c")]
    assert [hold.shard for hold in holds] == ["eu", "us", "apac"]
    assert {hold.shards for hold in holds} == {("eu", "us", "apac")}
    assert len({hold.run for hold in holds}) == 3
    for hold in holds:
        job.finish(hold)
    assert {record.key.rpartition("#")[2] for record in job.log.values()} == {"eu", "us", "apac"}
    assert job.claim("a") is None


def test_numbered_shards_count_from_zero_so_that_they_fit_a_modulo() -> None:
    job = OneJob("1m", shards=2).at(60)
    assert [(job.claims().shard, job.claims().shard)] == [(0, 1)]


def test_each_shard_is_retried_by_itself() -> None:
    job = OneJob("1m", shards=2, retries=1).at(60)
    good, bad = job.claims("a"), job.claims("b")
    job.fail(bad)
    job.finish(good)
    again = job.at(62).claims("a")
    assert (again.run, again.shard, again.attempt) == (bad.run, bad.shard, 2)
    job.finish(again)
    assert [hold.run for hold in job.job.active] == []


def test_each_shard_is_taken_over_by_itself() -> None:
    job = OneJob("1m", shards=2, retries=1).at(60)
    lost, kept = job.claims("a"), job.claims("b")
    job.take_over("a")
    assert job.job.active == (kept,)
    assert job.claims("b").run == lost.run


def test_the_shards_of_a_slot_count_as_one_run_for_overlap() -> None:
    job = OneJob("1m", shards=3).at(60)
    first = job.claims("a")
    job.finish(first)  # two shards still wait: the slot has begun and is not over
    second = job.at(120).claims("b")
    assert second.slot == first.slot
    assert job.covered("skipped") == [(120, 120, 1)]


def test_allow_counts_slots() -> None:
    job = OneJob("1m", shards=2, overlap=allow(2)).at(60)
    mine = [job.claims("a"), job.claims("a")]
    later = [job.at(120).claims("b"), job.claims("b")]
    assert len({hold.run for hold in mine + later}) == 4
    assert job.at(180).claim("c") is None


def test_a_deploy_that_cuts_otherwise_leaves_a_slot_that_has_begun_as_it_is() -> None:
    """Nothing is lost, nothing doubled: the slot of 60 keeps its three shards, the slot of 120 gets two."""
    job = OneJob("1m", shards=3).at(60)
    first = job.claims("old")
    job.define("1m", shards=2)
    rest = [job.claims("new"), job.claims("old")]
    assert [hold.shard for hold in (first, *rest)] == [0, 1, 2]
    assert {hold.shards for hold in (first, *rest)} == {3}
    for hold in (first, *rest):
        job.finish(hold)
    following = [job.at(120).claims("new"), job.claims("old")]
    assert [(hold.shard, hold.shards) for hold in following] == [(0, 2), (1, 2)]


def test_a_trigger_runs_every_shard_or_the_one_that_is_named() -> None:
    job = OneJob(None, shards=("eu", "us"))
    job.trigger("all")
    assert [job.claims().shard, job.claims().shard] == ["eu", "us"]
    for hold in job.job.active:
        job.finish(hold)
    job.trigger("one", shard="us")
    assert job.claims().shard == "us"
    assert job.claim() is None


def test_other_nodes_get_a_chance_before_a_node_takes_a_second_shard() -> None:
    """A node that has one lets the others go first for a moment; alone, it takes all at once."""
    job = OneJob("1m", shards=3).at(60)
    mine = job.claims("a")
    again = claim(job.job, now=job.now, by=_among_others("a"), resolve=resolve)
    assert again is not None
    assert again.answer == Later(mine.claimed_at + 50 * MILLISECOND)
    assert again.doc is job.job
    other = claim(job.job, now=job.now, by=_among_others("b"), resolve=resolve)
    assert other is not None
    assert isinstance(other.answer, Hold)
    assert isinstance(other.doc, Job)
    after = claim(other.doc, now=job.now + 50 * MILLISECOND, by=_among_others("a"), resolve=resolve)
    assert after is not None
    assert isinstance(after.answer, Hold)


def _among_others(node: str) -> Claimant:
    return Claimant(session=f"session of {node}", node=node, late_for=LATE_FOR * 1_000_000, alone=False)
