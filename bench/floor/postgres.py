"""The floor on PostgreSQL: the store's own SQL through psycopg, two statements to claim and one to finish."""

from __future__ import annotations

import time
from typing import Any

import psycopg

from bench.floor.documents import NODE, Claimed, claimed, finished
from bench.load import HANDLER
from solocron.stores.sql.postgres.sql import statements, writing
from solocron.stores.sql.postgres.store import PostgresStore
from solocron.stores.sql.rows import as_json

__all__ = ["Floor"]


class Floor:
    """One process's connection."""

    def __init__(self, store: PostgresStore, session: str) -> None:
        self._session = session
        self._sql = {name: one.sql for name, one in statements(store.prefix, store.schema_name).items()}
        where = (store.prefix, store.schema_name)
        claims = (("job_moved",), ("hold_added",))
        ends = (("job_moved", "hold_removed"), ("record_appended",))
        self._claim = writing(*where, *claims, session=True, notify=False)
        self._finish = writing(*where, *ends, session=False, notify=False, recalled=True)
        self._db = psycopg.connect(**store._conninfo | {"options": store._options}, autocommit=True)
        self._common = {"namespace": "default", "shift": 0, "session": session}

    def pass_once(self, batch: int) -> int:
        """Claim up to `batch` and finish them; how many there were."""
        where = {"pool": "default", "pools": ["default"], "handlers": [HANDLER], "exclude": [], "limit": batch}
        rows, now = self._select("due_jobs", where)
        if not rows:
            self._db.execute("ROLLBACK")
            return 0
        held = claimed(rows, self._session, now)
        self._write(
            self._claim,
            job_moved=[(one.due, one.slot, 0, 1, one.state, "default", one.name, one.version) for one in held],
            hold_added=[("default", self._session, "job", one.name) for one in held],
        )  # fmt: skip
        with self._db.pipeline():
            self._db.execute(self._finish, self._common | self._ends(held))
        return len(held)

    def _ends(self, held: list[Claimed]) -> dict[str, Any]:
        """As the store ends what it has just claimed: without reading it again, if no other client has written it."""
        now = int(time.time() * 1_000_000)
        ends = {
            "job_moved": [
                (one.due, one.slot, 0, 0, finished(one.state, now), "default", one.name, one.version + 1)
                for one in held
            ],
            "record_appended": [
                (one.run, one.name, 1, one.slot, "schedule", "succeeded", one.key, now, None, NODE, self._session,
                 one.fence, now, now, now, None, None, None, one.slot, 1, None, None, "default")
                for one in held
            ],
            "hold_removed": [("default", self._session, "job", one.name) for one in held],
        }  # fmt: skip
        window = {"now": now - 1_000_000, "latest": now + 1_000_000, "expected": 2 * len(held)}
        return window | {name: as_json(name, rows) for name, rows in ends.items()}

    def _select(self, name: str, params: dict[str, Any]) -> tuple[list[tuple[Any, ...]], int]:
        with self._db.pipeline():
            self._db.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
            rows = self._db.execute(self._sql[name], self._common | params).fetchall()
        now = next(row[4] for row in rows if row[0] is None)
        return [row for row in rows if row[0] is not None], now

    def _write(self, sql: str, **parts: list[tuple[Any, ...]]) -> None:
        params: dict[str, Any] = {name: as_json(name, rows) for name, rows in parts.items()}
        with self._db.pipeline():
            self._db.execute(sql, self._common | params | {"expected": len(parts["job_moved"])})
            self._db.execute("COMMIT")
