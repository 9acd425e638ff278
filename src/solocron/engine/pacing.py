"""The time of the claimer's next look: a pure function of what one pass has seen."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass

from solocron.loop import growing_delay
from solocron.model.documents.job import Job
from solocron.stores.contract import Applied, Verdict
from solocron.stores.until_known import OPEN_OUTCOMES

__all__ = ["LookPlan", "next_look"]

_KNOWN = (Verdict.APPLIED, Verdict.DECLINED)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookPlan:
    """The claimer's next look."""

    at: float
    """Boot time of the next look."""
    expected: float | None = None
    """Boot time at which a job falls due as far as this node knows; None if it does not look for that."""
    in_vain: int = 0
    """Consecutive looks that found something due and could not claim it."""
    starved: bool = False
    """True if more is due than the last claim could take."""


def next_look(
    applied: Applied,
    *,
    replied: float,
    latest: float,
    left_alone: Container[str],
    boot_of: Callable[[int], float | None],
    backlog: bool,
    in_vain: int,
    jitter: float,
) -> LookPlan:
    """Plan the look after a pass whose reply came at boot time `replied`.

    `latest` is the last moment to look at, `left_alone` the jobs that this node leaves to others for now, `boot_of`
    turns an instant of the store into boot time. `jitter` scales the pause after a futile look, so that nodes that
    compete for the same jobs do not all look at once.
    """
    soon = LookPlan(at=replied + growing_delay(in_vain + 1) / 10 * jitter, in_vain=in_vain + 1)
    if any(result.verdict in OPEN_OUTCOMES for result in applied.results):
        return soon  # others are changing these jobs, or a reply was lost: their next due time is unknown
    # `next_due` is about the jobs that were not returned; each returned one has a due time of its own.
    moments = [
        result.doc.due_at
        for result in applied.results
        if isinstance(result.doc, Job) and result.verdict in _KNOWN and result.name not in left_alone
    ]
    due = min((at for at in (applied.next_due, *moments) if at is not None), default=None)
    if due is None:
        return LookPlan(at=latest)
    if due > applied.now:
        expected = boot_of(due)
        return LookPlan(at=latest if expected is None else min(expected, latest), expected=expected)
    if applied.next_due is None or applied.next_due > applied.now:
        return LookPlan(at=replied)  # one of the jobs just claimed has more to run
    if backlog:
        return LookPlan(at=replied, starved=True)
    return soon
