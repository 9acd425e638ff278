"""What a page of the service asks of a store costs a known number of statements, whatever the store holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from solocron.client import Client
from solocron.clock import from_us
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Pause
from solocron.model.documents.run import Status
from solocron.model.documents.session import Life
from solocron.stores.contract import Mark, RecentSessions, Store
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import counts_of, job, put, record, session
from tests.servers import Redis

Read = Callable[[Store], Any]


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = f"sqlite:///{tmp_path}/jobs.db"
    if request.param == "redis":
        server: Redis = request.getfixturevalue("redis_server")
        url = server.fresh_url()
    found = make_store(url)
    found.open()
    statuses = (Status.SUCCEEDED, Status.FAILED, Status.MISSED)
    put(found, job("j"), records=tuple(record(f"j@{i:03}", at=i, status=statuses[i % 3]) for i in range(300)))
    yield found
    found.close()


def cost(store: Store, read: Read) -> int:
    before = store.statements.total()
    assert read(store)
    return store.statements.total() - before


@pytest.mark.parametrize(
    "read",
    [lambda store: counts_of(store), lambda store: counts_of(store, 10, 20), lambda s: s.tally_by_time(0, 300, 10)],
    ids=["all", "a span", "its parts"],
)
def test_counts_cost_one_statement(store: Store, read: Read) -> None:
    assert cost(store, read) == 1


def test_sessions_cost_their_names_and_themselves(store: Store) -> None:
    """Redis keeps no session apart from the others: it finds the names, then reads the documents."""
    ends = dict(enumerate(range(0, 40, 10)))
    put(store, *(session(f"s{i}", expires_at=1, state=Life.SWEPT, ended_at=at) for i, at in ends.items()))
    put(store, session("live", expires_at=1))
    assert cost(store, lambda store: store.read(RecentSessions(20))) == (2 if "redis" in store.url else 1)


def test_jobs_by_mark_cost_one_statement(store: Store) -> None:
    put(store, job("j", failures=1), job("k", paused=Pause(at=1)))
    assert cost(store, lambda store: store.marked(Mark.FAILING)) == 1
    assert cost(store, lambda store: store.count_jobs()) == (2 if "redis" in store.url else 1)


def test_due_times_cost_a_statement_for_a_thousand_jobs_at_most(store: Store) -> None:
    """Redis keeps what is due by pool and handler: it looks at every job, a thousand at a time, and once at the end."""
    put(store, *(job(f"k{i}", due_at=i) for i in range(40)))
    assert cost(store, lambda store: store.due_times(5)) == (2 if "redis" in store.url else 1)


def test_the_newest_records_of_many_jobs_cost_one_statement(store: Store) -> None:
    put(store, *(job(f"k{i}") for i in range(1, 40)))
    put(store, job("k0"), records=(record("k0@1", at=1),))
    assert cost(store, lambda store: store.newest([f"k{i}" for i in range(40)], 20)) == 1


def test_the_slots_of_a_job_cost_its_document_with_the_time_and_its_log(store: Store) -> None:
    hourly = Definition(handler="h", schedule={"kind": "every", "period": "1h"})
    put(store, job("hourly", definition=hourly))
    begin = from_us(store.clock())
    found = cost(store, lambda store: Client(store).slots("hourly", begin - timedelta(days=1), begin))
    assert found == (3 if "redis" in store.url else 2)
