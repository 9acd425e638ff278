"""Invariants of permits and of parts that are bound to a node: never above a limit, never leaked, never astray."""

from __future__ import annotations

from proof.invariants.checker import Checker, Violation, new_holds
from proof.workloads.ledger import Line
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents.job import Hold, Job, WaitingRun
from solocron.model.documents.session import Life, Session
from solocron.testing.simulation.database import Commit

__all__ = ["i1_a_part_runs_on_its_node", "i5_no_permit_leaks", "i9_never_above_a_limit", "i21_no_permit_is_left"]


def i9_never_above_a_limit(checker: Checker, line: Line) -> None:
    """A body starts only under a permit that its live session holds and that no other body has.

    A body that has ended may give its permit back before its hold is gone: its node has lost the session meanwhile.
    """
    hold = checker.granted.get((line.run, line.fence))
    if line.what != "start" or hold is None or hold.permit is None or not _live(checker, hold.session):
        return
    found = checker.world.database.docs.get((Kind.PERMIT, hold.permit))
    if found is None or not isinstance(found[0], SmallDocument) or found[0].session != hold.session:
        raise Violation("I9", f"{line.run} started under {hold.permit}, which its session does not hold")
    for job in checker.world.database.jobs.values():
        for other in job.active:
            begun = (other.run, other.fence) in checker.started and other.permit == hold.permit
            begun = begun and not checker.world.has_ended(other)
            if begun and (other.run, other.fence) != (line.run, line.fence):
                raise Violation("I9", f"{line.run} started under {hold.permit} while {other.run} runs under it")


def i1_a_part_runs_on_its_node(_: Checker, commit: Commit) -> None:
    """A part that is bound to a node is claimed by that node, and no node has two parts of a slot."""
    for hold in new_holds(commit):
        if hold.only is not None and hold.only != hold.node:
            raise Violation("I1", f"{hold.run} is for {hold.only} and was claimed by {hold.node}")
    if isinstance(commit.after, Job):
        parts: list[Hold | WaitingRun] = [*commit.after.active, *commit.after.waiting_runs]
        bound = [(one.run.partition("#")[0], one.only) for one in parts if one.only]
        if len(bound) != len(set(bound)):
            raise Violation("I1", f"a node has two parts of one slot of {commit.name}: {sorted(bound)}")


def i5_no_permit_leaks(checker: Checker, _: float) -> None:
    """Once quiescent, a permit is held by a live session, for a run that it holds; or is about to be given back."""
    for name, session in _held(checker):
        if not _live(checker, session):
            raise Violation("I5", f"the permit {name} is held by session {session}, which is not live")


def i21_no_permit_is_left(checker: Checker) -> None:
    """After every node has drained, every permit is free."""
    for name, session in _held(checker):
        raise Violation("I21", f"the permit {name} is still held by session {session} after every node has drained")


def _held(checker: Checker) -> list[tuple[str, str]]:
    docs = checker.world.database.docs
    return [
        (name, doc.session)
        for (kind, name), (doc, _) in docs.items()
        if kind is Kind.PERMIT and isinstance(doc, SmallDocument) and doc.session is not None
    ]


def _live(checker: Checker, session: str) -> bool:
    found = checker.world.database.docs.get((Kind.SESSION, session))
    return found is not None and isinstance(found[0], Session) and found[0].state is Life.LIVE
