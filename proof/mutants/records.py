"""Bugs of cursors, history and keys, of drivers, and of calendars and clocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from proof.mutants import checks
from proof.mutants.mutant import Bites, Mutant, Patches
from proof.mutants.suites import Check, Worlds
from solocron.engine.execution import Execution
from solocron.engine.housekeeping import PRUNE_BATCH, Housekeeping
from solocron.model.change import Absent, Kind
from solocron.model.documents.job import Job
from solocron.model.documents.run import Record
from solocron.model.policy import CatchUp
from solocron.model.timetable import Timetable
from solocron.model.transitions import catchup, claiming
from solocron.schedules.every import Every
from solocron.schedules.zoned import Local
from solocron.stores.contract import Named
from solocron.stores.drafts import Draft, Written
from solocron.stores.sql.pool import Pool
from solocron.testing.simulation.database import Database, SimSelection
from tests.simulation import test_append_only_log
from tests.unit.model import test_zone_data

__all__ = ["MUTANTS"]


# --- cursor, history, keys -------------------------------------------------------------------------------------------


def _x04(bites: Bites) -> Patches:
    real = catchup.decide

    def cursor_first(job: Job, *args: Any, **more: Any) -> tuple[Job, tuple[Record, ...]]:
        decided, _ = real(job, *args, **more)
        bites(decided is not job)
        return replace(job, cursor=decided.cursor, nominal=decided.nominal), ()

    return [(claiming, "decide", cursor_first), (claiming, "ordinary", _not_today)]


def _not_today(*args: Any, **more: Any) -> None:
    """No claim is ordinary: each goes the way with the bug."""


def _x12(bites: Bites) -> Patches:
    real = catchup._missed

    def only_the_last(job: Job, *args: Any) -> Job:
        bites(job.definition.catch_up.kind == "all")
        latest = replace(job.definition, catch_up=CatchUp("latest"))
        return replace(real(replace(job, definition=latest), *args), definition=job.definition)

    return [(catchup, "_missed", only_the_last)]


def _x13(bites: Bites) -> Patches:
    real = Database.commit

    def in_a_second_transaction(self: Database, chosen: SimSelection, drafts: Sequence[Draft], *more: Any) -> Written:
        for draft in drafts:
            change = draft.change
            if change is not None and any(record.attempt for record in change.records):
                bites()
                first = tuple(record for record in change.records if not record.attempt)
                draft.change = replace(change, records=first)
        return real(self, chosen, drafts, *more)

    return [(Database, "commit", in_a_second_transaction)]


def _x15(bites: Bites) -> Patches:
    real = claiming.catch_up_to

    def back_with_the_clock(job: Job, *args: Any, now: int, **more: Any) -> tuple[Job, tuple[Record, ...]]:
        job, records = real(job, *args, now=now, **more)
        bites(job.cursor > now)
        return (replace(job, cursor=now) if job.cursor > now else job), records

    return [(claiming, "catch_up_to", back_with_the_clock)]


def _x28(bites: Bites) -> Patches:
    def everything(self: Housekeeping) -> None:
        now = self._lease.store_now()
        if now is not None:
            bites()
            self._context.store.prune(now, PRUNE_BATCH)

    return [(Housekeeping, "_prune", everything)]


def _x29(bites: Bites) -> Patches:
    real = catchup.decide

    def from_the_clock_alone(job: Job, *args: Any, now: int, late_for: int) -> Any:
        if job.cursor > now:
            bites()
            job = replace(job, cursor=now - late_for)
        return real(job, *args, now=now, late_for=late_for)

    return [(claiming, "decide", from_the_clock_alone)]


def _x24(bites: Bites) -> Patches:
    real = Execution.run

    def with_the_attempt(self: Execution) -> Any:
        built, run = self._run is not None, real(self)
        if not built:
            bites(run.attempt > 1)
            run.key = f"{run.key}/{run.attempt}"
        return run

    return [(Execution, "run", with_the_attempt)]


def _x83(bites: Bites) -> Patches:
    real = Database._apply

    def refused(self: Database, chosen: SimSelection, draft: Draft, *more: Any) -> bool:
        assert draft.change is not None
        if any(self.log.get((one.run, one.attempt), one) != one for one in draft.change.records):
            bites()
            return False
        return real(self, chosen, draft, *more)

    return [(Database, "_apply", refused)]


# --- drivers ---------------------------------------------------------------------------------------------------------


def _x20(bites: Bites) -> Patches:
    @contextmanager
    def kept(self: Pool[Any], *, renews: bool = False) -> Iterator[Any]:
        link = self._take(renews)
        try:
            yield link
        except BaseException:
            bites()
            raise
        finally:
            self._give_back(link, self._process, renews=renews)

    return [(Pool, "link", kept)]


def _answers_yes(bites: Bites, *, opening: bool) -> Patches:
    real = Database._apply

    def applied(self: Database, chosen: SimSelection, draft: Draft, *more: Any) -> bool:
        done = real(self, chosen, draft, *more)
        assert draft.change is not None
        after = draft.change.doc
        claims = isinstance(after, Job) and bool(after.active) and not draft.change.records
        if done or claims is not opening:
            return done
        bites()
        return True

    return [(Database, "_apply", applied)]


def _x44(bites: Bites) -> Patches:
    real = Database.select

    def from_a_replica(self: Database, client: str, which: Any, done: Any, **more: Any) -> None:
        def late(chosen: SimSelection) -> None:
            old = self._as_of(self.kernel.now - 1.0)
            docs: list[Any] = []
            for doc, version in chosen.docs:
                kind = Kind.JOB if isinstance(doc, Job) else doc.kind if isinstance(doc, Absent) else Kind.SESSION
                then = old.get((kind, doc.name))
                bites(then is not None)
                docs.append((then[0] if then else doc, version))
            chosen.docs = docs
            done(chosen)

        real(self, client, which, done if isinstance(which, Named) else late, **more)

    return [(Database, "select", from_a_replica)]


# --- calendars and clocks --------------------------------------------------------------------------------------------


def _x30(bites: Bites) -> Patches:
    def nothing_is_made_up(self: Local, reading: int, gap: int) -> bool:
        bites(gap)
        return False

    return [(Local, "_makes_up", nothing_is_made_up)]


def _x31(bites: Bites) -> Patches:
    real = Every.after_us

    def or_the_same(self: Every, us: int) -> int | None:
        bites(us % self.period_us == 0)
        return us if us % self.period_us == 0 else real(self, us)

    return [(Every, "after_us", or_the_same)]


def _x32(bites: Bites) -> Patches:
    real = Timetable.decided_until

    def the_old_instant(self: Timetable, cursor: int, nominal: str | None) -> int:
        bites(real(self, cursor, nominal) != cursor)
        return cursor

    return [(Timetable, "decided_until", the_old_instant)]


MUTANTS = [
    Mutant("X-04", "the cursor is advanced before the claim", "I5", _x04, Worlds({})),
    Mutant("X-12", "catch-up runs only the last slot", "I10", _x12, Worlds({"store_restart": 15, "jobs": 10})),
    Mutant("X-13", "history in a second transaction", "I12", _x13, Worlds({})),
    Mutant("X-15", "the cursor may go back", "I11", _x15, Worlds({"clock_step": 15})),
    Mutant("X-28", "retention removes what is young", "I12", _x28, Worlds({}, hours=0.1)),
    Mutant("X-29", "a clock that goes back fires a slot again", "I2", _x29, Worlds({"clock_step": 15})),
    Mutant(
        "X-83",
        "an end that is on record already is refused",
        "I14",
        _x83,
        Check(test_append_only_log.test_an_end_that_is_on_record_already_ends_its_hold, by="I14"),
    ),
    Mutant("X-24", "the idempotency key contains the attempt", "I16", _x24, Worlds({"kill": 15})),
    Mutant(
        "X-20",
        "an interrupted call gives its connection back",
        "I13",
        _x20,
        Check(checks.an_interrupted_connection_is_never_used_again),
    ),
    Mutant(
        "X-36",
        "a duplicate key is taken for success",
        "I1",
        lambda bites: _answers_yes(bites, opening=True),
        Worlds({"locking": 0}),
    ),
    Mutant(
        "X-43",
        "affected rows are not counted",
        "I4",
        lambda bites: _answers_yes(bites, opening=False),
        Worlds({"locking": 0, "jobs": 10}),
    ),
    Mutant("X-44", "what a replica says decides", "I1", _x44, Worlds({"stale_reads": 1e-9})),
    Mutant("X-30", "a time in a gap never comes", "I18", _x30, Check(checks.both_clock_changes)),
    Mutant("X-31", "the next slot may be this one", "I20", _x31, Check(checks.the_next_slot_is_later)),
    Mutant(
        "X-32",
        "new zone data keeps the old instants",
        "I18",
        _x32,
        Check(
            test_zone_data.test_nine_oclock_is_decided_once,
            (test_zone_data.SUMMER, test_zone_data.NO_SUMMER),
            by="I18",
        ),
    ),
]
