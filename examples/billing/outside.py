"""The outside world: a payment gateway that honours idempotency keys, and a mail server that honours nothing."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path


class Gateway:
    """Two calls with one key are one charge: the second is answered with the first one's receipt."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "gateway.db"
        with closing(sqlite3.connect(self._file, timeout=30)) as db, db:
            db.execute(
                "CREATE TABLE IF NOT EXISTS charges "
                "(receipt INTEGER PRIMARY KEY, key TEXT UNIQUE, customer TEXT, cents INTEGER, calls INTEGER)"
            )

    def charge(self, customer: str, cents: int, *, headers: dict[str, str]) -> int:
        key = headers["Idempotency-Key"]
        with closing(sqlite3.connect(self._file, timeout=30)) as db, db:
            receipt = db.execute(
                "INSERT INTO charges (key, customer, cents, calls) VALUES (?, ?, ?, 1) "
                "ON CONFLICT (key) DO UPDATE SET calls = calls + 1 RETURNING receipt",
                (key, customer, cents),
            ).fetchone()
            return int(receipt[0])

    def charges(self) -> list[tuple[str, int]]:
        with closing(sqlite3.connect(self._file, timeout=30)) as db:
            return db.execute("SELECT customer, cents FROM charges ORDER BY receipt").fetchall()


class Mail:
    """Sends what it is told, as often as it is told; but one can look into the sent folder."""

    def __init__(self, folder: Path) -> None:
        self._sent = folder / "sent.jsonl"

    def send(self, to: str, subject: str) -> None:
        with self._sent.open("a") as sent:
            sent.write(json.dumps({"to": to, "subject": subject}) + "\n")

    def sent(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in self._sent.read_text().splitlines()] if self._sent.exists() else []

    def was_sent(self, to: str, subject: str) -> bool:
        return {"to": to, "subject": subject} in self.sent()
