"""Invariants of shards in every commit: a slot is cut once, and each shard of it waits, held or on record."""

from __future__ import annotations

from collections import Counter

from proof.invariants.checker import Checker, Violation, new_holds
from solocron.model.documents.job import Hold, Job, WaitingRun
from solocron.testing.simulation.database import Commit

__all__ = ["cut_to_publish", "i2_a_slot_is_cut_once", "i5_no_shard_vanishes", "opens", "slot_of"]


def slot_of(run: str) -> str:
    """Return the part of a run's id that the shards of one slot share."""
    return run.partition("#")[0]


def opens(before: Job, hold: Hold) -> bool:
    """Whether a hold is the first of its slot: nothing of the slot was taken before."""
    if hold.shards is None:
        return True
    known = [
        *(held.run for held in before.active),
        *(waiting_run.run for waiting_run in before.waiting_runs if waiting_run.shards is not None),
    ]
    return slot_of(hold.run) not in map(slot_of, known)


def cut_to_publish(commit: Commit) -> list[WaitingRun]:
    """Return one shard of each slot that a node has cut to hand it over: for the checker it waits (`hand_over.py`)."""
    before, after = commit.before, commit.after
    if not isinstance(before, Job) or not isinstance(after, Job):
        return []
    known = {slot_of(hold.run) for hold in (*before.active, *new_holds(commit))}
    known |= {slot_of(one.run) for one in before.waiting_runs if one.shards is not None}
    fresh = [one for one in after.waiting_runs if one.shards is not None and not one.tries]
    return list({slot_of(one.run): one for one in fresh if slot_of(one.run) not in known}.values())


def _count(shards: int | tuple[str, ...] | None) -> int:
    return shards if isinstance(shards, int) else len(shards or ())


def i2_a_slot_is_cut_once(checker: Checker, commit: Commit) -> None:
    """A slot that was cut into shards is never cut again, whatever a deploy makes of the job."""
    if not isinstance(commit.before, Job):
        return
    held = [h for h in new_holds(commit) if h.shards is not None and not h.tries and opens(commit.before, h)]
    for slot in (*(slot_of(one.run) for one in held), *(slot_of(one.run) for one in cut_to_publish(commit))):
        if slot in checker.cut:
            raise Violation("I2", f"{slot} was cut into shards a second time")
        checker.cut.add(slot)


def i5_no_shard_vanishes(_: Checker, commit: Commit) -> None:
    """Every shard of a slot that was cut waits, held, or on record; none is there twice."""
    before, after = commit.before, commit.after
    if not isinstance(before, Job) or not isinstance(after, Job):
        return
    granted = [hold for hold in new_holds(commit) if hold.shards is not None and not hold.tries]
    due = _waiting(before)
    for hold in granted:
        if opens(before, hold):
            one = any(
                waiting_run.run == hold.run and waiting_run.shards is None for waiting_run in before.waiting_runs
            )  # asked for by its name
            due[slot_of(hold.run)] += 1 if one else _count(hold.shards)
    for shard in cut_to_publish(commit):
        due[slot_of(shard.run)] += _count(shard.shards)
    due.update(slot_of(hold.run) for hold in before.active if _handed_back(hold, after))
    found = _waiting(after)
    found.update(slot_of(hold.run) for hold in granted)
    found.update(
        slot_of(record.run)
        for record in commit.records
        if record.attempt == 0 and "#" in record.run and _was_cut(before, record.run)
    )
    if due != found:
        raise Violation("I5", f"{commit.name}: shards that waited {dict(due)}, that are accounted for {dict(found)}")


def _waiting(job: Job) -> Counter[str]:
    """Shards that wait to begin, by slot."""
    found: Counter[str] = Counter()
    for waiting_run in job.waiting_runs:
        if waiting_run.shards is not None and not waiting_run.tries:
            found[slot_of(waiting_run.run)] += 1 + waiting_run.more
    return found


def _handed_back(hold: Hold, after: Job) -> bool:
    """Whether a shard that was held waits again as if it had never begun."""
    if hold.shards is None or any((held.run, held.fence) == (hold.run, hold.fence) for held in after.active):
        return False
    return any(waiting_run.run == hold.run and not waiting_run.tries for waiting_run in after.waiting_runs)


def _was_cut(before: Job, run: str) -> bool:
    return any(
        waiting_run.shards is not None and slot_of(waiting_run.run) == slot_of(run)
        for waiting_run in before.waiting_runs
    )
