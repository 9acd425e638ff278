"""PostgreSQL looks rows up by their keys, also while its tables are small: plans are kept while tables grow."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, cast

import psycopg
import pytest

from solocron.model.documents.run import Status
from solocron.stores.contract import Query
from solocron.stores.sql.history import page_of
from solocron.stores.sql.postgres import PostgresStore
from solocron.stores.sql.postgres.sql import writing
from solocron.stores.sql.rows import as_json, record_row
from solocron.stores.sql.types import SqlLink
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import record
from tests.servers import Postgres

JOBS = "INSERT INTO {}.solocron_jobs SELECT 'default', 'j' || n, 'default', 'h', n, 0, 0, 0, 1, '{{}}', '{{}}'"
RUNS = (
    "INSERT INTO {}.solocron_runs (namespace, run, attempt, job, slot, origin, status, run_key, recorded_at, fence, "
    "slots) SELECT 'default', 'r' || n, 1, 'j', n, 'schedule', 'succeeded', 'k', n, 1, 1"
)
numbers = itertools.count(1)


@pytest.fixture
def store(postgres: Postgres) -> Iterator[PostgresStore]:
    schema = f"plans_{next(numbers)}"
    found = make_store(f"{postgres.url}?schema={schema}")
    assert isinstance(found, PostgresStore)
    found.open()
    with psycopg.connect(postgres.url, autocommit=True) as db:
        for insert in (JOBS, RUNS):
            db.execute(f"{insert.format(schema)} FROM generate_series(1, 400) n".encode())
        db.execute(f"ANALYZE {schema}.solocron_runs".encode())
        yield found
        found.close()
        db.execute(f"DROP SCHEMA {schema} CASCADE".encode())


def plan(store: PostgresStore, sql: str, params: dict[str, object]) -> str:
    with store.pool.link() as link:
        cursor = psycopg.ClientCursor(link.db)
        return "\n".join(row[0] for row in cursor.execute(f"EXPLAIN {sql}".encode(), params).fetchall())


def test_an_end_finds_document_and_hold_by_their_keys(store: PostgresStore) -> None:
    parts = (("job_moved",), ("record_appended", "hold_removed"))
    sql = writing(store.prefix, store.schema_name, *parts, session=False, notify=False)
    ended = record_row("default", record("r401@1"))
    shown = plan(
        store,
        sql,
        {
            "namespace": "default",
            "expected": 1,
            "job_moved": as_json("job_moved", [(1, 1, 0, 0, "{}", "default", "j1", 1)]),
            "record_appended": as_json("record_appended", [ended]),
            "hold_removed": as_json("hold_removed", [("default", "s", "job", "j1")]),
        },
    )
    assert "solocron_jobs_pkey" in shown
    assert "solocron_holds_pkey" in shown
    assert "Conflict Arbiter Indexes: solocron_runs_pkey" in shown


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (Query(limit=10), "solocron_runs_recorded"),
        (Query(job="j", limit=10), "solocron_runs_job"),
        (Query(statuses=frozenset({Status.LOST}), limit=10), "solocron_runs_status"),
        (Query(run="r1"), "solocron_runs_pkey"),
        (Query(group="r1"), "solocron_runs_pkey"),
    ],
    ids=["all", "job", "status", "run", "group"],
)
def test_a_page_of_the_log_is_read_from_an_index(store: PostgresStore, query: Query, index: str) -> None:
    plans: list[str] = []

    class Explaining:
        def all(self, name: str, params: dict[str, Any]) -> list[Any]:
            plans.append(plan(store, store._sql[name].sql, params))
            return []

    page_of(cast("SqlLink", Explaining()), query, "default", list)
    assert plans
    assert all(index in shown for shown in plans)
    assert not any("Seq Scan" in shown for shown in plans)


def test_looking_for_what_is_due_does_not_pass_over_what_is_not(store: PostgresStore) -> None:
    where = {"namespace": "default", "pool": "default", "handlers": ["h"], "exclude": [], "limit": 10}
    shown = plan(store, store._sql["due_jobs"].sql, where | {"shift": 0, "session": None})
    assert "solocron_jobs_blocked" in shown
    assert shown.count("solocron_jobs_due") == 2


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("tally_by_time", "solocron_runs_recorded"),
        ("tally_of_job_by_time", "solocron_runs_job"),
        ("density", "solocron_runs_recorded"),
    ],
)
def test_an_hour_is_counted_without_the_hours_around_it(store: PostgresStore, name: str, index: str) -> None:
    span = {"namespace": "default", "job": "rare", "since": 10, "until": 20, "bucket": 5}
    shown = plan(store, store._sql[name].sql, span)
    assert index in shown
    assert "Seq Scan" not in shown


@pytest.mark.parametrize(
    ("name", "indexes"),
    [
        ("marked_jobs", {"solocron_jobs_marks"}),
        ("count_jobs", {"solocron_jobs_marks"}),
        ("due_times", {"solocron_jobs_due"}),
    ],
)
def test_jobs_are_listed_from_an_index(store: PostgresStore, name: str, indexes: set[str]) -> None:
    with store.pool.link() as link:
        link.db.execute(f"ANALYZE {store.schema_name}.solocron_jobs".encode())
    params = {"namespace": "default", "mark": 1, "after": "", "after_at": 0, "until": 20, "limit": 10}
    shown = plan(store, store._sql[name].sql, params)
    assert all(index in shown for index in indexes)


def test_the_newest_records_of_jobs_are_read_from_their_end(store: PostgresStore) -> None:
    """Once for the edge and once for what lies behind it; the records before it are not looked at."""
    params = {"namespace": "default", "jobs": ["rare", "busy"], "before_edge": 19}
    shown = plan(store, store._sql["newest_of_jobs"].sql, params)
    assert shown.count("solocron_runs_job") == 2
    assert "Seq Scan on solocron_runs" not in shown
    assert "recorded_at >= COALESCE((SubPlan" in shown


def test_the_sessions_of_a_span_are_read_from_an_index(store: PostgresStore, postgres: Postgres) -> None:
    table = f"{store.schema_name}.solocron_documents"
    with psycopg.connect(postgres.url, autocommit=True) as db:
        db.execute(
            f"INSERT INTO {table} (namespace, kind, name, state, ended_at, version, fixed, body) "
            "SELECT 'default', 'session', 's' || n, 'swept', n, 1, '{}', '{}' FROM generate_series(1, 2000) n".encode()
        )
        db.execute(f"ANALYZE {table}".encode())
    shown = plan(store, store._sql["sessions"].sql, {"namespace": "default", "kind": "session", "since": 1990})
    assert shown.count("solocron_documents_state") == 2
