"""What should become of each slot, worked out naively: one slot after the other, straight from the declared choices.

Nothing here is shared with the machine: no ranges, no counting in closed form, no cleverness.
"""

from __future__ import annotations

from solocron.model.documents.job import Job
from solocron.model.timetable import Resolve

__all__ = ["expected"]


def expected(
    job: Job, resolve: Resolve, *, verb: str, now: int, late_for: int, upto: int, queue: int
) -> dict[int, str]:
    """For each slot after the cursor and not after `upto`: "waiting", "missed", "skipped", "dropped" or "cancelled".

    `job` is the document before the decision; `verb` tells a person's resume, removal or restore from the rest;
    `queue` is how many runs may wait.
    """
    schedule = resolve(job.definition.schedule)
    slots = []
    slot = schedule.after(job.cursor)
    while slot is not None and slot <= upto:
        slots.append(slot)
        slot = schedule.after(slot)

    if verb in ("resume", "restore"):
        return dict.fromkeys(slots, "skipped")
    verdicts: dict[int, str] = {}
    asleep_until = 0 if job.definition.enabled else now
    if job.paused is not None:
        ends = now if job.paused.until is None else min(job.paused.until, now)
        asleep_until = max(asleep_until, ends)
    for slot in slots:
        if slot <= asleep_until:
            verdicts[slot] = "skipped"
    awake = [slot for slot in slots if slot > asleep_until]
    missed = [slot for slot in awake if _too_late(job, slot, now, late_for)]
    late = [slot for slot in awake if not _too_late(job, slot, now, late_for)]
    for index, slot in enumerate(missed):
        verdicts[slot] = "waiting" if _caught_up(job, slot, now, newer=len(missed) - 1 - index) else "missed"
    _overlap(job, late, verdicts, now, queue)
    if verb == "remove":  # what waits is given up in the same step
        verdicts = {slot: "cancelled" if verdict == "waiting" else verdict for slot, verdict in verdicts.items()}
    return verdicts


def _too_late(job: Job, slot: int, now: int, late_for: int) -> bool:
    limit = job.definition.start_within
    return now - slot >= late_for or (limit is not None and now - slot > limit)


def _caught_up(job: Job, slot: int, now: int, *, newer: int) -> bool:
    limit = job.definition.start_within
    if limit is not None and now - slot > limit:
        return False
    policy = job.definition.catch_up
    if policy.kind == "skip":
        return False
    if policy.kind == "latest":
        return newer == 0
    young = policy.within is None or now - slot <= policy.within
    return young and (policy.limit is None or newer < policy.limit)


def _overlap(job: Job, late: list[int], verdicts: dict[int, str], now: int, queue: int) -> None:
    kind = job.definition.overlap.kind
    begun = [
        waiting_run.run for waiting_run in job.waiting_runs if waiting_run.tries > 0 or waiting_run.shards is not None
    ]
    running = len({run.partition("#")[0] for run in [*(hold.run for hold in job.active), *begun]})
    waiting = len({waiting_run.run.partition("#")[0] for waiting_run in job.waiting_runs}) + sum(
        s.count for s in job.waiting_ranges
    )
    caught_up = sum(verdict == "waiting" for verdict in verdicts.values())
    line = 0
    if job.definition.limit is not None:  # who waits for a permit counts, or the line would only get longer
        line = caught_up + sum(s.count for s in job.waiting_ranges if s.origin == "schedule")
        line += sum(
            waiting_run.origin == "schedule" and not waiting_run.tries and waiting_run.shards is None
            for waiting_run in job.waiting_runs
        )
    for index, slot in enumerate(late):
        if kind == "replace":
            verdicts[slot] = "waiting" if slot == late[-1] else "skipped"
        elif running < job.definition.overlap.most and line < job.definition.overlap.most:
            verdicts[slot] = "waiting"
        elif kind == "queue-all":
            verdicts[slot] = "waiting" if waiting + caught_up + index < queue else "dropped"
        elif kind == "queue":
            queued = job.waiting_ranges or any(
                waiting_run.tries == 0 and waiting_run.shards is None and waiting_run.ready_at <= now
                for waiting_run in job.waiting_runs
            )
            verdicts[slot] = "waiting" if index == 0 and not queued and not caught_up else "skipped"
        else:
            verdicts[slot] = "skipped"
    if kind == "replace" and late:
        for slot, verdict in list(verdicts.items()):
            if verdict == "waiting" and slot != late[-1]:
                verdicts[slot] = "skipped"
