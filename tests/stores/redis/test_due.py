"""Finding what is due in Redis: the right jobs in the right order, at a cost that grows with what is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from solocron import Lock
from solocron.clock import SECOND
from solocron.effects.locks.held import HELD
from solocron.effects.locks.listing import force_release
from solocron.model.change import Change, Kind
from solocron.model.documents.job import Job
from solocron.model.documents.session import Session, begin, renew
from solocron.stores.contract import Due, Named, Verdict
from solocron.stores.redis import RedisStore
from solocron.testing.conformance.kit import everything, job, put, session, take
from tests.properties import calm
from tests.servers import Redis

HANDLERS, POOLS = ("h", "g", "h:g", "é"), ("default", "a", "a:b")


@pytest.fixture
def url(redis_server: Redis) -> str:
    return redis_server.fresh_url()


@pytest.fixture
def store(url: str) -> Iterator[RedisStore]:
    store = RedisStore(url)
    store.open()
    yield store
    store.close()


@pytest.fixture
def raw(url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(url, decode_responses=True) as client:
        yield client


jobs = st.lists(
    st.tuples(st.integers(0, 40), st.integers(-6, 3), st.sampled_from(HANDLERS), st.sampled_from(POOLS)),
    max_size=40,
    unique_by=lambda each: each[0],
)


@calm(60, HealthCheck.function_scoped_fixture)
@given(
    jobs=jobs,
    moves=jobs,
    handlers=st.frozensets(st.sampled_from(HANDLERS)),
    pools=st.frozensets(st.sampled_from(POOLS)),
    limit=st.integers(0, 12),
    exclude=st.frozensets(st.integers(0, 40).map(lambda i: f"j{i}"), max_size=6),
)
def test_the_selection_is_what_a_list_of_all_jobs_would_give(
    store: RedisStore,
    raw: redis.Redis,
    jobs: list[tuple[int, int, str, str]],
    moves: list[tuple[int, int, str, str]],
    handlers: frozenset[str],
    pools: frozenset[str],
    limit: int,
    exclude: frozenset[str],
) -> None:
    """Whatever the jobs' handlers, pools and instants are and were: same jobs, same order, same next instant."""
    raw.flushdb()
    store.close()
    now = store.clock()
    docs = {}
    for each in (jobs, moves):
        new = [job(f"j{i}", due_at=now + at * 60 * SECOND, handler=h, pool=p) for i, at, h, p in each]
        put(store, *new)
        docs |= {doc.name: doc for doc in new}
    mine = sorted(
        (doc.due_at, doc.name)
        for doc in docs.values()
        if doc.due_at is not None
        and doc.definition.handler in handlers
        and doc.definition.pool in pools
        and doc.name not in exclude
    )
    due = [name for at, name in mine if at <= now][:limit]
    rest = [at for at, name in mine if name not in due]
    which = Due(handlers=handlers, pools=pools, limit=limit, exclude=exclude)
    assert [doc.name for doc in store.read(which)] == due
    applied = store.update(which, lambda doc, now: None)
    assert [result.name for result in applied.results] == due
    assert applied.next_due == min(rest, default=None)


def test_handlers_that_nobody_here_has_do_not_starve_the_others(store: RedisStore) -> None:
    now = store.clock()
    put(store, *(job(f"old{i:04}", due_at=now - 90 * SECOND, handler=f"gone{i % 300}") for i in range(1500)))
    put(store, *(job(f"new{i}", due_at=now - SECOND) for i in range(3)))
    assert take(store, "s", everything(limit=2)) == ["new0", "new1"]
    assert take(store, "s", everything(limit=2)) == ["new2"]
    assert store.update(everything(limit=2), lambda doc, now: None).next_due is None


