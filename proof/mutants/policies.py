"""Bugs of what an owner may ask for, beside the list: backfills, rates, on_retry, alarms, requests, permits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proof.mutants import checks
from proof.mutants.mutant import Bites, Mutant, Patches
from proof.mutants.suites import Check, Worlds
from solocron.engine import alarms as engine_alarms
from solocron.engine.alarms import Alarms, _Written
from solocron.engine.permits import Permits
from solocron.engine.runner import Runner
from solocron.engine.transactional_triggers import TransactionalTriggers
from solocron.jobs.retrying import RetryDecision
from solocron.model._fast.values import replace
from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents import alarm, alarm_message, request
from solocron.model.documents.alarm import Bounds
from solocron.model.documents.alarm_message import AlarmMessage, Finding
from solocron.model.documents.job import Hold, Job, WaitingRange, WaitingRun
from solocron.model.documents.run import Origin, group_of
from solocron.model.transitions import backfill, catchup, claiming
from tests.simulation import test_regressions as regressions
from tests.unit.engine import test_alarms
from tests.unit.model.documents import test_alarm_message

__all__ = ["MUTANTS"]


# --- backfills and rates ---------------------------------------------------------------------------------------------


def _p9(bites: Bites) -> Patches:
    real = catchup.busy

    def with_the_past(job: Job) -> bool:
        begun = {group_of(hold.run) for hold in job.active} | {
            group_of(waiting_run.run) for waiting_run in job.waiting_runs if waiting_run.begun
        }
        full = len(begun) >= job.definition.overlap.most
        bites(full is not real(job))
        return full

    return [(catchup, "busy", with_the_past), (claiming, "busy", with_the_past)]


def _p10(bites: Bites) -> Patches:
    real = claiming._first

    def once_more(job: Job, *args: Any) -> tuple[WaitingRun | None, Any]:
        waiting_run, rest = real(job, *args)
        if waiting_run is None or waiting_run.origin is not Origin.BACKFILL or "waiting_ranges" not in rest:
            return waiting_run, rest
        bites()
        return waiting_run, {**rest, "waiting_ranges": job.waiting_ranges}

    return [(claiming, "_first", once_more)]


def _p11(bites: Bites) -> Patches:
    real = backfill.cancel_backfill

    def without_a_word(doc: Any, **more: Any) -> Change | None:
        change = real(doc, **more)
        if change is None:
            return None
        bites(change.records)
        return replace(change, records=())

    return [(backfill, "cancel_backfill", without_a_word)]


def _p12(bites: Bites) -> Patches:
    real = claiming._ready_at

    def at_once(job: Job, waiting_range: WaitingRange) -> int:
        bites(real(job, waiting_range) > waiting_range.first)
        return waiting_range.first

    return [(claiming, "_ready_at", at_once)]


# --- on_retry --------------------------------------------------------------------------------------------------------


def _p13(bites: Bites) -> Patches:
    real = Runner.start

    def unasked(self: Runner, job: Job, hold: Hold, session: str) -> bool:
        bites(hold.crashed)
        return real(self, job, replace(hold, crashed=False), session)

    return [(Runner, "start", unasked)]


def _p14(bites: Bites) -> Patches:
    real = RetryDecision.read

    def deaf(answer: Any) -> RetryDecision:
        said = real(answer)
        bites(said.choice == "done")
        return RetryDecision.repeat() if said.choice == "done" else said

    return [(RetryDecision, "read", deaf)]


# --- alarms ----------------------------------------------------------------------------------------------------------


def _p15(bites: Bites) -> Patches:
    real = alarm_message.decide

    def anew(doc: Any, finding: Finding, **more: Any) -> Change | None:
        bites(isinstance(doc, SmallDocument) and finding.members)
        return real(Absent(Kind.ALARM, doc.name), finding, **{**more, "bounds": replace(more["bounds"], settle=0)})

    return [(alarm_message, "decide", anew)]


def _p16(bites: Bites) -> Patches:
    real = Alarms._tell

    def before_it_is_written(
        self: Alarms, kind: str, finding: Finding, doc: SmallDocument | None, bounds: Bounds
    ) -> None:
        change = alarm_message.decide(
            doc or Absent(Kind.ALARM, kind), finding, bounds=bounds, now=finding.seen, token="mutant", by="mutant"
        )
        if change is not None and change.answer is not None and isinstance(change.doc, SmallDocument):
            bites()
            self._report(_Written(kind, "mutant", finding), alarm_message.read(change.doc))
        real(self, kind, finding, doc, bounds)

    return [(Alarms, "_tell", before_it_is_written)]


def _p17(bites: Bites) -> Patches:
    real = alarm.close

    def never(doc: Any, **more: Any) -> None:
        bites(real(doc, **more))

    return [(alarm, "close", never)]


def _p21(bites: Bites) -> Patches:
    real = alarm_message._while_untold

    def at_once(old: AlarmMessage, finding: Finding, bounds: Bounds) -> Any:
        bites(bounds.settle and finding.members)
        return real(old, finding, replace(bounds, settle=0))

    return [(alarm_message, "_while_untold", at_once)]


def _p22(bites: Bites) -> Patches:
    def all_of_it(old: AlarmMessage, finding: Finding) -> Any:
        bites(finding.members)
        return finding.members

    return [(alarm_message, "_begun_since", all_of_it)]


def _p23(bites: Bites) -> Patches:
    def never(silences: Any, kind: str, subject: str, *, now: int) -> None:
        bites(any(one.covers(kind, subject, now=now) for one in silences))

    return [(engine_alarms, "silenced_by", never)]


# --- requests of transactions ----------------------------------------------------------------------------------------


def _p18(bites: Bites) -> Patches:
    def unwritten(self: TransactionalTriggers, fresh: Sequence[SmallDocument], session: str) -> list[SmallDocument]:
        bites()
        return list(fresh)

    return [(TransactionalTriggers, "_accept", unwritten)]


def _p19(bites: Bites) -> Patches:
    real = request.may_be_known

    def never(note: SmallDocument) -> bool:
        bites(real(note))
        return False

    return [(request, "may_be_known", never)]


def _p20(bites: Bites) -> Patches:
    def whoever_has_it(self: Permits, hold: Hold) -> None:
        mine = self._used.get(hold.permit or "")
        bites(mine is not None and mine.run != hold.run)
        if hold.permit is not None:
            self.release([hold.permit], hold.session)

    return [(Permits, "run_over", whoever_has_it)]


_PAST = {"request": 3.0, "jobs": 8.0}
_DEATHS = {"kill": 9.0, "jobs": 10.0}
_OUTAGES = {"store_restart": 40.0, "partition": 30.0, "jobs": 12.0}
_HALF = checks.a_request_that_was_half_taken_in_is_recognised
_LATE = regressions.test_a_late_claim_that_is_handed_back_does_not_give_away_the_permit_of_another_run
_SETTLED = test_alarm_message.test_what_passes_within_the_settling_time_is_never_told
_STRAGGLER = test_alarm_message.test_trouble_that_began_before_the_message_is_not_told_again_after_it
_SILENCED = test_alarms.test_a_silence_keeps_every_node_quiet_until_it_ends
_LOOKS = {"alarms": 2.0, "kill": 20.0, "deploy": 40.0, "jobs": 10.0}

MUTANTS = [
    Mutant("P-09", "slots are skipped for the sake of a backfill", "I10", _p9, Worlds(_PAST)),
    Mutant("P-10", "a backfill runs what it has run", "I2", _p10, Worlds(_PAST)),
    Mutant("P-11", "a cancelled backfill is forgotten without a record", "I5", _p11, Worlds(_PAST)),
    Mutant("P-12", "a rate is ignored", "I10", _p12, Worlds(_OUTAGES)),
    Mutant("P-13", "on_retry is not asked", "I17", _p13, Worlds(_DEATHS)),
    Mutant("P-14", "on_retry says done, and the run is repeated", "I17", _p14, Worlds(_DEATHS)),
    Mutant("P-15", "every look raises a kind again", "alarms", _p15, Worlds(_LOOKS)),
    Mutant("P-16", "a message is sent before its step is written", "alarms", _p16, Worlds(_LOOKS)),
    Mutant("P-17", "no alarm is ever cleared", "alarms", _p17, Worlds(_LOOKS)),
    Mutant("P-18", "a request is removed without its run", "I5", _p18, Worlds({"request": 3})),
    Mutant("P-19", "a request that was half taken in is taken in again", "I13", _p19, Check(_HALF, by="I13")),
    Mutant("P-20", "a run's end gives back a permit that another run has", "I9", _p20, Check(_LATE, by="I9")),
    Mutant("P-21", "an alarm is not given time to pass", "alarms", _p21, Check(_SETTLED, by="alarms")),
    Mutant("P-22", "the straggler of an outage is told again", "alarms", _p22, Check(_STRAGGLER, by="alarms")),
    Mutant("P-23", "nodes do not respect a silence", "alarms", _p23, Check(_SILENCED, by="alarms")),
]
