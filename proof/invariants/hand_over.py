"""Hand-over as the checker sees it: a run that is only to be published has not been claimed yet.

A hold under which a node publishes becomes a waiting run whose message is awaited, so that every other invariant holds
of claims that run bodies, with and without a broker in between.
"""

from __future__ import annotations

from dataclasses import replace

from proof.invariants.checker import Checker, Violation, new_holds
from solocron.model._fast.values import replace as changed
from solocron.model.documents.job import Hold, Job, WaitingRun
from solocron.testing.simulation.database import Commit

__all__ = ["JOBS", "check_fences", "without_publishing"]


def without_publishing(commit: Commit) -> Commit:
    """Return the commit with every hold under which a message is published as a waiting run."""
    before = _plain(commit.before) if isinstance(commit.before, Job) else commit.before
    after = _plain(commit.after) if isinstance(commit.after, Job) else commit.after
    return commit if before is commit.before and after is commit.after else replace(commit, before=before, after=after)


def _plain(doc: Job) -> Job:
    if not any(hold.handing for hold in doc.active):
        return doc
    return changed(
        doc,
        active=tuple(hold for hold in doc.active if not hold.handing),
        waiting_runs=(*doc.waiting_runs, *(_waiting(hold) for hold in doc.active if hold.handing)),
    )


def _waiting(hold: Hold) -> WaitingRun:
    assert hold.offer is not None
    return WaitingRun(
        run=hold.run, slot=hold.slot, origin=hold.origin, ready_at=hold.claimed_at, attempt=hold.attempt,
        tries=hold.tries, request=hold.request, payload=hold.payload, crashed=hold.crashed, shard=hold.shard,
        shards=hold.shards, offer=replace(hold.offer, until=hold.claimed_at),
    )  # fmt: skip


def check_fences(checker: Checker, commit: Commit) -> None:
    """I3: a hold under which a message is published raises the fence like any other."""
    if "I3" in checker.disabled:
        return  # the store goes back: a hold is put back under the fence that it had
    for hold in new_holds(commit):
        if hold.handing:
            seen = checker.fences.get(commit.name, 0)
            if hold.fence <= seen:
                raise Violation("I3", f"{hold.run} was to be published under {hold.fence}, {seen} was granted before")
            checker.fences[commit.name] = hold.fence


def i2_only_what_was_handed_over_is_picked_up(_: Checker, commit: Commit) -> None:
    """A run behind a queue is claimed only for the attempt that a node has handed over."""
    before = commit.before
    if not isinstance(before, Job) or before.definition.hand_over is None:
        return
    handed = {(one.run, one.attempt) for one in before.waiting_runs if one.offer is not None}
    for hold in new_holds(commit):
        if (hold.run, hold.attempt) not in handed and not hold.final:  # `run_now` runs it where its caller is
            raise Violation("I2", f"{hold.run} attempt {hold.attempt} was picked up and never handed over")


JOBS = {test.__name__: test for test in (i2_only_what_was_handed_over_is_picked_up,)}
