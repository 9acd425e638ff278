"""A trigger that a transaction left: held by one, turned into one run, on record where it cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from solocron.model.change import Absent, Kind, SmallDocument
from solocron.model.codec import decode, encode
from solocron.model.documents import request
from solocron.model.documents.job import Job
from solocron.model.documents.run import Origin, run_id
from solocron.model.policy import QUEUE_LIMIT
from solocron.model.transitions.commands import REMEMBERED
from tests.unit.model.one_job import OneJob, resolve

GONE = Absent(Kind.REQUEST, "x")


def left(job: Job, number: int, *, key: str | None = None, at: int | None = None, payload: Any = None) -> SmallDocument:
    asked = key or f"r{number}"
    return request.leave(
        run=run_id(job.name, job.incarnation, Origin.TRIGGER, asked), request=asked, payload=payload, at=at,
        keyed=key is not None, asked=(number, 0), token=f"t{number}",
    )  # fmt: skip


def take_in(job: OneJob, *notes: SmallDocument) -> list[str]:
    """What a node does with them; the statuses of what was put on record instead of run."""
    change = request.accept(job.job, left=notes, now=job.now, resolve=resolve)
    assert change is not None
    assert isinstance(change.doc, Job)
    job.doc = change.doc
    return [record.status for record in change.records]


def test_it_becomes_a_run_with_its_payload_in_the_order_of_asking() -> None:
    job = OneJob("1h", overlap="queue-all").at(100)
    assert take_in(job, left(job.job, 2, payload="b"), left(job.job, 1, payload="a")) == []
    first = job.claims()
    job.finish(first)
    assert (first.payload, job.claims().payload) == ("a", "b")


@pytest.mark.invariant("I13: a repeated request has no second effect")
def test_the_same_key_twice_is_one_run_in_one_go_and_in_two() -> None:
    job = OneJob("1h").at(100)
    take_in(job, left(job.job, 1, key="k"), left(job.job, 2, key="k"))
    take_in(job, left(job.job, 3, key="k"))
    assert job.run_all() == [100]


def test_a_later_instant_is_kept() -> None:
    job = OneJob("1h").at(100)
    take_in(job, left(job.job, 1, at=job.now + 50_000_000))
    assert job.at(149).run_all() == []
    assert job.at(151).run_all() == [150]


@pytest.mark.invariant("I10: after an outage each slot fares as its policy promises")
def test_what_a_caller_would_have_been_refused_is_on_record_once() -> None:
    job = OneJob("1h", enabled=False).at(100)
    notes = [left(job.job, number) for number in range(REMEMBERED + 5)]
    assert take_in(job, *notes, notes[0]) == ["skipped"] * (REMEMBERED + 5)
    full = OneJob("1h").at(100)
    many = [left(full.job, number, at=full.now + 1) for number in range(QUEUE_LIMIT + 1)]
    assert take_in(full, *many) == ["dropped"]


def test_one_that_was_asked_of_an_earlier_job_of_that_name_is_not_for_this_one() -> None:
    job = OneJob("1h").at(100)
    stranger = request.leave(
        run=run_id("work", job.job.incarnation + 1, Origin.TRIGGER, "r"), request="r", payload=None, at=None,
        keyed=False, asked=(1, 1), token="t",
    )  # fmt: skip
    assert not request.is_of(stranger, job.job)
    take_in(job, stranger)
    assert job.run_all() == []
    assert request.accept(Absent(Kind.JOB, "work"), left=[stranger], now=job.now, resolve=resolve) is None


@pytest.mark.invariant("I1: a slot has one live claim at a time")
def test_one_node_holds_it_until_it_is_buried() -> None:
    note = left(OneJob("1h").job, 1)
    held = request.hold(note, session="a")
    assert held is not None
    assert isinstance(held.doc, SmallDocument)
    assert request.hold(held.doc, session="b") is None
    assert request.orphan(held.doc, session="b", now=1) is None
    assert request.taken_in(held.doc, session="b") is None
    assert request.taken_in(note, session="a") is None
    freed = request.orphan(held.doc, session="a", now=1)
    assert freed is not None
    assert isinstance(freed.doc, SmallDocument)
    again = request.hold(freed.doc, session="b")
    assert again is not None
    assert isinstance(again.doc, SmallDocument)
    done = request.taken_in(again.doc, session="b")
    assert done is not None
    assert done.doc is None


@pytest.mark.parametrize("key", [None, "k"])
def test_only_the_first_holder_of_a_request_without_a_key_knows_that_its_run_is_new(key: str | None) -> None:
    note: Any = left(OneJob("1h").job, 1, key=key)
    seen = []
    for _ in range(2):
        note = request.hold(note, session="a").doc  # type: ignore[union-attr]
        seen.append(request.may_be_known(note))
    assert seen == [key is not None, True]


def test_one_that_is_gone_is_nobodys() -> None:
    assert request.hold(GONE, session="a") is None
    assert request.orphan(GONE, session="a", now=1) is None
    assert request.taken_in(GONE, session="a") is None


def test_it_is_kept_as_any_other_document_and_found_by_its_run() -> None:
    note = left(OneJob("1h").job, 1, key="ö", at=5, payload={"a": [1]})
    assert decode(Kind.REQUEST, note.name, *encode(note)) == note
    assert note.name.startswith(request.first_name(request.run_named(note)))
    assert request.job_named(note) == "work"
