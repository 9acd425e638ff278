"""Invariants of every line that a body writes into the ledger, whatever the engine says happened."""

from __future__ import annotations

from proof.invariants import limits
from proof.invariants.checker import Checker, Violation
from proof.workloads.ledger import Line
from solocron.clock import MILLISECOND, SECOND
from solocron.model.documents.run import Origin

__all__ = ["LINES"]


def i7_fail_closed(checker: Checker, line: Line) -> None:
    """Nothing starts without a claim that the store has granted; no claim starts twice.

    A store that went back may grant a fence again, to another session; whether it may is for I22 to say.
    """
    if line.what != "start":
        return
    hold = checker.granted.get((line.run, line.fence))
    if hold is None:
        raise Violation("I7", f"{line.run} fence {line.fence} started on {line.process.name} without a claim")
    if hold.node != line.process.name:
        raise Violation("I7", f"{line.run} started on {line.process.name}, but {hold.node} had claimed it")
    if checker.started.get((line.run, line.fence)) == hold.session:
        raise Violation("I7", f"{line.run} fence {line.fence} started twice")


def i21_nothing_runs_under_a_session_that_its_node_has_ended(checker: Checker, line: Line) -> None:
    """From then on any node may take what it held: no body of it goes on, and no late answer starts one."""
    hold = checker.granted.get((line.run, line.fence))
    # Of a fence that was granted again (I22) the hold is another node's.
    if hold is not None and hold.node == line.process.name and hold.session in checker.given_up:
        raise Violation("I21", f"{line.run} ({line.what}) on {line.process.name}, which has ended its session")


def i8_zombie_bound(checker: Checker, line: Line) -> None:
    """After the lease is over, a body that can be stopped does nothing more, and the engine lets none go on.

    A frozen body may do what it was about to do; the first thing that it asks the engine after the thaw tells it.
    """
    hold = checker.granted.get((line.run, line.fence))
    engine_said_so = line.what in ("start", "checked")
    if hold is None or not (line.stoppable or engine_said_so):
        return
    member = checker.world.member_of(line.process)
    confirmed = member.store.last_confirmed.get(hold.session)
    if confirmed is None:
        return
    if (line.at - confirmed) * member.runtime.clock.rate <= checker.world.options.lease + 0.001:
        return
    if engine_said_so or not line.process.was_frozen(confirmed, line.at):
        raise Violation(
            "I8",
            f"{line.run} ({line.what}) went on {line.at - confirmed:.3f} s after the last confirmed renewal was sent",
        )


def i15_not_early(checker: Checker, line: Line) -> None:
    """Nothing starts before its slot, by the store's clock, which may have stepped back since the claim.

    A slot of the past that is asked for again has come, whatever the clock has done since.
    """
    if line.what != "start":
        return
    hold = checker.granted.get((line.run, line.fence))
    asked_for = hold is not None and hold.origin in (Origin.RERUN, Origin.BACKFILL)
    store = max(line.store, checker.latest if asked_for else checker.granted_at.get((line.run, line.fence), 0))
    if store + MILLISECOND < line.slot:
        raise Violation("I15", f"{line.run} started {(line.slot - store) / SECOND:.3f} s early")


def i16_key_stability(checker: Checker, line: Line) -> None:
    """The idempotency key of a run is the same over attempts and nodes, and no other run has it."""
    if line.what != "start":
        return
    known = checker.keys.setdefault(line.run, line.key)
    if known != line.key:
        raise Violation("I16", f"{line.run} had the key {known} and now has {line.key}")
    hold = checker.granted.get((line.run, line.fence))
    # The same key asked for again after the job was removed and added is the same effect, whatever its run is called,
    # and so is a slot of the past that a client asked for once more, be it before the slot itself has run to its end.
    if hold is not None and hold.origin is not Origin.SCHEDULE:
        return
    other = checker.key_of.setdefault(line.key, line.run)
    if other != line.run:
        raise Violation("I16", f"{line.run} and {other} share the key {line.key}")


def i20_no_storm(checker: Checker, line: Line) -> None:
    """A run starts no more often than its owner allowed."""
    if line.what != "start":
        return
    most = checker.world.most_attempts(line.job)
    if most is not None and checker.starts[line.run] >= most:
        raise Violation("I20", f"{line.run} started {checker.starts[line.run] + 1} times, {most} allowed")


LINES = {
    test.__name__: test
    for test in (
        i7_fail_closed,
        i21_nothing_runs_under_a_session_that_its_node_has_ended,
        i8_zombie_bound,
        i15_not_early,
        i16_key_stability,
        i20_no_storm,
        limits.i9_never_above_a_limit,
    )
}
