"""Bugs of what nodes do when the store goes back: each leaves out one rule of docs/explanation/going-back.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from proof.mutants.mutant import Bites, Mutant, Patches
from proof.mutants.suites import Check, Worlds
from solocron.client.restore import Restore
from solocron.effects.locks import writing
from solocron.engine import put_back as put_back_module
from solocron.engine import recovery as recovery_module
from solocron.engine.attempts import _RecentlyDone
from solocron.engine.claim_pass import Starter
from solocron.engine.draining import Departure
from solocron.engine.housekeeping import Housekeeping
from solocron.engine.memory import Memory
from solocron.engine.namespace_gate import NamespaceGate
from solocron.engine.newcomer import Newcomer
from solocron.engine.put_back import PutBack
from solocron.engine.reconciler import Reconciler
from solocron.engine.settings import Settings
from solocron.engine.signs import Signs
from solocron.lease import holder as holder_module
from solocron.lease.liveness import Liveness
from solocron.model.change import Change, Kind, SmallDocument
from solocron.model.documents import namespace as namespace_model
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.namespace import Namespace, Openness
from solocron.model.documents.session import Life, Session
from solocron.model.transitions import claiming
from solocron.model.transitions import rejoin as rejoin_module
from solocron.model.transitions.giving_up import GivingUp
from solocron.stores.contract import Gate, Store
from solocron.testing.simulation.database import Database
from tests.simulation import test_going_back_histories as histories
from tests.unit.client import test_restore as restore
from tests.unit.engine import test_going_back as going_back
from tests.unit.engine import test_lease_protocol as lease_protocol
from tests.unit.lease import test_liveness as liveness
from tests.unit.model.transitions import test_rejoin as rejoining

__all__ = ["MUTANTS"]


def _g01(bites: Bites) -> Patches:
    real = Database._is_open

    def any_server(self: Database, session: str, gate: Gate) -> bool:
        if real(self, session, gate):
            return True
        own = self.docs[("session", session)][0]  # type: ignore[index]
        state, epoch, *_ = self._gate().split(" ")
        found = f"{state} {epoch}" in gate.words and own.beats >= gate.beats  # type: ignore[union-attr]
        bites(found)
        return found

    return [(Database, "_is_open", any_server)]


def _g02(bites: Bites) -> Patches:
    real = Database._is_open

    def any_age(self: Database, session: str, gate: Gate) -> bool:
        found = real(self, session, replace(gate, beats=0))
        bites(found and not real(self, session, gate))
        return found

    return [(Database, "_is_open", any_age)]


def _g03(bites: Bites) -> Patches:
    def nothing(self: PutBack, *_: Any) -> None:
        bites()

    return [(PutBack, "_runs", nothing)]


def _g04(bites: Bites) -> Patches:
    real = recovery_module.all_marked

    def nobody_waits(sessions: Any, epoch: str) -> bool:
        bites(not real(sessions, epoch))
        return True

    return [(recovery_module, "all_marked", nobody_waits)]


def _g05(bites: Bites) -> Patches:
    def none(self: Settings) -> float:
        bites()
        return 0.0

    return [(Settings, "barrier", property(none))]


def _g06(bites: Bites) -> Patches:
    real = NamespaceGate.gate

    def untested(self: NamespaceGate, *openness: Openness) -> Any:
        if openness != (Openness.OPEN, Openness.CHECKING):
            return real(self, *openness)
        bites()
        return None  # a burial is then tested for the life of the sweeper's own session only

    return [(NamespaceGate, "gate", untested)]


def _g08(bites: Bites) -> Patches:
    real = Memory.claimed

    def whenever(self: Memory, epoch: str, claims: Any) -> bool:
        bites(epoch != self.epoch)
        return real(self, self.epoch, claims)

    return [(Memory, "claimed", whenever)]


def _g09(bites: Bites) -> Patches:
    real = Signs.session_went_back

    def only_the_living(self: Signs, doc: object, session: str) -> bool:
        if isinstance(doc, Session) and doc.state is not Life.LIVE:
            bites()
            return False
        return real(self, doc, session)

    return [(Signs, "session_went_back", only_the_living)]


def _g11(bites: Bites) -> Patches:
    real = namespace_model._next

    def sure(*args: Any, doubt: bool, **more: Any) -> Namespace:
        bites(doubt)
        return real(*args, doubt=False, **more)

    return [(namespace_model, "_next", sure)]


def _g12(bites: Bites) -> Patches:
    def silent(job: Job, slots: Any, *, now: int) -> tuple[Job, tuple[Any, ...]]:
        bites(job.back is not None)
        return replace(job, back=None), ()

    return [(claiming, "write_off_untold", silent)]


def _g16(bites: Bites) -> Patches:
    real = recovery_module.change_namespace

    def anywhere(store: Any, change: Any, **more: Any) -> Namespace | None:
        bites(more)
        return real(store, change)

    return [(recovery_module, "change_namespace", anywhere)]


def _g17(bites: Bites) -> Patches:
    real = holder_module.renew

    def lifted(doc: Any, *, lift: bool, epoch: str | None, **more: Any) -> Change | None:
        bites(epoch is not None and not lift)
        return real(doc, lift=lift or epoch is not None, epoch=epoch, **more)

    def untested(*words: Any) -> None:
        """The gate of the mark."""

    return [(holder_module, "renew", lifted), (recovery_module, "gate_of_epoch", untested)]


def _without(kind: Kind) -> Callable[[Bites], Patches]:
    """Put back everything but effects of one kind."""

    def make(bites: Bites) -> Patches:
        real = Memory.effects

        def others(self: Memory) -> dict[Kind, dict[str, SmallDocument]]:
            found = real(self)
            bites(found.pop(kind, None))
            return found

        return [(Memory, "effects", others)]

    return make


def _g20(bites: Bites) -> Patches:
    def every(self: NamespaceGate, kind: Kind, name: str, doc: object, gate: Gate | None) -> bool:
        if isinstance(doc, SmallDocument):
            bites(doc.session not in (None, self._holder.lease.session))
            return self._memory.wrote(doc, gate)
        self._memory.removed(kind, name)
        return True

    return [(NamespaceGate, "wrote", every)]


def _g22(bites: Bites) -> Patches:
    def silently(self: Housekeeping, before: int) -> bool:
        bites()
        return True

    return [(Housekeeping, "_announce", silently)]


def _g23(bites: Bites) -> Patches:
    real = Restore._stopped_at

    def never(self: Restore) -> int:
        bites(real(self))
        return 0

    return [(Restore, "_stopped_at", never)]


def _g24(bites: Bites) -> Patches:
    real = writing.stands_open

    def believed(store: Store, gate: Gate, session: str) -> bool:
        bites(not real(store, gate, session))
        return True

    return [(writing, "stands_open", believed)]


def _g25(bites: Bites) -> Patches:
    begin, opens = namespace_model.begin_restoring, namespace_model.reopen

    def begun(doc: Any, *, after: str | None = None, **more: Any) -> Change | None:
        bites(begin(doc, after=after, **more) is None)
        return begin(doc, **more)

    def opened(doc: Any, *, restoring: str, **more: Any) -> Change | None:
        found = namespace_model.read(doc)
        bites(opens(doc, restoring=restoring, **more) is None)
        return opens(doc, restoring="" if found is None else found.restoring, **more)

    return [(namespace_model, "begin_restoring", begun), (namespace_model, "reopen", opened)]


def _g26(bites: Bites) -> Patches:
    real = Restore._is_moved

    def believed(self: Restore, names: set[str], fence: int) -> bool:
        bites(not real(self, names, fence))
        return True

    return [(Restore, "_is_moved", believed)]


def _x82(bites: Bites) -> Patches:
    real = Reconciler._can_be_new

    def anything(self: Reconciler, hold: Hold) -> bool:
        bites(not real(self, hold))
        return True

    return [(Reconciler, "_can_be_new", anything)]


def _g14(bites: Bites) -> Patches:
    real = Newcomer.begun

    def at_once(self: Newcomer, session: str) -> None:
        real(self, session)
        bites(self.claims_from)
        self.claims_from = 0.0

    return [(Newcomer, "begun", at_once)]


def _g15(bites: Bites) -> Patches:
    real = put_back_module.write_off

    def left(*args: Any, **more: Any) -> Change | None:
        bites(real(*args, **more))
        return None

    return [(put_back_module, "write_off", left)]


def _g21(bites: Bites) -> Patches:
    def always(self: Liveness) -> float:
        bites(self._lease is not None and self._lease.in_touch_since())
        return 0.0

    return [(Liveness, "_in_touch_since", always)]


def _g27(bites: Bites) -> Patches:
    def forgotten(self: Memory, change: GivingUp) -> None:
        bites(True)

    return [(Memory, "giving_up", forgotten)]


def _g28(bites: Bites) -> Patches:
    real = Memory.wrote

    def believed(self: Memory, note: SmallDocument, gate: Gate | None) -> bool:
        bites(not real(self, note, gate))
        return real(self, note, None)

    return [(Memory, "wrote", believed)]


def _g29(bites: Bites) -> Patches:
    real = _RecentlyDone.knows

    def always(self: _RecentlyDone, key: tuple[str, int], now: float) -> bool:
        bites(key in self._ends and not real(self, key, now))
        return key in self._ends

    return [(_RecentlyDone, "knows", always)]


def _g30(bites: Bites) -> Patches:
    real = Departure.close_session

    def unasked(self: Departure, session: str, why: str, *, checked: bool = True) -> None:
        bites(checked)
        real(self, session, why, checked=False)

    return [(Departure, "close_session", unasked)]


def _g31(bites: Bites) -> Patches:
    real = Starter.remembers

    def forgets(self: Starter, key: tuple[str, int]) -> bool:
        bites(real(self, key))
        return False

    return [(Starter, "remembers", forgets)]


def _g32(bites: Bites) -> Patches:
    real = rejoin_module._is_behind

    def by_the_fence(job: Job, hold: Hold) -> bool:
        waits = real(replace(job, active=()), hold)
        bites(real(job, hold) and not waits)
        return waits

    return [(rejoin_module, "_is_behind", by_the_fence)]


def _g33(bites: Bites) -> Patches:
    real = rejoin_module.may_have_started

    def what_is_due(job: Job, until: int) -> bool:
        alone = real(replace(job, active=()), until)
        bites(real(job, until) and not alone)
        return alone

    return [(rejoin_module, "may_have_started", what_is_due)]


FAILOVER = {"failover": 6.0, "jobs": 25}
RESTORE = {"restore": 20.0}
LOSSES = {"failover": 8.0, "kill": 6.0, "freeze": 10.0, "jobs": 15}

MUTANTS = [
    Mutant("G-01", "a claim is granted whichever server answers", "I22", _g01, Worlds(FAILOVER)),
    Mutant("G-02", "a claim is granted to a session that went back", "I22", _g02, Worlds(RESTORE)),
    Mutant("G-03", "no node puts back what it remembers", "I22", _g03, Worlds(FAILOVER)),
    Mutant("G-04", "claims are granted before every node has checked", "I22", _g04, Worlds(LOSSES)),
    Mutant("G-05", "claims are granted as soon as those who are there have checked", "I22", _g05,
           Check(histories.test_a_node_whose_session_was_lost_has_the_time_to_come_back)),
    Mutant("G-06", "a burial does not ask whether the store went back", "I22", _g06,
           Check(histories.test_nobody_is_buried_by_a_node_that_has_not_seen_that_the_store_went_back)),
    Mutant("G-08", "a claim that is answered after the check starts", "I22", _g08,
           Check(histories.test_an_answer_that_comes_after_the_check_starts_nothing)),
    Mutant("G-09", "a dead session with too few renewals is no sign", "I22", _g09,
           Check(histories.test_a_node_that_was_frozen_learns_from_its_dead_session_that_the_store_went_back)),
    Mutant("G-11", "the doubt of an earlier check is forgotten", "I22", _g11,
           Check(histories.test_a_doubt_outlives_the_check_in_which_it_came_up)),
    Mutant("G-12", "slots that lost claims had passed leave no record", "I22", _g12, Worlds(LOSSES)),
    Mutant("G-14", "a node that begins claims at once", "I22", _g14,
           Worlds(RESTORE | {"kill": 10.0})),
    Mutant("G-15", "what a node that is gone may have started is left as it is", "I22", _g15,
           Worlds(LOSSES)),
    Mutant("G-16", "a namespace is opened whichever server answers", "I22", _g16,
           Check(histories.test_a_namespace_opens_only_on_the_server_on_which_it_was_checked)),
    Mutant("G-17", "a session that went back is marked as checked", "I22", _g17,
           Check(histories.test_a_node_that_puts_back_what_is_lost_again_before_it_marks_its_session_notices)),
    Mutant("G-18", "a holder does not put its lock back", "I22", _without(Kind.LOCK),
           Check(going_back.test_locks_keys_and_steps_are_put_back, (Kind.LOCK,), by="I22")),
    Mutant("G-19", "a run does not put its steps back", "I22", _without(Kind.STEP),
           Check(going_back.test_locks_keys_and_steps_are_put_back, (Kind.STEP,), by="I22")),
    Mutant("G-20", "a process that waits for a lock puts back what it wrote of the holder", "I22", _g20,
           Check(histories.test_a_lock_that_is_lost_with_its_queue_is_put_back_as_its_holder_has_it, by="I22")),
    Mutant("G-21", "what was seen before a time out of touch with the store counts", "I1", _g21,
           Check(liveness.test_what_was_seen_before_a_time_out_of_touch_does_not_count, (0,), by="I1")),
    Mutant("G-22", "sessions are pruned without a mark in the namespace", "I14", _g22,
           Check(going_back.test_a_session_that_another_node_pruned_is_no_sign, by="I14")),
    Mutant("G-23", "restored moves to the store's time although nodes had come further", "I22", _g23,
           Check(lease_protocol.test_nor_is_what_lies_ahead_of_a_clock_that_stepped_back_meanwhile, by="I22")),
    Mutant("G-24", "a body believes a store that went back and refuses its step", "I17", _g24,
           Worlds({"failover": 6.0, "effects": 3, "jobs": 1})),
    Mutant("G-25", "restored opens whatever store is there in the end", "I22", _g25,
           Check(restore.test_a_store_that_goes_back_meanwhile_is_not_opened_as_it_then_is, by="I22")),
    Mutant("G-26", "restored believes that what it moved is still moved", "I22", _g26,
           Check(restore.test_a_store_that_goes_back_meanwhile_is_not_opened_as_it_then_is, by="I22")),
    Mutant("G-27", "a release that the store did not take is forgotten", "I14", _g27,
           Check(going_back.test_what_a_living_process_gave_up_around_a_loss_is_not_held_for_ever, (Kind.LOCK, 2.0),
                 by="I14")),
    Mutant("G-28", "the reply to a step that comes after the check is believed", "I17", _g28,
           Check(going_back.test_a_step_whose_reply_comes_after_the_check_is_saved_again, by="I17")),
    Mutant("G-29", "an attempt that ended here is known until another one ends", "I14", _g29,
           Check(going_back.test_a_quiet_node_ends_a_hold_that_came_back_within_a_lease_and_a_beat, by="I14")),
    Mutant("G-30", "a node that drains closes its session, whatever the store has lost", "I22", _g30,
           Check(going_back.test_a_node_that_drains_right_after_a_loss_leaves_its_session_to_the_others)),
    Mutant("G-31", "a worker starts what it has ended, if the store shows it as held again", "I22", _g31,
           Check(going_back.test_a_copy_of_a_message_right_after_a_loss_starts_no_second_body)),
    Mutant("G-32", "a write-off hides a claim that followed a hold", "I22", _g32,
           Check(rejoining.test_what_is_written_off_leaves_a_hold_that_a_later_attempt_had_replaced, by="I22")),
    Mutant("G-33", "what waits behind a hold is not written off", "I22", _g33,
           Check(rejoining.test_what_waits_behind_a_hold_is_written_off_too, by="I22")),
    Mutant("X-82", "a hold of an earlier time is adopted", "I22", _x82, Worlds(RESTORE)),
]  # fmt: skip
