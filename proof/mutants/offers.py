"""Bugs of the hand-over to a queue: each leaves one of its rules out."""

from __future__ import annotations

from typing import Any

from proof.mutants.mutant import Bites, Mutant, Patches
from proof.mutants.suites import Check
from proof.offers.explorer import Faults, Offers, explore
from solocron.clock import SECOND
from solocron.model._fast.values import replace
from solocron.model.applications import Peers
from solocron.model.change import Change
from solocron.model.documents.job import Hold, Job, WaitingRun
from solocron.model.documents.offer import Offer
from solocron.model.transitions import claiming, commands, finishing, offering, rejoin
from tests.unit.model.transitions import test_offering, test_rejoin

__all__ = ["MUTANTS", "every_state_is_sound"]

FAR = 10**9 * SECOND


def every_state_is_sound(faults: Faults, retries: int = 0, runs: int = 1) -> None:
    """The exhaustive search finds nothing wrong."""
    report = explore(Offers(faults=faults, retries=retries, runs=runs))
    assert report.wrong is None, "\n  ".join([report.wrong or "", *report.trace])


def _h1(bites: Bites) -> Patches:
    real = finishing.end_hold

    def as_a_crash(job: Job, hold: Hold, *args: Any, **more: Any) -> Any:
        bites(hold.handing)
        plain = replace(hold, offer=None)
        active = tuple(plain if other is hold else other for other in job.active)
        return real(replace(job, active=active), plain, *args, **more)

    return [(finishing, "end_hold", as_a_crash)]


def _h2(bites: Bites) -> Patches:
    real = offering.same_attempt

    def for_good(hold: Hold, *, ready_at: int, **more: Any) -> WaitingRun:
        bites()
        return real(hold, ready_at=ready_at + FAR, **more)

    return [(offering, "same_attempt", for_good)]


def _h3(bites: Bites) -> Patches:
    real = offering.recall

    def from_anybody(job: Job, which: Any, *, now: int) -> Job:
        job = real(job, which, now=now)
        offer = Offer(carrier="queue", since=now)
        taken = [replace(hold, offer=offer) for hold in job.active if not hold.handing]
        bites(taken)
        job = replace(job, active=tuple(taken) + tuple(hold for hold in job.active if hold.handing))
        return real(job, which, now=now)

    return [(offering, "recall", from_anybody)]


def _h4(bites: Bites) -> Patches:
    real = offering.recall

    def anything(job: Job, which: Any, *, now: int) -> Job:
        job = real(job, which, now=now)
        bites(any(one.offer is None for one in job.waiting_runs))
        offer = Offer(carrier="queue", since=now)
        return replace(job, waiting_runs=tuple(replace(one, offer=one.offer or offer) for one in job.waiting_runs))

    return [(offering, "recall", anything)]


def _h5(bites: Bites) -> Patches:
    real = finishing.finish

    def of_the_run(doc: Any, *, run: str, fence: int, **more: Any) -> Change | None:
        for hold in doc.active if isinstance(doc, Job) else ():
            if hold.run == run and not hold.handing:
                bites(hold.fence != fence)
                fence = hold.fence
        return real(doc, run=run, fence=fence, **more)

    return [(finishing, "finish", of_the_run)]


def _h6(bites: Bites) -> Patches:
    real = offering.hold_of

    def under_the_old_fence(job: Job, waiting_run: WaitingRun, **more: Any) -> Hold:
        bites()
        return replace(real(job, waiting_run, **more), fence=job.fence)

    return [(offering, "hold_of", under_the_old_fence)]


def _h7(bites: Bites) -> Patches:
    real = offering.pick_up

    def of_the_run(doc: Any, *, run: str, attempt: int, **more: Any) -> Change | None:
        known = [one for one in (*doc.active, *doc.waiting_runs) if one.run == run] if isinstance(doc, Job) else []
        latest = known[0].attempt if known else attempt
        bites(latest != attempt)
        return real(doc, run=run, attempt=latest, **more)

    return [(offering, "pick_up", of_the_run)]


def _h8(bites: Bites) -> Patches:
    def only_held(job: Job) -> Any:
        bites(any(one.offered for one in job.waiting_runs))
        return list(job.active)

    return [(claiming, "occupied_by", only_held)]


def _h9(bites: Bites) -> Patches:
    real = offering.may_start

    def beside(job: Job, *args: Any) -> Any:
        found = real(job, *args)
        bites(len(found[0]) < len(job.waiting_runs))
        return list(job.waiting_runs), found[1]

    return [(offering, "may_start", beside)]


def _h10(bites: Bites) -> Patches:
    def never(job: Job, waiting_run: WaitingRun, *, now: int) -> bool:
        bites(job.definition.start_within is not None)
        return False

    return [(offering, "overdue", never)]


def _h11(bites: Bites) -> Patches:
    def left_to_its_node(job: Job, which: Any, *, now: int) -> Job:
        bites(any(hold.handing and which(hold) for hold in job.active))
        return job

    return [(commands, "recall", left_to_its_node)]


def _h12(bites: Bites) -> Patches:
    real = offering.hand_over

    def refused(doc: Any, **more: Any) -> Change | None:
        change = real(doc, **more)
        gone = change is not None and change.answer is offering.Handed.OVERTAKEN
        bites(gone)
        return None if gone else change

    return [(offering, "hand_over", refused)]


def _h13(bites: Bites) -> Patches:
    real = claiming._next_offer

    def a_new_attempt(job: Job, waiting_run: WaitingRun, **more: Any) -> Offer:
        bites(waiting_run.offer is not None)
        return real(job, replace(waiting_run, offer=None), **more)

    return [(claiming, "_next_offer", a_new_attempt)]


