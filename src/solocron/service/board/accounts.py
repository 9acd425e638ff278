"""The accounting of all jobs: the slots that came due, by what became of each, compared with the schedules.

A job is compared when it changed since the last time. One call compares for a bounded time and goes on with the next,
so a page of a large namespace says how many jobs are compared so far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from solocron.client.run_listing import WantedRuns
from solocron.errors import InvalidError, NotFoundError
from solocron.service.pages.overview import Sums
from solocron.service.pages.slots import TO_COME
from solocron.service.reads import Reads
from solocron.views import JobView, NodeView, SlotView

__all__ = ["Accounts", "held_runs"]

_HOURS = 24
_WITHIN = 0.2
"""Seconds that one call compares for."""
_LATE_KEPT = 50
"""Latenesses of one job that are kept."""
_LOST = 200
_LOOKED_UP = 20
_NOT_DUE = (TO_COME, "not defined")
_TONES = {
    "succeeded": "ok",
    "running": "run",
    "waiting": "wait",
    "due": "wait",
    "missed": "miss",
    "dropped": "miss",
    "skipped": "skip",
    "cancelled": "skip",
    "unaccounted": "none",
}
"""Tones of the statuses; any other one is a failure."""


@dataclass(frozen=True, slots=True)
class _Compared:
    state: object
    """What the job looked like; it is compared again when it looks different."""
    hours: dict[int, Counter[str]]
    """Statuses by the hour in which the slot came due, counted from the epoch."""
    late: tuple[float, ...]
    missing: tuple[datetime, ...]


class Accounts:
    """What became of the slots of each job in the last 24 hours by the clock, the open one included."""

    def __init__(self, reads: Reads, *, clock: Callable[[], float]) -> None:
        self._reads = reads
        self._clock = clock
        self._known: dict[str, _Compared] = {}
        self._refused: dict[str, object] = {}

    def sums(self, jobs: Sequence[JobView], now: datetime, nodes: Iterable[NodeView]) -> Sums:
        """Compare what changed, within a bounded time, and add everything up."""
        scheduled = [job for job in jobs if job.spec is not None]
        names = {job.name for job in scheduled}
        self._known = {name: one for name, one in self._known.items() if name in names}
        first = int(now.timestamp()) // 3_600 - _HOURS + 1
        since = datetime.fromtimestamp(first * 3_600, tz=now.tzinfo)
        until = self._clock() + _WITHIN
        for job in sorted(scheduled, key=lambda job: job.name in self._known):
            if self._clock() >= until:
                break
            self._compare(job, since, now, first)
        return self._added(scheduled, since, first, nodes)

    def _compare(self, job: JobView, since: datetime, now: datetime, first: int) -> None:
        # A slot that is due and not decided changes from to come to due by the clock alone.
        waits = now if job.due_at is not None and job.due_at <= now else None
        state = (job.cursor, held_runs(job), job.waiting, job.last_slot, job.defined_at, first, waits)
        known = self._known.get(job.name)
        if (known is not None and known.state == state) or self._refused.get(job.name) == state:
            return
        try:
            begun = max(since, job.created_at, job.defined_at or since)
            slots = self._reads.slots(job.name, begun, now + timedelta(microseconds=1))
        except (InvalidError, NotFoundError):  # too many slots, a schedule that only code knows, or removed meanwhile
            self._refused[job.name] = state
            self._known.pop(job.name, None)
            return
        self._refused.pop(job.name, None)
        self._known[job.name] = _compared(state, [one for one in slots if one.status not in _NOT_DUE])

    def _added(self, jobs: Sequence[JobView], since: datetime, first: int, nodes: Iterable[NodeView]) -> Sums:
        hours = [Counter[str]() for _ in range(_HOURS)]
        for one in self._known.values():
            for hour, counts in one.hours.items():
                if hour >= first:
                    hours[hour - first].update(counts)
        by_status = sum(hours, Counter[str]())
        late = sorted(seconds for one in self._known.values() for seconds in one.late)
        failed = sum(count for status, count in by_status.items() if status not in _TONES)
        return Sums(
            since=since,
            due=by_status.total(),
            ran=by_status["succeeded"],
            running=by_status["running"],
            waiting=by_status["waiting"] + by_status["due"],
            failed=failed,
            missed=by_status["missed"],
            skipped=by_status["skipped"],
            dropped=by_status["dropped"],
            cancelled=by_status["cancelled"],
            taken_over=self._taken_over(since),
            done_twice=self._done_twice(nodes, since),
            unaccounted=tuple((job, slot) for job, one in self._known.items() for slot in one.missing if slot >= since),
            checked_jobs=len(self._known),
            of_jobs=len(jobs) - len(self._refused.keys() & {job.name for job in jobs}),
            left_out=tuple(sorted(self._refused.keys() & {job.name for job in jobs})),
            by_hour=tuple(_by_tone(counts) for counts in hours),
            late_p95=late[min(len(late) - 1, int(len(late) * 0.95))] if late else None,
        )

    def _taken_over(self, since: datetime) -> int:
        lost = self._reads.runs(WantedRuns(statuses=frozenset(["lost"]), since=since), limit=_LOST, before=None)
        return len({run.run for run in lost.runs})

    def _done_twice(self, nodes: Iterable[NodeView], since: datetime) -> int:
        """Count runs of which a late success was refused although another attempt had succeeded."""
        late = {one.run for node in nodes for one in node.refused if one.outcome == "succeeded" and one.at >= since}
        count = 0
        for run in sorted(late)[:_LOOKED_UP]:
            try:
                count += self._reads.run(run)[0].status == "succeeded"
            except NotFoundError:
                continue
        return count


def held_runs(job: JobView) -> tuple[tuple[str, int], ...]:
    """Return the attempts that run, without what is left of their leases: that changes with every look."""
    return tuple((run.run, run.attempt) for run in job.running)


def _compared(state: object, slots: Sequence[SlotView]) -> _Compared:
    hours: dict[int, Counter[str]] = {}
    for one in slots:
        hours.setdefault(int(one.slot.timestamp()) // 3_600, Counter())[one.status] += 1
    late = [one.late_s for one in slots if one.late_s is not None and one.attempts == 1 and one.origin == "schedule"]
    missing = tuple(one.slot for one in slots if one.status == "unaccounted")
    return _Compared(state, hours, tuple(late[-_LATE_KEPT:]), missing[:100])


def _by_tone(counts: Counter[str]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for status, count in counts.items():
        found[_TONES.get(status, "fail")] += count
    return dict(found)
