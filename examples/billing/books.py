"""The application's own database: what customers used, and the invoices that were made of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

from solocron import Run

SCHEMA = """
CREATE TABLE IF NOT EXISTS usage (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, cents INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS invoices (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, cents INTEGER NOT NULL);
"""


class Invoice(TypedDict):
    id: int
    customer: str
    cents: int


class Books:
    def __init__(self, folder: Path) -> None:
        self._file = folder / "books.db"
        with self.open() as books:
            books.executescript(SCHEMA)
            if not books.execute("SELECT 1 FROM usage").fetchone():
                lines = [("ada", 700), ("ada", 300), ("grace", 450), ("edsger", 120)]
                books.executemany("INSERT INTO usage (customer, cents) VALUES (?, ?)", lines)

    @contextmanager
    def open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._file, timeout=30)
        try:
            with connection:
                yield connection
        finally:
            connection.close()

    def make_invoices(self, run: Run) -> list[Invoice]:
        """One invoice per customer. Claiming the lines and writing the invoices is one transaction, guarded."""
        with self.open() as books:
            run.guard(books)
            lines = {row[0]: row[1:] for row in books.execute("SELECT id, customer, cents FROM usage ORDER BY id")}
            totals: dict[str, int] = {}
            for line in run.claim_items(books, "billed", lines):
                customer, cents = lines[line]
                totals[customer] = totals.get(customer, 0) + cents
            made = [
                books.execute("INSERT INTO invoices (customer, cents) VALUES (?, ?) RETURNING id, customer, cents", row)
                for row in totals.items()
            ]
            invoices = [cursor.fetchone() for cursor in made]
            if not invoices:  # an attempt before this one committed and died before it could tell
                invoices = books.execute("SELECT id, customer, cents FROM invoices ORDER BY id").fetchall()
            return [{"id": id, "customer": customer, "cents": cents} for id, customer, cents in invoices]
