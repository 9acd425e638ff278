"""What happens to a store: it restarts, crashes, freezes, has rivals at its rows, finds its disk full."""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing, suppress
from typing import Any
from urllib.parse import urlsplit

from proof.chaos.fault import SERVERS, SQL, Fault, Scene
from proof.chaos.places import Place

__all__ = ["CRASH", "DISK", "RESTART", "RIVALS", "STORE_FAULTS", "SUSPEND"]


def _restart(scene: Scene) -> int:
    with scene.arena.server.lend() as (place,):
        place.restart()
    return 1


def _crash(scene: Scene) -> int:
    with scene.arena.server.lend() as (place,):
        place.crash()
    return 1


def _suspend(scene: Scene) -> int:
    with scene.arena.server.lend() as (place,):
        assert place.server is not None
        place.server.freeze()
        try:
            scene.rest(2 * scene.arena.lease)
        finally:
            place.server.thaw()
    return 1


def _disk(scene: Scene) -> int:
    """Nothing more can be written for a lease; then there is room again, and a server that gave up is started."""
    with scene.arena.server.lend() as (place,):
        assert place.disk is not None
        ballast = place.disk / "ballast"
        full = 0.0
        try:
            until = time.monotonic() + scene.arena.lease
            with ballast.open("wb", buffering=0) as file:
                while time.monotonic() < until and not scene.over.is_set():
                    with suppress(OSError):  # it is full: take what the store gives back meanwhile, too
                        while True:
                            file.write(b"x" * 65536)
                    full = max(full, 1.0 - shutil.disk_usage(place.disk).free / 65536)
                    scene.rest(0.05)
        finally:
            ballast.unlink()
            place.revive()
    return int(full > 0)


def _rivals(scene: Scene) -> int:
    """Transactions of another client on the same rows, in another order, and held: conflicts, timeouts, deadlocks."""
    with scene.arena.server.lend() as (place,):
        struck = 0
        for _ in range(4):
            hold = scene.dice.uniform(0.05, 0.4)
            with suppress(sqlite3.Error, *_driver_errors()), closing(_connect(place)) as rival:
                struck += _lock(place, rival, scene, hold)
    return int(struck > 0)


def _driver_errors() -> tuple[type[Exception], ...]:
    import psycopg
    import pymysql

    return psycopg.Error, pymysql.MySQLError


def _connect(place: Place) -> Any:
    if place.name == "sqlite":
        return sqlite3.connect(place.url.removeprefix("sqlite:///"), timeout=2, isolation_level=None)
    if place.name == "postgres":
        import psycopg

        return psycopg.connect(place.url, options="-c lock_timeout=1000")
    import pymysql

    parts = urlsplit(place.url)
    return pymysql.connect(
        host="127.0.0.1", port=parts.port or 0, user=parts.username, database=parts.path.lstrip("/"),
        init_command="SET SESSION innodb_lock_wait_timeout = 1",
    )  # fmt: skip


def _lock(place: Place, rival: Any, scene: Scene, hold: float) -> int:
    cursor = rival.cursor()
    if place.name == "sqlite":
        cursor.execute("BEGIN IMMEDIATE")
        scene.rest(hold)
        cursor.execute("ROLLBACK")
        return 1
    cursor.execute("SELECT name FROM solocron_jobs ORDER BY name DESC")
    names = [row[0] for row in cursor.fetchall()]
    rival.commit()
    for name in names:
        cursor.execute("SELECT name FROM solocron_jobs WHERE name = %s FOR UPDATE", [name])
        scene.rest(hold / len(names))
    rival.rollback()
    return len(names)


RESTART = Fault("F4", "store restarted in order", _restart, SERVERS)
CRASH = Fault("F5", "kill -9 of the store", _crash, SERVERS - {"azurite"})
"""Azurite keeps its index in memory and saves it every five seconds: killed, it forgets what it has acknowledged."""
SUSPEND = Fault("F6", "store frozen for two leases", _suspend, SERVERS)
RIVALS = Fault("F12", "conflicts, lock timeouts, deadlocks", _rivals, SQL)
DISK = Fault("F16", "disk full, then freed", _disk, frozenset(("sqlite", "postgres")), disk=True)
STORE_FAULTS = (RESTART, CRASH, SUSPEND, RIVALS, DISK)
