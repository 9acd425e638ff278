"""Writes to a PostgreSQL all the time and remembers what was acknowledged: what is missing later was truly lost."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

import psycopg

from solocron.clock import SystemClock

__all__ = ["Canary"]

PAUSE = 0.02
PATIENCE = 30.0


class Canary:
    """A commit every few milliseconds on a thread of its own; its URL finds the server that takes writes."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._acknowledged: dict[int, float] = {}
        self._mutex = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sing, name="canary", daemon=True)

    def __enter__(self) -> Self:
        with psycopg.connect(self._url, autocommit=True) as db:
            db.execute("CREATE TABLE canary (number bigint PRIMARY KEY)")
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join(PATIENCE)

    def lost(self) -> list[float]:
        """When each acknowledged commit that the server does not have any more was sent, in boot time; told once."""
        with self._mutex:
            known = dict(self._acknowledged)
        with psycopg.connect(self._url, autocommit=True) as db:
            there = {int(row[0]) for row in db.execute("SELECT number FROM canary").fetchall()}
        gone = known.keys() - there
        with self._mutex:
            for number in gone:
                del self._acknowledged[number]
        return sorted(known[number] for number in gone)

    def _sing(self) -> None:
        boot = SystemClock().boot
        number = 0
        while not self._over.is_set():
            try:
                with psycopg.connect(self._url, autocommit=True, connect_timeout=2) as db:
                    while not self._over.wait(PAUSE):
                        number += 1
                        sent = boot()
                        db.execute("INSERT INTO canary VALUES (%s)", [number])
                        with self._mutex:
                            self._acknowledged[number] = sent
            except (
                psycopg.Error
            ):  # the server is gone: whether this one was committed is not known, so it does not count
                self._over.wait(PAUSE)
