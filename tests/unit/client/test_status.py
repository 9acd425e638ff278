"""A status costs what it shows: closed hours are counted once, and a large namespace is not read for every look."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, timedelta

import pytest

from solocron import InvalidError, Scheduler
from solocron.client import Client
from solocron.client.hour_counts import HOUR, MINUTE, HourCounts
from solocron.clock import SECOND, from_us
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Pause
from solocron.model.documents.run import Status
from solocron.stores.contract import Store
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import counts_of, job, put, record

NOON = 20_000 * 24 * HOUR + 12 * HOUR


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Store:
    return make_store(f"memory://{request.node.name}")


def cost(store: Store, call: Callable[[], object]) -> int:
    before = store.statements.total()
    call()
    return store.statements.total() - before


def documents_read(store: Store) -> list[int]:
    """Return a list that gets the number of documents of every read from now on."""
    read: list[int] = []
    original = store.read

    def counting(which: object) -> object:
        found = original(which)  # type: ignore[arg-type]
        read.append(len(found))
        return found

    store.read = counting  # type: ignore[method-assign,assignment]
    return read


def test_a_closed_hour_is_counted_once_and_the_sum_is_exact(store: Store) -> None:
    """It begins with a whole minute: else the part before the first closed one were counted again for every look."""

    def exact(now: int) -> dict[str, int]:
        return counts_of(store, (now - 24 * HOUR) // MINUTE * MINUTE)

    times = [NOON - 24 * HOUR - 1, NOON - 24 * HOUR, NOON - 5 * HOUR, NOON - 5 * HOUR + 1, NOON - 1, NOON]
    put(store, job("j"), records=tuple(record(f"j@{i}", at=at, status=Status.FAILED) for i, at in enumerate(times)))
    counts = HourCounts(store)
    for now in (NOON, NOON + 1, NOON + 30 * 60 * SECOND, NOON + 3 * HOUR):
        assert counts.total(now - 24 * HOUR, now) == exact(now), now
    assert cost(store, lambda: counts.total(NOON - 21 * HOUR, NOON + 3 * HOUR)) == 1
    put(store, job("j"), records=(record("j@late", at=NOON + 3 * HOUR - 1),))
    assert counts.total(NOON, NOON + 3 * HOUR)["succeeded"] == 1, "an hour that has just ended is not final"
    for step in range(0, 3 * HOUR, 7 * MINUTE + 13):
        now = NOON + 3 * HOUR + step
        assert counts.total(now - 24 * HOUR, now) == exact(now), now
    counts.total(NOON - 17 * HOUR, NOON + 7 * HOUR + 5 * MINUTE)
    assert cost(store, lambda: counts.total(NOON - 17 * HOUR, NOON + 7 * HOUR + 7 * MINUTE)) == 1
    by_hour = counts.by_hour(NOON - 5 * HOUR, NOON + 3 * HOUR)
    assert by_hour == dict(store.tally_by_time(NOON - 5 * HOUR, NOON + 3 * HOUR + 1, HOUR))


def test_a_large_namespace_is_read_once_a_minute_and_counted_each_time(store: Store) -> None:
    put(store, *(job(f"j{number:04}") for number in range(300)))
    client = Client(store)
    first = client.status()
    assert (first.jobs, len(first.orphaned)) == (300, 300)
    again = cost(store, client.status)
    assert again <= 13, "four of them ask for the time"
    put(store, job("k", paused=Pause(at=1)), job("l", due_at=5))
    found = client.status()
    assert (found.jobs, found.paused, found.overdue) == (302, ("k",), ("l",))
    assert cost(store, client.status) == again + 1, "one more for the names of what is paused"


def test_limits_and_backfills_of_a_large_namespace_are_listed_at_the_cost_of_what_they_show(store: Store) -> None:
    put(store, *(job(f"j{number:04}") for number in range(300)))
    client = Client(store)
    client.add("limited", "h", "0 * * * *", limit="disk:1")
    assert [limit.jobs for limit in client.limits()] == [("limited",)]
    assert client.backfills() == []
    start = from_us(store.clock()) - timedelta(days=2)
    client.backfill("limited", start, start + timedelta(hours=6))
    assert [one.job for one in client.backfills()] == ["limited"]
    read = documents_read(store)
    assert [one.job for one in client.backfills()] == ["limited"]
    assert [limit.waiting for limit in client.limits()] == [6]
    assert sum(read) <= 3


def test_a_removed_job_does_not_count(store: Store) -> None:
    put(store, job("here"), job("gone", removed=True))
    found = Client(store).status()
    assert (found.jobs, found.orphaned) == (1, ("here",))


def test_what_runs_shows_its_session_and_how_much_of_the_lease_is_left() -> None:
    begun, end = threading.Event(), threading.Event()
    scheduler = Scheduler("memory://held-by", node="kitchen", lease="30s")

    @scheduler.every("1000d", name="long")
    def long() -> None:
        begun.set()
        assert end.wait(60)

    with scheduler:
        run = scheduler.trigger("long")
        assert begun.wait(60)
        (held,) = scheduler.status().running
        (same,) = scheduler.get_job("long").running
        (node,) = scheduler.nodes()
        assert (held.run, held.node, held.session, same.session) == (run, "kitchen", node.session, node.session)
        assert held.lease_left_s is not None
        assert 0 < held.lease_left_s <= 30
        end.set()
        scheduler.wait(run, 60)
    assert scheduler.get_job("long").running == ()


STATES = {
    "paused": {"p", "both"},
    "failing": {"f", "both"},
    "disabled": {"d"},
    "late": {"l"},
    "paused,late": {"p", "both", "l"},
}


@pytest.mark.parametrize("states", STATES)
def test_states_with_an_index_read_only_the_jobs_that_they_find(store: Store, states: str) -> None:
    from solocron.client.job_listing import WantedJobs

    put(store, *(job(f"x{number:03}") for number in range(100)))
    put(store, job("p", paused=Pause(at=1)), job("f", failures=2), job("both", paused=Pause(at=1), failures=1))
    put(
        store,
        job("d", definition=Definition(handler="h", schedule=None, enabled=False)),
        job("l", due_at=5),
        job("gone", removed=True),
    )
    wanted = WantedJobs(states=frozenset(states.split(",")))
    client = Client(store)
    read = documents_read(store)
    assert {one.name for one in client.job_page(wanted).jobs} == STATES[states]
    assert sum(read) <= len(STATES[states]) + 2
    first = client.job_page(wanted, limit=1)
    assert first.next in (None, first.jobs[0].name)


def test_a_pause_of_many_is_found_among_all(store: Store) -> None:
    from solocron.client.job_listing import WantedJobs

    put(store, *(job(name) for name in ("a:1", "a:2", "b")))
    client = Client(store)
    client.pause_all(match="a:*")
    assert [one.name for one in client.job_page(WantedJobs(states=frozenset(["paused"]))).jobs] == ["a:1", "a:2"]


def test_runs_of_a_node_an_origin_and_a_span() -> None:
    scheduler = Scheduler("memory://filtered", node="kitchen")
    scheduler.every("1000d", name="a")(lambda: None)
    scheduler.tick()
    run = scheduler.trigger("a")
    scheduler.tick()
    now = scheduler.status().now + timedelta(seconds=1)
    assert [one.run for one in scheduler.runs(origin="trigger", node="kitchen", until=now)] == [run]
    assert (
        scheduler.runs(node="other") == scheduler.runs(origin=("rerun", "backfill")) == scheduler.runs(since=now) == []
    )
    assert [one.attempt for one in scheduler.attempts(run)] == [1]
    assert scheduler.why("a").status == "not defined"
    assert scheduler.accounting(now - timedelta(days=1)).due == 0
    assert scheduler.slots("a", now, now + timedelta(days=1)) == []
    assert [node.state for node in scheduler.nodes(ended=True)] == ["ended", "ended"]
    assert scheduler.audit().entries == ()
    with pytest.raises(InvalidError, match="no time zone"):
        scheduler.runs(since=now.replace(tzinfo=None))
    with pytest.raises(InvalidError, match="nowhere"):
        scheduler.runs(origin="nowhere")
    assert now.tzinfo is UTC
