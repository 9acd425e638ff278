"""PostgreSQL looks rows up by their keys, also while its tables are small: plans are kept while tables grow."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import psycopg
import pytest

from solocron.stores.sql.postgres import PostgresStore
from solocron.stores.sql.postgres.sql import writing
from solocron.stores.sql.rows import as_json
from solocron.stores.url import make_store
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


def test_records_are_closed_by_their_key(store: PostgresStore) -> None:
    parts = (("job_moved",), ("run_closed", "hold_removed"))
    sql = writing(store.prefix, store.schema_name, *parts, session=False, notify=False)
    shown = plan(
        store,
        sql,
        {
            "namespace": "default",
            "expected": 1,
            "job_moved": as_json("job_moved", [(1, 1, 0, 0, "{}", "default", "j1", 1)]),
            "run_closed": as_json("run_closed", [("lost", None, 1, 1, None, None, None, "default", "r1", 1)]),
            "hold_removed": as_json("hold_removed", [("default", "s", "job", "j1")]),
        },
    )
    assert "solocron_runs_pkey" in shown
    assert "solocron_jobs_pkey" in shown
    assert "solocron_runs_recorded" not in shown


def test_looking_for_what_is_due_does_not_pass_over_what_is_not(store: PostgresStore) -> None:
    where = {"namespace": "default", "pool": "default", "handlers": ["h"], "exclude": [], "limit": 10}
    shown = plan(store, store._sql["due_jobs"].sql, where | {"shift": 0, "session": None})
    assert "solocron_jobs_blocked" in shown
    assert shown.count("solocron_jobs_due") == 2
