"""Bugs that the checkers must catch: each a named patch of the machine, in memory, that counts how often it bit.

The X-numbers are those of the list of bugs to inject; the H-mutants exist to show that the remaining checkers can fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from solocron.clock import SECOND
from solocron.model.change import Change
from solocron.model.documents.job import Hold, Job, WaitingRun
from solocron.model.documents.run import Record
from solocron.model.policy import CatchUp, allow
from solocron.model.transitions import catchup, claiming, commands, finishing

__all__ = ["HARNESS", "MUTANTS", "Mutant"]


class Bites:
    """How often a patch made a difference."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, bitten: object = True) -> None:
        self.count += bool(bitten)


Patches = list[tuple[Any, str, Callable[..., Any]]]


@dataclass(frozen=True)
class Mutant:
    """A bug: what it is, the invariants that must kill it, and what it replaces."""

    name: str
    what: str
    killed_by: tuple[str, ...]
    make: Callable[[Bites], Patches]

    @contextmanager
    def alive(self) -> Iterator[Bites]:
        """The machine with the bug in it."""
        bites = Bites()
        with ExitStack() as stack:
            for where, name, bug in self.make(bites):
                stack.enter_context(patch.object(where, name, bug))
            yield bites


def _x04(bites: Bites) -> Patches:
    real = catchup.decide

    def decide(job: Job, *args: Any, **more: Any) -> tuple[Job, tuple[Record, ...]]:
        decided, _ = real(job, *args, **more)
        bites(decided is not job)
        return replace(job, cursor=decided.cursor, nominal=decided.nominal), ()

    return [(claiming, "decide", decide)]


def _x06(bites: Bites) -> Patches:
    take, take_over = claiming._take, finishing.take_over

    def same_fence(job: Job, *args: Any, **more: Any) -> tuple[Job, Hold | claiming.Needs | None, tuple[Record, ...]]:
        taken, hold, records = take(job, *args, **more)
        if not isinstance(hold, Hold) or hold.attempt == 1:
            return taken, hold, records
        bites()
        old = replace(hold, fence=job.fence)
        return replace(taken, active=(*taken.active[:-1], old), fence=job.fence), old, records

    def not_raised(doc: Any, **more: Any) -> Change | None:
        change = take_over(doc, **more)
        if change is None or not isinstance(change.doc, Job):
            return change
        return replace(change, doc=replace(change.doc, fence=doc.fence))

    return [(claiming, "_take", same_fence), (finishing, "take_over", not_raised)]


def _x07(bites: Bites) -> Patches:
    def by_run_alone(self: Job, run: str, fence: int) -> Hold | None:
        found = next((hold for hold in self.active if hold.run == run), None)
        bites(found is not None and found.fence != fence)
        return found

    return [(Job, "hold", by_run_alone)]


def _x12(bites: Bites) -> Patches:
    real = catchup._missed

    def only_the_last(job: Job, *args: Any) -> Job:
        bites(job.definition.catch_up.kind == "all")
        latest = replace(job.definition, catch_up=CatchUp("latest"))
        return replace(real(replace(job, definition=latest), *args), definition=job.definition)

    return [(catchup, "_missed", only_the_last)]


def _x15(bites: Bites) -> Patches:
    real = claiming.catch_up_to

    def back_with_the_clock(job: Job, *args: Any, now: int, **more: Any) -> tuple[Job, tuple[Record, ...]]:
        job, records = real(job, *args, now=now, **more)
        bites(job.cursor > now)
        return (replace(job, cursor=now) if job.cursor > now else job), records

    return [(claiming, "catch_up_to", back_with_the_clock)]


def _x23(bites: Bites) -> Patches:
    real = finishing.finish
    accepted: dict[tuple[str, int], tuple[Record, ...]] = {}

    def again(doc: Any, *, run: str, fence: int, **more: Any) -> Change | None:
        change = real(doc, run=run, fence=fence, **more)
        if change is not None and change.answer == "accepted before":
            bites()
            return Change(doc, accepted[run, fence], "accepted")
        if change is not None:
            accepted[run, fence] = change.records
        return change

    return [(finishing, "finish", again)]


def _x24(bites: Bites) -> Patches:
    real = finishing.record_of

    def key_with_attempt(job: Job, hold: Hold, *args: Any, **more: Any) -> Record:
        bites(hold.attempt > 1)
        record = real(job, hold, *args, **more)
        return replace(record, key=f"{record.key}/{hold.attempt}")

    return [(finishing, "record_of", key_with_attempt)]


