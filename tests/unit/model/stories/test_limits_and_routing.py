"""A limit bounds the runs of several jobs; `nodes=` says where a slot runs, `prefer=` who goes first."""

from __future__ import annotations

import pytest

from solocron.clock import SECOND
from solocron.model.change import Kind
from solocron.model.codec import decode, encode
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import group_of
from solocron.model.documents.session import Session
from solocron.model.routing import PREFER
from solocron.model.transitions import backfill
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import Later, Needs, claim
from tests.unit.model.one_job import LATE_FOR, T0, OneJob, resolve, seconds


def session(node: str, **more: object) -> Session:
    told: dict[str, object] = {"handlers": ("work",), "expires_at": T0 + 10**12} | more
    return Session(name=f"session of {node}", node=node, host="h", pid=1, lease=15 * SECOND, **told)  # type: ignore[arg-type]


def claims(job: OneJob, node: str, *live: str, permit: str | None = None) -> object:
    """What a node gets that knows who lives and brings a permit."""
    by = Claimant(
        session=f"session of {node}", node=node, late_for=LATE_FOR * SECOND, alone=False,
        sessions=tuple(map(session, live)), permit=permit,
    )  # fmt: skip
    return job.apply(lambda doc: claim(doc, now=job.now, by=by, resolve=resolve))


def held(answer: object) -> Hold:
    assert isinstance(answer, Hold), answer
    return answer


# --- limits ----------------------------------------------------------------------------------------------------------


def test_a_job_with_a_limit_is_claimed_only_under_a_permit() -> None:
    job = OneJob("1m", limit="db-heavy:2").at(60)
    assert job.claim() == Needs(limit="db-heavy:2")
    assert held(claims(job, "a", permit="db-heavy:1")).permit == "db-heavy:1"


def test_a_retry_needs_a_permit_again() -> None:
    job = OneJob("1m", limit="db-heavy:1", retries=1).at(60)
    job.fail(held(claims(job, "a", permit="db-heavy:0")))
    assert job.at(62).claim("b") == Needs(limit="db-heavy:1")
    assert held(claims(job, "b", permit="db-heavy:0")).attempt == 2


def test_a_slot_that_waits_for_a_permit_counts_for_overlap() -> None:
    """Else an hour without a permit would be sixty runs afterwards."""
    job = OneJob("1m", limit="db-heavy:1").at(60)
    job.claim()
    assert isinstance(job.at(120).claim(), Needs)
    assert job.covered("skipped") == [(120, 120, 1)]
    assert job.reasons("skipped") == ["overlap: an earlier slot waits for a permit of db-heavy:1"]
    assert seconds(held(claims(job, "a", permit="db-heavy:0")).slot) == 60


# --- nodes -----------------------------------------------------------------------------------------------------------


def test_all_nodes_run_the_slot_each_its_own_part() -> None:
    job = OneJob("1m", nodes="all").at(60)
    holds = [held(claims(job, node, "a", "b", "c")) for node in ("a", "b", "c")]
    assert [(hold.node, hold.only) for hold in holds] == [("a", "a"), ("b", "b"), ("c", "c")]
    assert len({hold.run for hold in holds}) == 3
    assert len({group_of(hold.run) for hold in holds}) == 1
    assert {hold.shards for hold in holds} == {3}
    assert job.claim() is None


def test_who_lives_is_decided_once_for_each_slot() -> None:
    job = OneJob("1m", nodes="all").at(60)
    held(claims(job, "a", "a", "b"))
    late = claims(job, "c", "a", "b", "c")  # came a moment later: it has no part of this slot
    assert isinstance(late, Later)
    assert late.until <= job.now + 5 * SECOND


def test_a_node_that_knows_nobody_asks_who_lives() -> None:
    assert OneJob("1m", nodes=2).at(60).claim() == Needs(sessions=True)


def test_a_part_of_all_whose_node_is_gone_is_missed() -> None:
    job = OneJob("1m", nodes="all").at(60)
    job.finish(held(claims(job, "a", "a", "b")))
    assert claims(job, "a", "a") is None
    assert job.reasons("missed") == ["its node b is gone"]
    assert job.job.waiting_runs == ()


