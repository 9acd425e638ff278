"""The floor on SQLite: the store's own SQL, one transaction to claim and one to finish."""

from __future__ import annotations

import json
import sqlite3
import time

from bench.floor.documents import NODE, claimed, finished
from bench.load import HANDLER
from solocron.stores.sql.sqlite.store import SQLiteStore, statements

__all__ = ["Floor"]


class Floor:
    """One process's connection."""

    def __init__(self, store: SQLiteStore, session: str) -> None:
        self._store = store
        self._session = session
        self._sql = {name: one.sql for name, one in statements().items()}
        self._db = sqlite3.connect(store.place.path, timeout=30, isolation_level=None, cached_statements=256)
        self._db.execute("PRAGMA synchronous = FULL")

    def pass_once(self, batch: int) -> int:
        """Claim up to `batch` and finish them; how many there were."""
        now, db, sql = self._store.clock(), self._db, self._sql
        where = {"namespace": "default", "pool": "default", "now": now, "session": self._session, "limit": batch - 1}
        where |= {"handlers": json.dumps([HANDLER]), "exclude": "[]"}
        db.execute("BEGIN IMMEDIATE")
        rows = [row for row in db.execute(sql["due_jobs"], where).fetchall() if row[4] <= now]
        if not rows:
            db.execute("ROLLBACK")
            return 0
        held = claimed(rows, self._session, now)
        moved = [(one.due, one.slot, 0, 1, one.state, "default", one.name, one.version) for one in held]
        db.executemany(sql["job_moved"], moved)
        db.executemany(sql["hold_added"], [("default", self._session, "job", one.name) for one in held])
        db.execute(sql["session_is_live"], where).fetchall()
        db.execute("COMMIT")
        time.sleep(0)  # the others' turn
        now = self._store.clock()
        db.execute("BEGIN IMMEDIATE")
        names = json.dumps([one.name for one in held])
        rows = db.execute(sql["named_jobs"], {"namespace": "default", "names": names}).fetchall()
        stayed = [(0, 0, finished(state, now), "default", name, version) for name, version, _, state in rows]
        db.executemany(sql["job_stayed"], stayed)
        ended = [
            (one.run, one.name, 1, one.slot, "schedule", "succeeded", one.key, now, None, NODE, self._session,
             one.fence, now, now, now, None, None, None, one.slot, 1, None, None, "default")
            for one in held
        ]  # fmt: skip
        db.executemany(sql["record_appended"], ended)
        db.executemany(sql["hold_removed"], [("default", self._session, "job", one.name) for one in held])
        db.execute("COMMIT")
        return len(held)