def _x27(bites: Bites) -> Patches:
    real = claiming.may_start

    def checked_elsewhere(job: Job, *more: Any) -> Any:
        many = replace(job, definition=replace(job.definition, overlap=allow(1000)))
        found = real(many, *more)
        bites(any(found) and len(job.active) >= job.definition.overlap.most)
        return found

    return [(claiming, "may_start", checked_elsewhere)]


MUTANTS = [
    Mutant("X-04", "the cursor is advanced before the claim", ("i5", "i11"), _x04),
    Mutant("X-06", "the fence is not increased on takeover", ("i3",), _x06),
    Mutant("X-07", "the fence is not checked on complete", ("i4",), _x07),
    Mutant("X-12", "catch-up runs only the last slot", ("i10",), _x12),
    Mutant("X-15", "the cursor may go back", ("i11",), _x15),
    Mutant("X-23", "a completion is accepted twice", ("i6",), _x23),
    Mutant("X-24", "the idempotency key contains the attempt", ("i16",), _x24),
    Mutant("X-27", "the overlap limit is checked outside the claim", ("i9",), _x27),
]


# --- so that no checker is blind --------------------------------------------------------------------------------------


def _still_waiting(bites: Bites) -> Patches:
    real = claiming._take

    def take(job: Job, *args: Any, **more: Any) -> tuple[Job, Hold | claiming.Needs | None, tuple[Record, ...]]:
        taken, hold, records = real(job, *args, **more)
        if isinstance(hold, Hold):
            bites()
            waiting_run = WaitingRun(
                run=hold.run, slot=hold.slot, origin=hold.origin, ready_at=hold.slot, request=hold.request,
                shard=hold.shard, shards=hold.shards,
            )  # fmt: skip
            taken = replace(taken, waiting_runs=(*taken.waiting_runs, waiting_run))
        return taken, hold, records

    return [(claiming, "_take", take)]


def _same_attempt(bites: Bites) -> Patches:
    real = finishing.waiting_again

    def waits_again(hold: Hold, **more: Any) -> WaitingRun:
        bites()
        return replace(real(hold, **more), attempt=hold.attempt)

    return [(finishing, "waiting_again", waits_again)]


def _late_entry(bites: Bites) -> Patches:
    real = finishing.end_hold

    def end(*args: Any, **more: Any) -> tuple[Job, tuple[Record, ...]]:
        job, records = real(*args, **more)
        bites()
        return job, tuple(replace(record, recorded_at=record.recorded_at + 1) for record in records)

    return [(finishing, "end_hold", end)]


def _forgetful(bites: Bites) -> Patches:
    def answered(job: Job, request: str) -> None:
        bites(any(known.id == request for known in job.requests))

    return [(commands, "answered", answered)]


def _impatient(bites: Bites) -> Patches:
    real = claiming._first

    def first(job: Job, resolve: Any, now: int, *more: Any) -> Any:
        bites()
        return real(job, resolve, now + 600 * SECOND, *more)

    return [(claiming, "_first", first)]


def _moody(bites: Bites) -> Patches:
    real = claiming._take

    def take(job: Job, resolve: Any, *, now: int, by: claiming.Claimant) -> Any:
        bites(by.node == "b")
        return (job, None, ()) if by.node == "b" else real(job, resolve, now=now, by=by)

    return [(claiming, "_take", take)]


def _asleep(bites: Bites) -> Patches:
    def recompute_due(job: Job, slots: Any) -> Job:
        bites()
        return job

    return [(finishing, "recompute_due", recompute_due)]


HARNESS = [
    Mutant("H-1", "a claimed run stays waiting", ("i1", "i2"), _still_waiting),
    Mutant("H-2", "a retry has the number of the attempt before", ("i2", "i12"), _same_attempt),
    Mutant("H-3", "a record is stamped with another time than its commit", ("i12",), _late_entry),
    Mutant("H-4", "requests are not remembered", ("i13",), _forgetful),
    Mutant("H-5", "runs start before their time", ("i15",), _impatient),
    Mutant("H-6", "what a claim does depends on who makes it", ("i18",), _moody),
    Mutant("H-7", "the due instant is not computed anew after a finish", ("i20",), _asleep),
]
