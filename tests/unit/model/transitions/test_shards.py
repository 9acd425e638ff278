"""Rows of shards: cut once, taken one after the other, split by a cancellation; none lost, none doubled."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.errors import InvalidError
from solocron.jobs.checks import check_shards
from solocron.model.documents.job import WaitingRun
from solocron.model.documents.run import Origin, group_of
from solocron.model.refusals import Refusal, Refused
from solocron.model.transitions.shards import count, cut, each, labels, rest_of, without
from tests.unit.model.one_job import T0, OneJob

shards = st.integers(1, 12) | st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True).map(tuple)


def uncut() -> WaitingRun:
    return WaitingRun(run="work@1234", slot=T0, origin=Origin.SCHEDULE, ready_at=T0)


@pytest.mark.invariant("I5: no slot is lost")
@given(shards)
def test_a_row_has_every_shard_once(found: int | tuple[str, ...]) -> None:
    row = cut(uncut(), found)
    assert [one.shard for one in each(row)] == list(labels(found))
    assert len({one.run for one in each(row)}) == count(found)
    taken = []
    rest: WaitingRun | None = row
    while rest is not None:
        taken.append(rest.shard)
        rest = rest_of(rest)
    assert taken == list(labels(found))


@pytest.mark.invariant("I5: no slot is lost")
@given(shards, st.data())
def test_what_is_taken_out_of_a_row_leaves_all_the_others(found: int | tuple[str, ...], data: st.DataObject) -> None:
    rows: tuple[WaitingRun, ...] = (cut(uncut(), found),)
    left = [one.run for one in each(rows[0])]
    while left:
        run = data.draw(st.sampled_from(left))
        split = [without(row, run) for row in rows]
        rows = tuple(row for kept, _ in split for row in kept)
        assert [one.run for _, gone in split for one in gone] == [run]
        left.remove(run)
        assert sorted(one.run for row in rows for one in each(row)) == sorted(left)


@given(shards)
def test_the_name_of_the_slot_takes_all_out(found: int | tuple[str, ...]) -> None:
    row = cut(uncut(), found)
    kept, gone = without(row, group_of(row.run))
    assert kept == ()
    assert len(gone) == count(found)


def test_what_was_cut_is_not_cut_again() -> None:
    row = cut(uncut(), 3)
    assert cut(row, 5) is row
    assert cut(uncut(), None) == uncut()


def test_a_thousand_shards_that_wait_are_one_entry() -> None:
    job = OneJob("1m", shards=1000).at(60)
    job.claims()
    assert len(job.job.waiting_runs) == 1
    assert job.job.waiting == 999
    assert job.job.queued == 1


@pytest.mark.invariant("I5: no slot is lost")
def test_shards_that_never_ran_are_each_on_record() -> None:
    job = OneJob("1m", shards=3, overlap="replace").at(60)
    first = job.claims()
    job.at(120).claim()
    assert job.covered("skipped") == [(60, 60, 1), (60, 60, 1)]
    job.finish(first)
    assert job.at(121).claims().slot == T0 + 120_000_000


def test_one_shard_is_cancelled_and_the_others_run() -> None:
    job = OneJob("1m", shards=4).at(60)
    first = job.claims()
    assert job.cancel(f"{group_of(first.run)}#2") == "cancelled"
    assert [job.claims().shard, job.claims().shard] == [1, 3]
    assert job.claim() is None


def test_a_whole_slot_is_cancelled_by_its_name() -> None:
    job = OneJob("1m", shards=3).at(60)
    first = job.claims()
    assert job.cancel(group_of(first.run)) == "asked"
    assert job.job.active[0].cancel == "a person asked"
    assert len(job.records("cancelled")) == 2
    assert job.job.waiting_runs == ()


def test_a_shard_that_does_not_exist_is_not_triggered() -> None:
    assert OneJob(None, shards=2).trigger(shard="eu") == Refusal(Refused.NO_SHARD)
    assert OneJob(None).trigger(shard=0) == Refusal(Refused.NO_SHARD)


@pytest.mark.invariant("I2: an attempt is claimed at most once, and none after the last word of its run")
def test_a_repeated_trigger_does_not_cut_a_second_time() -> None:
    job = OneJob(None, shards=2)
    run = job.trigger("r1")
    job.claims()
    assert job.trigger("r1") == run
    assert job.job.waiting == 1


@pytest.mark.parametrize(
    "bad", [0, -1, 1001, True, 1.5, "eu", (), ("eu", "eu"), ("a b",), ("x" * 33,), (1, 2), {"eu": 1}, b"ab"]
)
def test_what_cannot_be_shards_is_refused(bad: object) -> None:
    with pytest.raises(InvalidError, match=r"shards=.*Nothing was registered"):
        check_shards(bad)


def test_a_definition_with_shards_survives_json() -> None:
    definition = OneJob("1m", shards=("eu", "us")).job.definition
    again = type(definition).from_json(json.loads(json.dumps(definition.to_json())))
    assert again == definition
    assert again.fingerprint == definition.fingerprint
