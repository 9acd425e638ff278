"""Bugs of claims and of fences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from proof.mutants.mutant import Bites, Mutant, Patches
from proof.mutants.suites import Check, Worlds
from solocron.engine import finisher as finisher_module
from solocron.engine import takeover as takeover_module
from solocron.engine.attempts import Attempts, Phase, Running
from solocron.engine.claim_pass import ClaimPass
from solocron.engine.signs import Signs
from solocron.lease.liveness import Liveness
from solocron.model.change import Absent, Change
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Record
from solocron.model.policy import allow
from solocron.model.transitions import claiming, commands, finishing
from solocron.model.transitions.claimant import Claimant
from solocron.stores.contract import Gate, Result, Verdict
from solocron.stores.drafts import Draft, Row, Written
from solocron.testing.simulation.database import Database, SimSelection
from tests.unit.engine import test_lease_protocol as protocol

__all__ = ["MUTANTS"]


# --- claims ----------------------------------------------------------------------------------------------------------


def _x05(bites: Bites) -> Patches:
    real = Database._apply

    def whatever_is_there_now(self: Database, chosen: SimSelection, draft: Draft, *more: Any) -> bool:
        known, read = self.docs.get((draft.kind, draft.name)), draft.mark
        bites((known[1] if known else 0) != (read[1] if read else 0))
        row = None if known is None else Row(draft.name, known, "", "")
        return real(self, chosen, replace(draft, row=row), *more)

    return [(Database, "_apply", whatever_is_there_now)]


def _x08(bites: Bites) -> Patches:
    real_change, real_take = ClaimPass._change, ClaimPass._take
    wanted: dict[tuple[int, str], Change] = {}

    def change(self: ClaimPass, doc: Job | Absent, now: int, by: Claimant) -> Change | None:
        made = real_change(self, doc, now, by)
        if made is not None:
            wanted[(id(self), doc.name)] = made
        return made

    def take(self: ClaimPass, found: Any, session: str, epoch: str, replied: float) -> int:
        results = []
        for result in found:
            made = wanted.get((id(self), result.name))
            if result.verdict is Verdict.UNKNOWN and made is not None:
                bites()
                result = Result(result.name, Verdict.APPLIED, made.doc, made.answer)
            results.append(result)
        return real_take(self, results, session, epoch, replied)

    return [(ClaimPass, "_change", change), (ClaimPass, "_take", take)]


def _x11(bites: Bites) -> Patches:
    real, count = commands.trigger, iter(range(1_000_000))

    def never_the_same_twice(doc: Any, *, request: str, **more: Any) -> Change | None:
        bites()
        return real(doc, request=f"{request} {next(count)}", **more)

    return [(commands, "trigger", never_the_same_twice)]


def _x14(bites: Bites) -> Patches:
    def nobody_ever_dies(self: Liveness, session: Any, *_: Any) -> bool:
        bites()
        self._watched[session.name].not_before(self._runtime.clock.boot() + 1)
        return False

    return [(Liveness, "_bury", nobody_ever_dies)]


def _x21(bites: Bites) -> Patches:
    real = Attempts.begin

    def without_a_second_look(self: Attempts, running: Running) -> bool:
        if real(self, running):
            return True
        bites()
        running.phase = Phase.BEGUN
        running.begun_at = self._boot()
        return True

    return [(Attempts, "begin", without_a_second_look)]


def _x22(bites: Bites) -> Patches:
    real = Database.commit

    def later(
        self: Database, chosen: SimSelection, drafts: Sequence[Draft], session: str | None, gate: Gate | None
    ) -> Written:
        if session is None or gate is None:
            return real(self, chosen, drafts, session, gate)
        bites()
        self.rollback(chosen)
        for draft in drafts:  # visible to others only when the caller's own transaction commits
            self.kernel.after(2.0, self._apply, chosen, draft, {})
        return Written()

    return [(Database, "commit", later)]


def _x27(bites: Bites) -> Patches:
    real = claiming.may_start

    def looked_up_elsewhere(job: Job, *more: Any) -> Any:
        found = real(replace(job, definition=replace(job.definition, overlap=allow(1000))), *more)
        bites(any(found) and len(job.active) >= job.definition.overlap.most)
        return found

    return [(claiming, "may_start", looked_up_elsewhere)]


# --- fences ----------------------------------------------------------------------------------------------------------


def _x06(bites: Bites) -> Patches:
    real, real_over = claiming._take, finishing.take_over

    def same_fence(job: Job, *args: Any, **more: Any) -> tuple[Job, Hold | None, tuple[Record, ...]]:
        taken, hold, records = real(job, *args, **more)
        if not isinstance(hold, Hold) or hold.attempt == 1:
            return taken, hold, records
        bites()
        old = replace(hold, fence=job.fence)
        return replace(taken, active=(*taken.active[:-1], old), fence=job.fence), old, records

    def not_raised(doc: Any, **more: Any) -> Change | None:
        change = real_over(doc, **more)
        if change is None or not isinstance(change.doc, Job):
            return change
        return replace(change, doc=replace(change.doc, fence=doc.fence))

    return [(claiming, "_take", same_fence), (takeover_module, "take_over", not_raised)]


def _x07(bites: Bites) -> Patches:
    def by_run_alone(self: Job, run: str, fence: int) -> Hold | None:
        found = next((hold for hold in self.active if hold.run == run), None)
        bites(found is not None and found.fence != fence)
        return found

    return [(Job, "hold", by_run_alone)]


def _x23(bites: Bites) -> Patches:
    real = finishing.finish
    accepted: dict[tuple[str, int], tuple[Record, ...]] = {}

    def again(doc: Any, *, run: str, fence: int, **more: Any) -> Change | None:
        change = real(doc, run=run, fence=fence, **more)
        if change is not None and change.answer == "accepted before" and (run, fence) in accepted:
            bites()
            return Change(doc, accepted[run, fence], "accepted")
        if change is not None:
            accepted[run, fence] = change.records
        return change

    return [(finisher_module, "finish", again)]


def _x42(bites: Bites) -> Patches:
    real = Signs.session_went_back

    def never(self: Signs, doc: object, session: str) -> bool:
        bites(real(self, doc, session))
        self.lost = None
        return False

    return [(Signs, "session_went_back", never)]


MUTANTS = [
    Mutant("X-05", "read, then write", "I1", _x05, Worlds({"locking": 0})),
    Mutant("X-08", "no answer to a claim is taken for a yes", "I7", _x08, Worlds({"lost_request": 0.1})),
    Mutant("X-11", "a repeated request has an id of its own", "I13", _x11, Worlds({"request": 3, "lost_reply": 0.1})),
    Mutant("X-14", "no takeover of expired claims", "I5", _x14, Worlds({"kill": 20})),
    Mutant(
        "X-21",
        "ownership is not looked at again after waiting",
        "I7",
        _x21,
        Worlds({"failpoint": 2, "freeze": 10, "jobs": 10}, hours=0.1),
    ),
    Mutant("X-22", "the claim is part of the caller's transaction", "I1", _x22, Worlds({})),
    Mutant("X-27", "the overlap limit is looked up outside the claim", "I9", _x27, Worlds({})),
    Mutant("X-06", "the fence is not raised by a takeover", "I3", _x06, Worlds({"kill": 20})),
    Mutant(
        "X-07",
        "the fence is not checked by a finish",
        "I4",
        _x07,
        Worlds({"failpoint": 2, "freeze": 10, "jobs": 10}, hours=0.1),
    ),
    Mutant("X-23", "a finish is accepted twice", "I6", _x23, Worlds({"lost_reply": 0.1})),
    Mutant(
        "X-42",
        "a store restored from a backup is accepted",
        "I3",
        _x42,
        Check(protocol.test_a_store_that_was_restored_from_a_backup_is_not_claimed_from_until_someone_says_so, by="I3"),
    ),
]
