"""Lock acquire + release per second: ours beside redis-py's Lock and python-redis-lock on the same Redis, and beside an
advisory lock on the same PostgreSQL.

    make bench-locks                              or: python -m bench.locks [--seconds 3]

Ours does more per turn than its neighbours: the store's clock decides, the fence grows forever, who had it stays on
record. Servers are private ones, started for this and ended with it. Calls that go over the wire are counted, by name.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.environments import Peer, python_of
from solocron import Lock
from tests.servers import Postgres, Redis

Turn = Callable[[], Any]
PYTHON_REDIS_LOCK = Peer("redislock", "python-redis-lock 4.0.1", "redis", ("python-redis-lock==4.0.1", "redis==8.1.0"))
HERE = Path(__file__).parent


def ours(url: str, stack: ExitStack, counts: dict[str, dict[str, float]], name: str) -> Turn:
    lock = Lock(url, "bench", at_most="1m")
    stack.callback(lock.close)
    with lock:
        pass
    statements = lock.place.store.statements
    statements.clear()
    with lock:
        pass
    counts[name] = {name: count for name, count in sorted(statements.items()) if name != "commit"}

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


def another_python(python: str, url: str) -> Callable[[float], float]:
    """Measured by an interpreter of its own, in the same way; its library needs an environment of its own."""

    def measure(seconds: float) -> float:
        command = [python, str(HERE / "peers" / "redislock.py"), url, str(seconds)]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    return measure


@contextmanager
def places(environments: Path, counts: dict[str, dict[str, float]]) -> Iterator[dict[str, Callable[[float], float]]]:
    """Yield a function for each lock, which measures it for so many seconds."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        redis_server = stack.enter_context(Redis())
        postgres = stack.enter_context(Postgres())
        inner = stack.enter_context(ExitStack())
        stores = {
            "solocron on memory": "memory://bench",
            "solocron on SQLite (synchronous=FULL)": f"sqlite:///{folder / 'locks.db'}",
            "solocron on Redis": redis_server.fresh_url(),
            "solocron on PostgreSQL": postgres.fresh_url(),
        }
        found = {name: timed(ours(url, inner, counts, name)) for name, url in stores.items()}
        found["redis-py Lock on the same Redis"] = timed(redis_py(redis_server.url, inner))
        python = python_of(PYTHON_REDIS_LOCK, environments)
        found["python-redis-lock on the same Redis"] = another_python(python, redis_server.url)
        found["advisory lock on the same PostgreSQL"] = timed(advisory(postgres.url, inner))
        yield found


def timed(turn: Turn) -> Callable[[float], float]:
    def measure(seconds: float) -> float:
        turn()
        begun, count = time.perf_counter(), 0
        while time.perf_counter() - begun < seconds:
            turn()
            count += 1
        return count / (time.perf_counter() - begun)

    return measure


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="per line (default: 3)")
    parser.add_argument("--out", type=Path, default=HERE.parent / "build" / "bench", help="where environments go")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    options = parser.parse_args()
    counts: dict[str, dict[str, float]] = {}
    with places(options.out, counts) as found:
        figures = {name: round(measure(options.seconds)) for name, measure in found.items()}
    if options.json:
        print(json.dumps({"turns per second": figures, "calls per turn": counts}, indent=2))
        return
    for name, rate in figures.items():
        calls = ", ".join(f"{count} {call}" for call, count in counts.get(name, {}).items())
        print(f"{rate:>8,} turns/s  {name}{f'  ({calls})' if calls else ''}")


if __name__ == "__main__":
    main()
