"""The work that a peer has left, counted in its store from outside: a run is over when its outcome is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["left_in_store"]

_SQL = {
    "apscheduler3": "SELECT count(*) FROM apscheduler_jobs WHERE next_run_time <= {instant}",
    "apscheduler4": "SELECT count(*) FROM jobs",
    "procrastinate": "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')",
    "pgqueuer": "SELECT count(*) FROM pgqueuer",
    "pgqueuer_schedules": "SELECT count(*) FROM pgqueuer_schedules WHERE last_run IS NULL OR status <> 'queued'",
}
_KEYS = {
    "arq": ("ZCARD arq:queue",),
    "saq": ("ZCARD saq:default:incomplete", "LLEN saq:default:active", "LLEN saq:default:queued"),
    "celery": ("LLEN celery", "HLEN unacked"),
    "redbeat": ("LLEN celery", "HLEN unacked"),
    "docket": ("ZCARD bench:queue", "XLEN bench:stream"),
}


@contextmanager
def left_in_store(peer: str, url: str, instant: int) -> Iterator[Callable[[], int]]:
    """Yield a function that counts the runs that are not recorded as done."""
    if peer in _SQL:
        import psycopg

        with psycopg.connect(url, autocommit=True) as db:
            sql = _SQL[peer].format(instant=instant)

            def count() -> int:
                row = db.execute(sql.encode()).fetchone()
                assert row is not None
                return int(row[0])

            yield count
        return
    import redis

    with redis.Redis.from_url(url) as client:
        yield lambda: sum(int(client.execute_command(*question.split())) for question in _KEYS[peer])
