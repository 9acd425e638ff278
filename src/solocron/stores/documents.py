"""What every store asks of a document before it writes it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from heapq import nsmallest

from solocron.model.change import Absent, Kind, SmallDocument
from solocron.model.documents.job import Job
from solocron.stores.contract import Doc, Due, Gate, JobCounts, Mark, Which

__all__ = ["QUEUES", "counted", "earliest", "gate_in", "holders_of", "is_open", "kind_of", "marks_of", "same_fixed"]

_NOBODY: frozenset[str] = frozenset()


QUEUES = ":queues"
"""Stands among the holders of a job for the queues that carry its offers, which no session holds.

So listings of what runs find a run that a carrier has, at the cost of what runs. No session has this name.
"""


def holders_of(doc: Doc | Absent | None) -> frozenset[str]:
    """The sessions that a document names as holders, and `QUEUES` if a carrier has a run of it."""
    if isinstance(doc, Job):
        active = doc.active
        if doc.definition.hand_over is not None and any(one.offered for one in doc.waiting_runs):
            return frozenset([*(hold.session for hold in active), QUEUES])
        if len(active) == 1:
            return frozenset((active[0].session,))
        return frozenset([hold.session for hold in active]) if active else _NOBODY
    return frozenset((doc.session,)) if isinstance(doc, SmallDocument) and doc.session is not None else _NOBODY


def marks_of(doc: Doc | Absent | None) -> int:
    """The marks of a job as a number; 0 for any other document."""
    if not isinstance(doc, Job):
        return 0
    return (doc.paused is not None) | (doc.failures > 0) << 1 | (not doc.definition.enabled) << 2 | doc.removed << 3


def counted(all: int, marked: Iterable[tuple[int, int]]) -> JobCounts:
    """Return the counts of jobs from pairs of marks and how many jobs bear exactly these."""
    pairs = list(marked)
    return JobCounts(all=all, marked={mark: sum(count for marks, count in pairs if marks & mark) for mark in Mark})


def earliest(
    found: Iterable[tuple[int | None, str]], limit: int, *, after: tuple[int, str] | None, until: int | None
) -> tuple[tuple[int, str], ...]:
    """Answer `due_times` from the due times and names of all jobs."""
    due = ((at, name) for at, name in found if at is not None and (until is None or at < until))
    return tuple(nsmallest(limit, (one for one in due if after is None or one > after)))


def same_fixed(old: Doc | Absent, new: Doc) -> bool:
    """Whether the fixed part is certainly the same; claims and finishes hand on the very definition they read."""
    if not isinstance(old, Job) or not isinstance(new, Job):
        return False
    return (
        new.definition is old.definition
        and new.incarnation == old.incarnation
        and new.revision == old.revision
        and new.source == old.source
        and new.zone_data == old.zone_data
        and new.place == old.place
        and new.defined_at == old.defined_at
        and (new.defined_by, new.defined_note) == (old.defined_by, old.defined_note)
        and new.resumed == old.resumed
        and new.removed == old.removed
    )


def kind_of(which: Which) -> Kind:
    """The kind of documents that a selection finds."""
    return Kind.JOB if isinstance(which, Due) else which.kind


def gate_in(body: str) -> str:
    """What a claim is compared with, from the state of the namespace's document as it is stored."""
    gate = json.loads(body)["body"].get("gate", "")
    return gate if isinstance(gate, str) else ""


def is_open(gate: Gate, session: str, namespace: str | None, identity: str) -> bool:
    """Whether a gate stands open, from the stored states of the session and of the namespace's document."""
    if namespace is None or json.loads(session)["beats"] < gate.beats:
        return False
    return f"{gate_in(namespace)} ".startswith(gate.openings(identity))
