"""Fills a store with jobs as data: one handler, no-op bodies, due when the scenario says so."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from solocron.clock import SECOND, from_us
from solocron.jobs.declaration import Declaration
from solocron.jobs.registry import Registry
from solocron.model.change import Absent, Change, Kind
from solocron.model.codec import encode
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Job
from solocron.model.transitions.registration import Proposal, define
from solocron.stores.contract import Named as By
from solocron.stores.contract import Store, Verdict

__all__ = ["HANDLER", "copy_into_postgres", "daily_at", "job_name", "load_jobs"]

HANDLER = "noop"
BATCH = 500
_LATE = 25 * SECOND
_registry = Registry()


def job_name(number: int) -> str:
    return f"job-{number:07}"


def daily_at(instant: int) -> str:
    """A cron expression that matches this instant (whole seconds) and then again a day later."""
    moment = from_us(instant).astimezone(UTC)
    return f"{moment.second} {moment.minute} {moment.hour} * * *"


def definition(expression: str, *, handler: str = HANDLER, **options: Any) -> Definition:
    """A plain job: default policies unless others are given, UTC."""
    return Declaration.make(expression, {"name": "any", **options}).define("any", handler)[0]


def load_jobs(store: Store, count: int, expression_of: Callable[[int], str], *, first: int = 0, **options: Any) -> None:
    """Write `count` jobs through the store's own verb."""
    made: dict[str, Definition] = {}
    for start in range(first, first + count, BATCH):
        numbers = range(start, min(start + BATCH, first + count))
        wanted = {}
        for number in numbers:
            expression = expression_of(number)
            if expression not in made:
                made[expression] = definition(expression, **options)
            wanted[job_name(number)] = made[expression]
        applied = store.update(By(Kind.JOB, tuple(wanted)), _definer(wanted))
        bad = [result for result in applied.results if result.verdict is not Verdict.APPLIED]
        if bad:
            raise RuntimeError(f"{len(bad)} jobs could not be written: {bad[0]}")


def _definer(wanted: dict[str, Definition]) -> Callable[[Job | Absent, int], Change | None]:
    def change(doc: Job | Absent, now: int) -> Change | None:
        proposal = Proposal(definition=wanted[doc.name], source=None)
        return define(doc, proposal=proposal, now=now, late_for=_LATE, resolve=_registry.resolve)

    return change


def copy_into_postgres(url: str, count: int, due: Callable[[int], int], *, first: int = 0) -> None:
    """Many jobs by COPY into the store's own tables: the documents are those that the store would write."""
    import psycopg

    now = int(datetime.now(UTC).timestamp() * SECOND)
    texts: dict[str, Definition] = {}
    with psycopg.connect(url) as db, db.cursor() as cursor:
        into = "solocron_jobs (namespace, name, pool, handler, due_at, cursor_at, version, definition, state)"
        with cursor.copy(f"COPY {into} FROM STDIN") as copy:
            for page in _pages(range(first, first + count), 10_000):
                lines = io.StringIO()
                for number in page:
                    at = due(number)
                    expression = daily_at(at)
                    if expression not in texts:
                        texts[expression] = definition(expression)
                    job = Job(
                        name=job_name(number), incarnation=now, definition=texts[expression], cursor=now, due_at=at
                    )
                    fixed, state = encode(job)
                    lines.write(f"default\t{job.name}\tdefault\t{HANDLER}\t{at}\t{now}\t1\t{fixed}\t{state}\n")
                copy.write(lines.getvalue())
        db.commit()
        db.autocommit = True
        db.execute("ANALYZE solocron_jobs")


def _pages(numbers: range, size: int) -> Iterable[range]:
    return (numbers[start : start + size] for start in range(0, len(numbers), size))
