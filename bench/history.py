"""Fills a store with the records of a day, through the store's own verb: a batch of jobs, each with many records."""

from __future__ import annotations

from collections.abc import Sequence

from bench.load import HANDLER, job_name
from solocron.clock import SECOND
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.job import Job
from solocron.model.documents.run import Origin, Record, Status
from solocron.model.documents.session import Session
from solocron.stores.contract import Named, Store, Verdict

__all__ = ["DAY", "add_nodes", "fill_log"]

DAY = 86_400 * SECOND
_AT_ONCE = 1_000
"""Records of one write. Five thousand were more than a busy MariaDB takes within its time for a statement."""
_NODES = 8
_FAILED_EVERY = 100


def fill_log(store: Store, jobs: int, records: int, *, until: int) -> None:
    """Append `records` records of the day before `until`, spread evenly over the jobs and the time."""
    of_each = records // jobs
    together = max(1, _AT_ONCE // of_each)
    for first in range(0, jobs, together):
        numbers = range(first, min(first + together, jobs))
        made = {job_name(number): _records(number, jobs, of_each, until) for number in numbers}

        def append(doc: Job | Absent, now: int, made: dict[str, Sequence[Record]] = made) -> Change | None:
            return Change(doc, tuple(made[doc.name])) if isinstance(doc, Job) else None

        applied = store.update(Named(Kind.JOB, tuple(made)), append)
        bad = [result for result in applied.results if result.verdict is not Verdict.APPLIED]
        if bad:
            raise RuntimeError(f"{len(bad)} jobs took no records: {bad[0]}")


def add_nodes(store: Store, *, until: int) -> None:
    """Add the sessions of the nodes that the records name: live, begun a day before `until`."""

    def begin(doc: Session | Absent, now: int) -> Change:
        number = doc.name.removeprefix("s")
        return Change(
            Session(
                name=doc.name, node=f"n{number}", host="bench", pid=1, lease=DAY, expires_at=now + DAY,
                started_at=until - DAY, handlers=(HANDLER,), pools=("default",), max_running=500,
            )
        )  # fmt: skip

    store.update(Named(Kind.SESSION, tuple(f"s{number}" for number in range(_NODES))), begin)


def _records(number: int, jobs: int, count: int, until: int) -> list[Record]:
    name, step = job_name(number), DAY // count
    found = []
    for turn in range(count):
        at = until - DAY + turn * step + number * step // jobs
        failed = (number + turn) % _FAILED_EVERY == 0
        found.append(
            Record(
                run=f"{name}@{at:016x}",
                job=name,
                attempt=1,
                slot=at - SECOND,
                origin=Origin.SCHEDULE,
                status=Status.FAILED if failed else Status.SUCCEEDED,
                key=f"{name}@{at}",
                recorded_at=at,
                node=f"n{(number + turn) % _NODES}",
                session=f"s{(number + turn) % _NODES}",
                fence=turn + 1,
                claimed_at=at - SECOND // 2,
                started_at=at - SECOND // 2,
                finished_at=at,
                error="ValueError: as told" if failed else None,
            )
        )
    return found