def test_the_cost_of_a_look_does_not_grow_with_the_jobs_that_are_stored(store: RedisStore, raw: redis.Redis) -> None:
    """A thousand handlers of our own, as many that we do not have: commands of one fetch, counted by the server."""
    handlers = frozenset(f"mine{i}" for i in range(1000))
    now = store.clock()

    def commands(which: Due) -> int:
        raw.config_resetstat()
        store._access.fetch_due(which, "", reserve=False)
        return sum(s["calls"] for name, s in raw.info("commandstats").items() if not name.startswith("cmdstat_config"))

    which = Due(handlers=handlers, pools=frozenset({"default"}), limit=20)
    put(store, *(job(f"a{i:03}", due_at=now - SECOND, handler=f"mine{i}") for i in range(100)))
    commands(which)
    few = commands(which)
    put(store, *(job(f"b{i:04}", due_at=now - SECOND, handler=f"mine{i % 1000}") for i in range(4000)))
    many = commands(which)
    assert many <= few + 5
    assert few <= 3 * 20 + 10
    put(store, *(job(f"0{i:04}", due_at=now - 9 * SECOND, handler=f"other{i % 1000}") for i in range(4000)))
    foreign = commands(which)
    assert foreign <= many + 2 * (1000 // 128 + 1)


def test_a_set_of_handlers_that_the_server_forgot_is_told_again(store: RedisStore, raw: redis.Redis) -> None:
    put(store, job("j", due_at=store.clock() - SECOND))
    assert [doc.name for doc in store.read(everything())] == ["j"]
    (key,) = raw.keys("{solocron:default}:handlers:*")
    assert raw.ttl(key) > 86_400
    raw.delete(key)
    assert take(store, "s") == ["j"]


def test_a_whole_life_of_a_hundred_runs_takes_three_calls(url: str) -> None:
    store = RedisStore(url, lease=timedelta(seconds=15))
    put(store, *(job(f"j{i:02}", due_at=store.clock() - SECOND) for i in range(100)))
    put(store, session("s", expires_at=store.clock() + 60 * SECOND))
    take(store, "s")
    put(store, *(job(f"j{i:02}", due_at=store.clock() - SECOND) for i in range(100)))
    store.statements.clear()
    got = take(store, "s", session="s")
    ended = store.update(Named(Kind.JOB, tuple(got)), lambda doc, now: Change(replace(doc, active=())))
    assert {result.verdict for result in ended.results} == {Verdict.APPLIED}
    assert len(got) == 100
    assert store.statements == {"fetch": 1, "swap": 2, "commit": 2}
    store.close()


@pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
def test_what_a_client_remembers_of_a_claim_is_refused_when_it_is_old(url: str) -> None:
    """The claim was changed, made anew or removed meanwhile: its end is decided from what the store has now."""
    with closing(RedisStore(url)) as ours, closing(RedisStore(url)) as theirs:
        put(ours, *(job(name, due_at=ours.clock() - SECOND) for name in ("changed", "removed", "same")))
        put(ours, session("s", expires_at=ours.clock() + 60 * SECOND))
        assert sorted(take(ours, "s", session="s")) == ["changed", "removed", "same"]
        theirs.update(Named(Kind.JOB, ("changed",)), lambda doc, now: Change(replace(doc, fence=77)))
        theirs.update(Named(Kind.JOB, ("removed",)), lambda doc, now: Change(None))
        seen = []

        def end(doc: Any, now: int) -> Change | None:
            seen.append(doc)
            return Change(replace(doc, active=())) if isinstance(doc, Job) else None

        before = ours.clock()
        ended = ours.update(Named(Kind.JOB, ("changed", "removed", "same")), end)
        assert before <= ended.now <= ours.clock()
        assert {result.name: result.verdict for result in ended.results} == {
            "changed": Verdict.APPLIED,
            "removed": Verdict.DECLINED,
            "same": Verdict.APPLIED,
        }
        (changed,) = theirs.read(Named(Kind.JOB, ("changed",)))
        assert isinstance(changed, Job)
        assert (changed.fence, changed.active) == (77, ())
        assert [getattr(doc, "fence", None) for doc in seen[-2:]] == [77, None]


@pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
def test_a_claim_is_not_ended_by_a_time_that_the_server_has_not_reached(url: str) -> None:
    with closing(RedisStore(url)) as store:
        put(store, job("j", due_at=store.clock() - SECOND), session("s", expires_at=store.clock() + 60 * SECOND))
        assert take(store, "s", session="s") == ["j"]
        store._cache.observe(store.clock() + 60 * SECOND)  # its clock was put back, or another server answers now
        times = []

        def end(doc: Any, now: int) -> Change:
            times.append(now)
            return Change(replace(doc, active=()))

        ended = store.update(Named(Kind.JOB, ("j",)), end)
        assert ended.results[0].verdict is Verdict.APPLIED
        assert times[-1] == ended.now <= store.clock()


def test_a_lock_is_taken_with_two_calls_and_let_go_with_one(url: str) -> None:
    with closing(Lock(url, "door")) as lock:
        with lock:
            pass
        statements = lock.place.store.statements
        statements.clear()
        with lock as held:
            assert statements == {"fetch": 1, "swap": 1, "commit": 1}
        assert statements == {"fetch": 1, "swap": 2, "commit": 2}
        with lock as again:
            assert again.fence > held.fence


@pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
def test_what_a_client_remembers_of_a_lock_is_refused_when_it_is_old(url: str) -> None:
    """Released by force meanwhile, and taken by another client: the old holder's release changes nothing."""
    with closing(Lock(url, "door")) as ours, closing(Lock(url, "door")) as theirs:
        held = ours.acquire()
        assert held is not None
        force_release(theirs.place.store, theirs.place.runtime, "door", reason="to see what happens")
        HELD.set(())  # what this thread holds, so that it may ask again
        other = theirs.acquire()
        assert other is not None
        assert held.release() is False
        other.check()
        assert other.release() is True


def test_a_lock_that_was_taken_when_the_servers_clock_stood_elsewhere_is_looked_at_again(url: str) -> None:
    """Our idea of the time is wrong by a minute: the server says so, and the release asks first."""
    with closing(Lock(url, "door")) as lock:
        held = lock.acquire()
        assert held is not None
        store = lock.place.store
        assert isinstance(store, RedisStore)
        store._cache.observe(store.clock() + 60 * SECOND)
        store.statements.clear()
        assert held.release() is True
        assert store.statements == {"fetch": 1, "swap": 2, "commit": 2}


def test_a_session_is_renewed_with_one_call_that_also_tells_what_it_holds(store: RedisStore) -> None:
    """From the second renewal on; and if our idea of the time is wrong by a minute, the server is asked first."""
    which = Named(Kind.SESSION, ("s",))
    described = Session(name="s", node="n", host="h", pid=1, lease=15 * SECOND)
    store.update(which, lambda doc, now: begin(doc, described, now=now))
    for ahead, sent in ((0, {"swap": 1, "commit": 1}), (60, {"fetch": 1, "swap": 2, "commit": 2})):
        before = store.clock()
        store._cache.observe(before + ahead * SECOND)
        store.statements.clear()
        applied = store.update(which, lambda doc, now: renew(doc, now=now))
        assert store.statements == sent
        assert applied.holds is False
        (after,) = store.read(which)
        assert isinstance(after, Session)
        assert before + 14 * SECOND < after.expires_at <= store.clock() + 15 * SECOND


def test_a_notification_that_fell_into_a_gap_is_seen_after_it(store: RedisStore, url: str, raw: redis.Redis) -> None:
    other = RedisStore(url)
    try:
        assert store.wait(0) is False
        raw.client_kill_filter(_type="pubsub")
        other.signal()
        assert store.wait(30.0) is True
        assert store.wait(0) is False
    finally:
        other.close()


def test_a_notification_in_another_database_of_the_server_wakes_no_client_here_and_hides_none(
    store: RedisStore, url: str, redis_server: Redis
) -> None:
    """Channels belong to the server, not to a database; the numbers of notifications belong to the database."""
    with closing(RedisStore(redis_server.fresh_url())) as elsewhere, closing(RedisStore(url)) as other:
        while store.wait(0):
            pass
        for _ in range(50):
            elsewhere.signal()
        assert store.wait(0.05) is False
        other.signal()
        assert store.wait(30.0) is True


def test_what_a_client_did_itself_is_no_news_to_it(store: RedisStore, url: str) -> None:
    other = RedisStore(url)
    other.open()
    try:
        while store.wait(0):
            pass
        put(store, job("j", due_at=store.clock() + 60 * SECOND))
        assert store.wait(0.05) is False
        assert other.wait(30.0) is True
        store.signal()
        assert store.wait(30.0) is True
    finally:
        other.close()


def test_a_namespace_with_nothing_but_notifications_is_none(store: RedisStore) -> None:
    """A client that only looked at a mistyped namespace, or woke its nodes, has made nothing there."""
    store.open()
    store.signal()
    assert store.namespaces() == frozenset()
    put(store, job("j"))
    assert store.namespaces() == {"default"}


def test_a_claim_that_others_need_not_know_of_notifies_none(store: RedisStore, raw: redis.Redis) -> None:
    put(store, job("j", due_at=store.clock() - SECOND))
    notifications = raw.get("{solocron:default}:notifications")
    assert notifications is not None, "the new job has notified the other clients"
    assert take(store, "s") == ["j"]

    def later(doc: Any, now: int) -> Change:
        return Change(replace(doc, active=()))

    store.update(Named(Kind.JOB, ("j",)), later)
    assert raw.get("{solocron:default}:notifications") == notifications