_ONE = Faults(together=1)
_NONE = Faults(0, 0, 0, 0, 0, 0, 0, 0)
_FORGED = _NONE._replace(forged_messages=1, together=1)


def _searched(faults: Faults, retries: int = 0) -> Check:
    return Check(every_state_is_sound, (faults, retries), by="the search")


def _tested(test: Any, *args: Any) -> Check:
    return Check(test, args, by="the test")


def _h14(bites: Bites) -> Patches:
    def read_by_all(self: Peers, definition: Any) -> bool:
        bites(self.lacking)
        return True

    return [(Peers, "can_read", read_by_all)]


def _h15(bites: Bites) -> Patches:
    original = rejoin._is_only_handed

    def never(job: Job, hold: Hold) -> bool:
        bites(original(job, hold))
        return False

    return [(rejoin, "_is_only_handed", never)]


def _h16(bites: Bites) -> Patches:
    original = rejoin._take_out

    def beside(job: Job, hold: Hold, *args: Any, **more: Any) -> Job:
        handing = [one for one in job.active if one.handing and (one.run, one.attempt) == (hold.run, hold.attempt)]
        bites(handing)
        after = original(job, hold, *args, **more)
        return replace(after, active=(*after.active, *handing))

    return [(rejoin, "_take_out", beside)]


def _h17(bites: Bites) -> Patches:
    original = rejoin.recall

    def left(job: Job, *args: Any, **more: Any) -> Job:
        bites(original(job, *args, **more) is not job)
        return job

    return [(rejoin, "recall", left)]


def _h18(bites: Bites) -> Patches:
    original = rejoin.is_followed

    def awaited(one: Hold | WaitingRun) -> bool:
        found = original(one) and (isinstance(one, Hold) or one.offered)
        bites(original(one) and not found)
        return found

    return [(rejoin, "is_followed", awaited)]


def _h19(bites: Bites) -> Patches:
    original = rejoin._next_attempt

    def at_its_time(one: WaitingRun, **more: Any) -> WaitingRun:
        bites()
        return replace(original(one, **more), ready_at=one.ready_at)

    return [(rejoin, "_next_attempt", at_its_time)]


_pick_up, _overlap, _nobody = (
    test_offering.TestPickUp(),
    test_offering.TestOverlap(),
    test_offering.TestThatNobodyPicksUp(),
)
_rejoined = test_rejoin.TestHandedOver()
_went_back = test_offering.TestAStoreThatWentBack()
_withdrawn, _handing = test_offering.TestThatIsWithdrawn(), test_offering.TestHandOver()

MUTANTS: list[Mutant] = [
    Mutant("H-01", "the hand-over of a dead node counts as a crash", "I6", _h1, _searched(_ONE)),
    Mutant("H-02", "an offer does not lapse", "I12", _h2, _searched(_ONE)),
    Mutant("H-03", "a pick-up does not compare", "I1", _h3, _searched(_ONE)),
    Mutant("H-04", "what was never handed over can be picked up", "I2", _h4, _searched(_FORGED)),
    Mutant("H-05", "a worker's end is accepted without its fence", "I4", _h5, _searched(_ONE, 1)),
    Mutant("H-06", "a pick-up does not raise the fence", "I3", _h6, _searched(_NONE)),
    Mutant(
        "H-07", "a ticket is good for any attempt", "I2", _h7,
        _tested(_pick_up.test_rule_a_message_of_an_earlier_attempt_does_not_start_the_next),
    ),
    Mutant("H-08", "an offer leaves its place to others", "I9", _h8, _tested(_overlap.test_a_request_waits_for_it_too)),
    Mutant(
        "H-09", "a pick-up does not ask for pauses and overlap", "I9", _h9,
        _tested(_overlap.test_a_pick_up_of_what_was_put_back_waits_while_another_run_has_its_place),
    ),
    Mutant(
        "H-10", "start_within ends with the hand-over", "I10", _h10,
        _tested(_pick_up.test_rule_start_within_counts_up_to_the_pick_up),
    ),
    Mutant(
        "H-11", "a cancelled hand-over waits for its node", "I20", _h11,
        _tested(_withdrawn.test_so_is_a_hand_over_under_way),
    ),
    Mutant(
        "H-12", "a fast worker makes the node's hand-over a refusal", "I13", _h12,
        _tested(_handing.test_a_worker_that_was_faster_than_the_node_is_no_error),
    ),
    Mutant(
        "H-13", "a message that is published again counts as the first", "I20", _h13,
        _tested(_nobody.test_it_lapses_and_is_published_again_as_the_same_attempt),
    ),
    Mutant(
        "H-14", "a carrier is written where an older node would misread it", "I6", _h14,
        _tested(test_offering.TestBesideAnOlderNode().test_rule_a_carrier_is_not_written_where_a_node_would_misread_it),
    ),
    Mutant(
        "H-15", "a pick-up is forgotten if its node tells of the hand-over first", "I22", _h15,
        Check(_rejoined.test_whichever_of_them_tells_first, (True, False), by="the test"),
    ),
    Mutant(
        "H-16", "a hand-over stays beside the pick-up that is put back", "I22", _h16,
        _tested(_rejoined.test_an_end_that_was_lost_ends_the_hand_over_as_well),
    ),
    Mutant(
        "H-17", "a hand-over under way is not written off with what was due", "I22", _h17,
        _tested(_went_back.test_rule_so_is_a_hand_over_under_way),
    ),
    Mutant(
        "H-18", "what is to be handed over again is not written off with what was due", "I22", _h18,
        _tested(_went_back.test_rule_so_is_what_waits_to_be_handed_over_again),
    ),
    Mutant(
        "H-19", "what is written off keeps its time, and is written off again", "I5", _h19,
        _tested(_went_back.test_rule_writing_off_twice_uses_up_one_retry, False),
    ),
]  # fmt: skip
