"""Lock acquire + release per second: ours beside redis-py's Lock on the same Redis, and an advisory lock on PostgreSQL.

    python -m bench.locks [--seconds 3]

Ours does more per turn than its neighbours: the store's clock decides, the fence grows for ever, who had it stays on
record. Servers are private ones, started for this and ended with it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from solocron import Lock
from tests.servers import Postgres, Redis

Turn = Callable[[], Any]


def ours(url: str, stack: ExitStack) -> Turn:
    lock = Lock(url, "bench", at_most="1m")
    stack.callback(lock.close)

    def turn() -> None:
        with lock:
            pass

    return turn


def redis_py(url: str, stack: ExitStack) -> Turn:
    import redis

    client = redis.Redis.from_url(url)
    stack.callback(client.close)

    def turn() -> None:
        with client.lock("bench", timeout=60):
            pass

    return turn


def advisory(url: str, stack: ExitStack) -> Turn:
    import psycopg

    connection = psycopg.connect(url, autocommit=True)
    stack.callback(connection.close)

    def turn() -> None:
        connection.execute("SELECT pg_try_advisory_lock(42)").fetchone()
        connection.execute("SELECT pg_advisory_unlock(42)").fetchone()

    return turn


@contextmanager
def places() -> Iterator[dict[str, Turn]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        redis_server = stack.enter_context(Redis())
        postgres = stack.enter_context(Postgres())
        inner = stack.enter_context(ExitStack())
        yield {
            "solocron on memory": ours("memory://bench", inner),
            "solocron on SQLite (synchronous=FULL)": ours(f"sqlite:///{folder / 'locks.db'}", inner),
            "solocron on Redis": ours(redis_server.fresh_url(), inner),
            "redis-py Lock on the same Redis": redis_py(redis_server.url, inner),
            "solocron on PostgreSQL": ours(postgres.fresh_url(), inner),
            "advisory lock on the same PostgreSQL": advisory(postgres.url, inner),
        }


def measure(turn: Turn, seconds: float) -> float:
    turn()
    begun, count = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        turn()
        count += 1
    return count / (time.perf_counter() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="per line (default: 3)")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    options = parser.parse_args()
    with places() as found:
        figures = {name: round(measure(turn, options.seconds)) for name, turn in found.items()}
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    for name, rate in figures.items():
        print(f"{rate:>8,} turns/s  {name}")


if __name__ == "__main__":
    main()