def test_two_nodes_of_three_and_the_third_steps_in() -> None:
    job = OneJob("1m", nodes=2).at(60)
    mine = held(claims(job, "a", "a", "b", "c"))
    (waiting,) = job.job.waiting_runs
    chosen = waiting.only
    assert chosen in ("b", "c")
    third = "c" if chosen == "b" else "b"
    assert isinstance(claims(job, third, "a", "b", "c"), Later)
    substitute = held(claims(job, third, "a", third))  # the chosen one has died
    assert substitute.run != mine.run
    assert substitute.only == third
    assert job.records("missed") == []


@pytest.mark.invariant("I1: a slot has one live claim at a time")
def test_two_parts_whose_nodes_died_together_move_to_two_nodes() -> None:
    job = OneJob("1m", nodes=3).at(60)
    held(claims(job, "a", "a", "b", "c"))
    held(claims(job, "d", "a", "d", "e"))
    held(claims(job, "e", "a", "d", "e"))
    assert sorted(hold.only or "" for hold in job.job.active) == ["a", "d", "e"]
    assert len({hold.run for hold in job.job.active}) == 3
    assert {frozenset(hold.among) for hold in job.job.active} == {frozenset("ade")}


def test_a_part_never_moves_to_a_node_that_has_one() -> None:
    job = OneJob("1m", nodes=2).at(60)
    held(claims(job, "a", "a", "b"))
    claims(job, "a", "a")
    assert job.reasons("missed") == ["its node b is gone"]


def test_only_nodes_of_the_pool_that_have_the_handler_count() -> None:
    job = OneJob("1m", nodes="all").at(60)
    by = Claimant(
        session="session of a", node="a", late_for=LATE_FOR * SECOND,
        sessions=(
            session("a"), session("b", pools=("other",)), session("c", handlers=("x",)), session("d", expires_at=0),
        ),
    )  # fmt: skip
    assert held(job.apply(lambda doc: claim(doc, now=job.now, by=by, resolve=resolve))).shards == 1


# --- prefer ----------------------------------------------------------------------------------------------------------


def test_the_node_that_ran_it_last_goes_first_and_another_after_a_moment() -> None:
    job = OneJob("1m", prefer="last").at(60)
    job.finish(job.claims("a"))
    job.at(120)
    assert claims(job, "b", "a", "b") == Later(T0 + 120 * SECOND + PREFER)
    assert held(claims(job, "a", "a", "b")).node == "a"


def test_another_takes_it_when_the_moment_is_over_or_the_last_one_is_gone() -> None:
    for live, at in ((("a", "b"), 121.0), (("b",), 120.0)):
        job = OneJob("1m", prefer="last").at(60)
        job.finish(job.claims("a"))
        assert held(claims(job.at(at), "b", *live)).node == "b"


@pytest.mark.invariant("I10: after an outage each slot fares as its policy promises")
def test_a_slot_that_is_left_to_another_node_goes_before_the_past_all_the_same() -> None:
    """Who may not take the live slot yet took a run of a backfill instead, and the live slot had to wait for it."""
    job = OneJob("1m", prefer="last").at(3600)
    job.run_all()
    job.apply(
        lambda doc: backfill.backfill(
            doc, start=T0, end=T0 + 600 * SECOND, limit=None, pace=None, request="b", now=job.now, resolve=job.by
        )
    )
    job.at(3660)
    assert claims(job, "b", "a", "b") == Later(T0 + 3660 * SECOND + PREFER)
    assert seconds(held(claims(job, "a", "a", "b")).slot) == 3660


def test_a_job_that_never_ran_is_anybodys() -> None:
    assert isinstance(OneJob("1m", prefer="last").at(60).claim("b"), Hold)


def test_the_document_survives_the_store_with_all_of_it() -> None:
    job = OneJob("1m", nodes=2, limit="db:1").at(60)
    held(claims(job, "a", "a", "b", permit="db:0"))
    read = decode(Kind.JOB, "work", *encode(job.job))
    assert isinstance(read, Job)
    assert read == job.job
