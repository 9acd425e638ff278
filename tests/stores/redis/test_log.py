"""The log in Redis: long histories come in pages, further attempts are found, pruning steps over what ended later."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from solocron.model.change import Change, Kind
from solocron.model.documents.run import Record, Status
from solocron.model.documents.session import Life
from solocron.stores.contract import Named, Query, Verdict
from solocron.stores.memory import MemoryStore
from solocron.stores.redis import RedisStore
from solocron.testing.conformance.kit import counts_of, job, log, put, record, session
from tests.servers import Redis


@pytest.fixture
def url(redis_server: Redis) -> str:
    return redis_server.fresh_url()


@pytest.fixture
def store(url: str) -> Iterator[RedisStore]:
    store = RedisStore(url)
    store.open()
    yield store
    store.close()


def write(store: RedisStore | MemoryStore, *records: Record) -> None:
    (result,) = store.update(Named(Kind.JOB, ("j",)), lambda doc, now: Change(job("j"), records)).results
    assert result.verdict is Verdict.APPLIED


def test_a_long_history_is_the_same_as_in_memory(store: RedisStore) -> None:
    """More records than fit into a page, of several statuses, many at the same instant."""
    memory = MemoryStore()
    statuses = [Status.SUCCEEDED, Status.SUCCEEDED, Status.FAILED, Status.SKIPPED]
    records = [
        record(f"j@{i % 700:03}", attempt=1 + i // 700, at=i // 3, status=statuses[i % 4], job=f"job{i % 2}")
        for i in range(1300)
    ]
    for each in (store, memory):
        write(each, *records)
    for query in (
        Query(limit=40),
        Query(limit=1200),
        Query(limit=5000),
        Query(limit=700, statuses=frozenset({"failed"})),
        Query(limit=300, job="job1", statuses=frozenset({"skipped"})),
        Query(limit=600, job="job0"),
        Query(limit=900, since=100, until=400),
        Query(limit=10, job="job1", statuses=frozenset({"lost"})),
        Query(limit=0),
        Query(limit=30, before=(200, "j@600", 1)),
        Query(limit=30, before=(200, "j@600", 1), statuses=frozenset({"failed", "skipped"})),
        Query(limit=30, runs=("j@001", "j@002"), statuses=frozenset({"failed"})),
        Query(limit=5, origins=frozenset({"rerun"}), scan=100),
    ):
        assert store.history(query) == memory.history(query), query


def test_every_attempt_of_a_run_is_found_and_kept_track_of(store: RedisStore, url: str) -> None:
    write(store, *(record("r@1", attempt=i, at=i, status=Status.FAILED) for i in (1, 2, 3, 10, 11, 120)))
    assert [each.attempt for each in log(store, run="r@1")] == [120, 11, 10, 3, 2, 1]
    assert store.prune(before=11, limit=100) == 4
    assert [each.attempt for each in log(store, run="r@1")] == [120, 11]
    assert store.prune(before=1000, limit=100) == 2
    with redis.Redis.from_url(url) as client:
        assert client.keys("*r@1*") == [], "nothing of a pruned run is left behind"


def test_a_summary_counts_its_slots_until_it_is_pruned(store: RedisStore) -> None:
    write(store, record("a@1", at=5, status=Status.LOST, count=7), record("b@1", at=5, status=Status.MISSED, count=40))
    assert counts_of(store) == {"lost": 7, "missed": 40}
    assert counts_of(store, 6) == {}
    assert store.prune(before=100, limit=10) == 2
    assert counts_of(store) == {}


@pytest.mark.invariant("I12: what was recorded stays recorded")
def test_records_of_a_document_that_is_refused_leave_no_trace(store: RedisStore, url: str) -> None:
    """The list of the second record's job was spoiled by another program: the first record is taken back."""
    put(store, job("k"), records=(record("taken@1", job="k"),))
    with redis.Redis.from_url(url) as client:
        client.set("{solocron:default}:log:other", "spoiled")
        before = {key: client.dump(key) for key in client.keys("*:run:*") + client.keys("*:log:*")}
        records = (record("fresh@1", job="j"), record("fresh@2", job="other"))
        (result,) = store.update(Named(Kind.JOB, ("j",)), lambda doc, now: Change(job("j"), records)).results
        assert result.verdict is Verdict.BLOCKED
        assert "WRONGTYPE" in (result.error or "")
        assert {key: client.dump(key) for key in client.keys("*:run:*") + client.keys("*:log:*")} == before
    assert [each.run for each in log(store)] == ["taken@1"]


def test_a_duplicate_moves_nothing_in_any_list(store: RedisStore, url: str) -> None:
    put(store, job("k"), records=(record("taken@1", job="k"),))
    with redis.Redis.from_url(url) as client:
        keys = ("run", "log", "status", "spans")
        before = {key: client.dump(key) for kind in keys for key in client.keys(f"*:{kind}*")}
        again = record("taken@1", job="other", at=99, status=Status.FAILED, count=5)
        (result,) = store.update(Named(Kind.JOB, ("j",)), lambda doc, now: Change(job("j"), (again,))).results
        assert (result.verdict, [first.job for first in result.duplicates]) == (Verdict.APPLIED, ["k"])
        assert {key: client.dump(key) for kind in keys for key in client.keys(f"*:{kind}*")} == before


def test_a_swept_session_is_pruned_with_everything_of_it(store: RedisStore, url: str) -> None:
    put(store, session("s", expires_at=5), session("old", expires_at=5, state=Life.SWEPT, ended_at=6))
    store.prune(before=7, limit=10)
    assert [doc.name for doc in store.read(Named(Kind.SESSION, ("s", "old")))] == ["s"]
    with redis.Redis.from_url(url) as client:
        assert client.keys("*:session:old") == []
        assert client.zrange("{solocron:default}:swept", 0, -1) == []
