"""The write cache: what this client wrote last is recalled or spares the parsing, and none of it is believed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from solocron.clock import MILLISECOND, SECOND
from solocron.model.change import Absent, Change, Kind
from solocron.model.codec import decode, encode
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job, Request, WaitingRun
from solocron.model.documents.run import Origin
from solocron.model.documents.session import Life
from solocron.stores.contract import Doc, Named
from solocron.stores.drafts import Draft, Row, draft
from solocron.stores.write_cache import _MOST, WriteCache
from solocron.testing.conformance.kit import note, session

HOLD = Hold(
    run="j@1", slot=5, origin=Origin.SCHEDULE, attempt=1, tries=0, session="s", node="n", fence=9, claimed_at=6,
)  # fmt: skip
JOB = Job(name="j", incarnation=1, definition=Definition(handler="h", schedule=None), cursor=5, fence=9, active=(HOLD,))
LEASE = 15 * SECOND
ALL = frozenset(Kind)


class Boot:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def cache(boot: Boot | None = None, recalls: frozenset[Kind] = ALL) -> WriteCache:
    made = WriteCache(boot or Boot(), LEASE, recalls=recalls)
    made.observe(1_000 * SECOND)
    return made


def written(doc: Doc, kind: Kind = Kind.JOB) -> Draft:
    made = draft(kind, doc.name, None, lambda _, now: Change(doc), 0)
    assert made is not None
    assert made.error is None
    return made


def remember(kept: WriteCache, *docs: Doc, kind: Kind = Kind.JOB, by: str | None = "s") -> None:
    kept.remember([written(doc, kind) for doc in docs], lambda one: 7, by)


def row(doc: Doc, mark: int = 7) -> Row:
    return Row(doc.name, mark, *encode(doc))


def named(*names: str, kind: Kind = Kind.JOB) -> Named:
    return Named(kind, names)


class TestParsing:
    def test_the_same_texts_give_the_same_document_once(self) -> None:
        kept = cache()
        remember(kept, JOB)
        assert kept.parsed(Kind.JOB, row(JOB)) is JOB
        assert kept.parsed(Kind.JOB, row(JOB)) is None
        assert decode(Kind.JOB, "j", *encode(JOB)) == JOB

    @pytest.mark.parametrize("other", [replace(JOB, fence=10), replace(JOB, revision=2)])
    def test_texts_that_another_client_wrote_are_parsed(self, other: Job) -> None:
        kept = cache()
        remember(kept, JOB)
        assert kept.parsed(Kind.JOB, row(other)) is None


class TestRecall:
    def test_what_was_written_is_recalled_with_its_mark_at_a_time_that_the_server_has_reached(self) -> None:
        boot = Boot()
        kept = cache(boot)
        remember(kept, JOB)
        boot.now += 2
        found = kept.recall(named("j", "unknown"))
        assert found is not None
        assert found.rows == {"j": row(JOB)}
        assert 1_000 * SECOND < found.now <= 1_002 * SECOND
        assert found.latest is not None
        assert found.now < found.latest <= 1_003 * SECOND

    def test_all_or_none_where_the_store_asks_for_it(self) -> None:
        kept = cache()
        remember(kept, JOB)
        assert kept.recall(named("j", "unknown"), whole=True) is None
        assert kept.recall(named("j"), whole=True) is not None

    def test_a_job_that_others_hold_too_is_read(self) -> None:
        kept = cache()
        remember(kept, replace(JOB, active=(HOLD, replace(HOLD, run="j@2", session="t"))))
        assert kept.recall(named("j"), whole=True) is None

    def test_nothing_is_recalled_after_a_lease_or_without_the_servers_time(self) -> None:
        boot = Boot()
        kept = cache(boot)
        remember(kept, JOB)
        boot.now += 16
        assert kept.recall(named("j")) is None
        kept.observe(1_016 * SECOND)
        assert kept.recall(named("j")) is None
        assert WriteCache(boot, LEASE, recalls=ALL).recall(named("j")) is None

    def test_only_kinds_that_the_store_can_write_without_a_read(self) -> None:
        kept = cache(recalls=frozenset({Kind.SESSION}))
        remember(kept, JOB)
        assert kept.recall(named("j")) is None
        assert kept.parsed(Kind.JOB, row(JOB)) is JOB

    def test_what_is_forgotten_is_read(self) -> None:
        kept = cache()
        remember(kept, JOB)
        kept.forget()
        assert kept.recall(named("j")) is None


class TestTime:
    def test_it_is_never_ahead_of_a_server_whose_clock_runs_a_thousandth_slower(self) -> None:
        boot = Boot()
        kept = cache(boot)
        assert kept.time == 1_000 * SECOND
        boot.now += 10
        assert kept.time is not None
        assert 1_009 * SECOND < kept.time <= 1_000 * SECOND + int(9.99 * SECOND) - 2 * MILLISECOND


@pytest.mark.parametrize(
    "job",
    [
        replace(JOB, active=()),
        replace(JOB, active=(replace(HOLD, payload={"a": (1,)}),)),
        replace(JOB, waiting_runs=(WaitingRun(run="j@2", slot=7, origin=Origin.TRIGGER, ready_at=7),)),
        replace(JOB, requests=(Request(id="r", answer="a"),)),
        replace(JOB, extra={"new": [1]}),
    ],
)
def test_what_might_come_back_differently_is_not_kept(job: Job) -> None:
    kept = cache()
    remember(kept, job)
    assert kept.parsed(Kind.JOB, row(job)) is None


def test_a_job_is_kept_only_where_a_session_claimed_it() -> None:
    kept = cache()
    remember(kept, JOB, by=None)
    assert kept.recall(named("j")) is None


def test_a_session_is_kept_while_it_lives_and_was_written_alone() -> None:
    kept, live = cache(), session("s", expires_at=9)
    remember(kept, live, kind=Kind.SESSION, by=None)
    assert kept.recall(named("s", kind=Kind.SESSION)) is not None
    remember(kept, live, session("t", expires_at=9), kind=Kind.SESSION, by=None)
    assert kept.recall(named("s", "t", kind=Kind.SESSION)) is None
    remember(kept, replace(live, state=Life.DEAD), kind=Kind.SESSION, by=None)
    assert kept.recall(named("s", kind=Kind.SESSION)) is None


def test_a_lock_is_kept_while_it_is_held() -> None:
    kept = cache()
    remember(kept, note(Kind.LOCK, "l", {"token": "t"}), kind=Kind.LOCK, by=None)
    assert kept.recall(named("l", kind=Kind.LOCK)) is not None
    remember(kept, note(Kind.LOCK, "l", {"token": None}), kind=Kind.LOCK, by=None)
    assert kept.recall(named("l", kind=Kind.LOCK)) is None


def test_what_is_deleted_or_has_no_known_mark_is_dropped() -> None:
    kept = cache()
    remember(kept, JOB)
    gone = draft(Kind.JOB, "j", row(JOB), lambda doc, now: Change(None), 0)
    assert gone is not None
    kept.remember([gone], lambda one: 8, "s")
    assert kept.recall(named("j")) is None
    kept.remember([written(JOB)], lambda one: None, "s")
    assert kept.recall(named("j")) is None
    assert isinstance(written(JOB).doc, Absent)


def test_no_more_is_kept_than_a_node_runs_at_once() -> None:
    kept = cache()
    for number in range(_MOST + 1):
        remember(kept, replace(JOB, name=f"j{number}"))
    assert kept.recall(named("j0")) is None
    assert kept.recall(named(f"j{_MOST}")) is not None
