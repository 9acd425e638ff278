"""Counters of a fleet, read from the log: what ran and what did not, also of processes that are dead.

The log is read once from beginning to end, always up to some seconds ago: a record becomes visible a little after its
time, and one that is read too early would be left out for good. The counters begin with zero when this process
begins to look. Counters in the job's document would begin with the job, but must not cost a run 1 % more: as a mapping
they cost 2 to 3 %, and as an array of numbers 0.5 to 5 us of some 290 us, which was not shown to be less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from solocron.clock import SECOND
from solocron.model.documents.job import Job
from solocron.model.documents.run import Record, Status
from solocron.stores.contract import Query, Store

__all__ = ["OTHER", "RUN_OUTCOMES", "SLOT_OUTCOMES", "LogCounts"]

OTHER = "_other"
"""Stands for all jobs that are not listed by name."""
RUN_OUTCOMES = ("succeeded", "failed", "timed_out", "cancelled", "lost", "handed_over")
SLOT_OUTCOMES = ("skipped", "missed", "dropped")

SETTLED = 10 * SECOND
_PAGE = 5_000
_GOOD = (Status.SUCCEEDED, Status.HANDED_OVER)


class LogCounts:
    """The counters of one namespace, and the last success of each job."""

    def __init__(self) -> None:
        self._until: int | None = None
        self._successes: dict[str, int | None] = {}
        self.runs: Counter[tuple[str, str]] = Counter()
        """By label and outcome."""
        self.slots: Counter[tuple[str, str]] = Counter()

    def read(self, store: Store, now: int, label: Callable[[str], str]) -> None:
        """Count what was recorded since the last look; `label` is the name under which a job is listed."""
        until = now - SETTLED
        since = self._until
        found = [] if since is None or since >= until else _records(store, since, until)
        self._until = max(until, since or until)  # not before: a store that is away is asked for the same again
        for record in found:
            if not record.attempt:
                self.slots[label(record.job), record.status] += record.count
                continue
            self.runs[label(record.job), record.status] += 1
            if record.status in _GOOD:
                self._successes[record.job] = max(record.recorded_at, self._successes.get(record.job) or 0)

    def last_success(self, store: Store, job: Job) -> int | None:
        """Return when a run of the job last succeeded, as far as that is on record; None if none did.

        The document has only the last outcome. If that was a failure, the log is asked once for the success before it.
        """
        last = job.last
        if last is not None and last.status in _GOOD:
            self._successes[job.name] = last.finished_at
        elif job.name not in self._successes:
            self._successes[job.name] = None if last is None else _find(store, job.name)
        return self._successes[job.name]

    def keep_only(self, jobs: Sequence[Job]) -> None:
        """Forget the jobs that are gone."""
        names = {job.name for job in jobs}
        self._successes = {name: at for name, at in self._successes.items() if name in names}
        for counts in (self.runs, self.slots):
            for label, outcome in [key for key in counts if key[0] not in names and key[0] != OTHER]:
                del counts[label, outcome]


def _find(store: Store, job: str) -> int | None:
    page = store.history(Query(job=job, statuses=frozenset(map(str, _GOOD)), limit=1))
    return page.records[0].recorded_at if page.records else None


def _records(store: Store, since: int, until: int) -> list[Record]:
    page = store.history(Query(since=since, until=until, limit=_PAGE))
    found = list(page.records)
    while page.next is not None:
        page = store.history(Query(since=since, until=until, limit=_PAGE, before=page.next))
        found += page.records
    return found
