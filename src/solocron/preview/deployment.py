"""`compare`: what the store's jobs would become if a program were deployed. The rules that nodes follow decide it.

`registration.propose` is asked twice for each job: with the nodes that live now, as the first new node will ask it, and
with the nodes of other applications alone, as it is when the old nodes are gone. Its answers are never written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from solocron.clock import from_us
from solocron.engine.registrar import fingerprint_of
from solocron.errors import InvalidError
from solocron.jobs.registry import Declared, Registry
from solocron.model.applications import Peers, can_run, is_anothers
from solocron.model.documents.calendar import with_revision
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Job
from solocron.model.documents.permit import parse
from solocron.model.documents.session import Session, is_live
from solocron.model.routing import fleet_of
from solocron.model.timetable import Timetable
from solocron.model.transitions.registration import Proposal, propose
from solocron.preview.field_changes import FieldChange, described, field_changes
from solocron.schedules import load_zone, zone_data_version

__all__ = ["Deployed", "Difference", "JobDifference", "Problem", "ProblemKind", "Stored", "compare"]

_SLOTS = 3


class Difference(StrEnum):
    """Effects of a deployment on a job."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"
    """The program does not declare it any more."""
    ORPHANED = "orphaned"
    """It was added as data, and its handler would be gone."""
    SAME = "same"


class ProblemKind(StrEnum):
    """Why a job would not run as the program declares it."""

    CLASH = "clash"
    """Another application declares the name."""
    CALENDAR = "calendar"
    """Its calendar is not in the store: no node would start."""
    HANDLER = "handler"
    POOL = "pool"
    """No live node and no node of the program serves its pool."""
    LIMIT = "limit"
    """Its limit has another number in another job."""
    REVISION = "revision"
    """The stored definition is of a higher revision and would be kept."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A reason why a job would not run as declared, and what to do."""

    kind: ProblemKind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDifference:
    """One job, before and after the deployment."""

    job: str
    difference: Difference
    schedule: str
    """In words: as it would be, or as it is stored."""
    fields: tuple[FieldChange, ...] = ()
    before: tuple[datetime, ...] = ()
    """Its next slots as the store has it; empty unless the schedule changes."""
    after: tuple[datetime, ...] = ()
    note: str = ""
    """When the change is written, or what becomes of the job."""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """The program to be deployed."""

    registry: Registry
    pools: frozenset[str]
    revision: int | None
    late_for: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The namespace as it stands."""

    now: int
    jobs: Sequence[Job] = ()
    sessions: Sequence[Session] = ()
    calendars: Mapping[str, int] | None = None
    """The latest revision of each calendar."""

    def live(self) -> list[Session]:
        return [session for session in self.sessions if is_live(session, now=self.now)]


def compare(program: Deployed, stored: Stored) -> list[JobDifference]:
    """Return every job that the program or its application has, by name; jobs of other applications are left out.

    The registry must know the revisions of calendars that the stored jobs and `stored.calendars` name.
    """
    return sorted((*_declared(program, stored), *_undeclared(program, stored)), key=lambda one: one.job)


# --- what the program declares ---------------------------------------------------------------------------------------


def _declared(program: Deployed, stored: Stored) -> Iterator[JobDifference]:
    known = {job.name: job for job in stored.jobs if not job.removed}
    source = fingerprint_of(program.registry.jobs)
    for name, declared in program.registry.jobs.items():
        definition = declared.definition
        revision = (stored.calendars or {}).get(declared.calendar or "")
        if revision is not None:
            definition = with_revision(definition, revision)
        proposal = Proposal(
            definition=definition, source=source, revision=program.revision, zone_data=zone_data_version()
        )
        problems = tuple(_needs(declared, program, stored))
        doc = known.get(name)
        if doc is None:
            slots = _next(definition, program, stored.now)
            yield JobDifference(
                job=name,
                difference=Difference.ADDED,
                schedule=described(definition, program.registry.resolve),
                after=slots,
                problems=problems,
            )
        else:
            yield _met(doc, proposal, program, stored, problems)


def _met(
    doc: Job, proposal: Proposal, program: Deployed, stored: Stored, problems: tuple[Problem, ...]
) -> JobDifference:
    """Compare a declared job with the stored one of its name."""
    resolve, new = program.registry.resolve, proposal.definition
    fields = list(field_changes(doc.definition, new, resolve))
    theirs = doc.definition.application
    fleet = Peers.seen(stored.sessions, besides=None, now=stored.now)
    foreign = is_anothers(doc.definition, new.application)
    if foreign and fleet.declares(doc.definition.handler, theirs):
        text = (
            f"{theirs} declares it too, on live nodes: only its function would run. Give one of them another name, or "
            "each application a namespace of its own."
        )
        return JobDifference(
            job=doc.name,
            difference=Difference.SAME,
            schedule=described(doc.definition, resolve),
            problems=(*problems, Problem(ProblemKind.CLASH, text)),
        )
    if foreign:
        fields.append(FieldChange("application", str(theirs), str(new.application)))
    if doc.source is None:
        fields.append(FieldChange("declared", "added as data", "in code"))
    if not fields:
        return JobDifference(
            job=doc.name, difference=Difference.SAME, schedule=described(new, resolve), problems=problems
        )
    note, outranked = _when(doc, proposal, program, stored, fleet)
    changed = any(field.field == "schedule" for field in fields)
    return JobDifference(
        job=doc.name,
        difference=Difference.CHANGED,
        schedule=described(new, resolve),
        fields=tuple(fields),
        before=_next(doc.definition, program, stored.now) if changed else (),
        after=_next(new, program, stored.now) if changed else (),
        note=note,
        problems=(*problems, *outranked),
    )


def _when(
    doc: Job, proposal: Proposal, program: Deployed, stored: Stored, fleet: Peers
) -> tuple[str, tuple[Problem, ...]]:
    """Say when the new definition is written; a problem if it never is."""

    def written(peers: Peers) -> bool:
        return (
            propose(
                doc,
                proposal=proposal,
                fleet=peers,
                now=stored.now,
                late_for=program.late_for,
                resolve=program.registry.resolve,
            )
            is not None
        )

    if written(fleet):
        return "written by the first new node", ()
    old = sorted({one.node for one in stored.live() if one.fingerprint == doc.source})
    if written(Peers(declared=fleet.declared, revision=proposal.revision or 0)):
        return f"written when the last old node is gone ({', '.join(old) or 'its session still stands'})", ()
    text = (
        f"the stored definition is of revision {doc.revision or 0} and this program of {proposal.revision or 0}, so "
        f"the stored one is kept. Deploy a higher revision, or after a rollback: solocron adopt {doc.name}."
    )
    return "not written", (Problem(ProblemKind.REVISION, text),)


def _needs(declared: Declared, program: Deployed, stored: Stored) -> Iterator[Problem]:
    calendar, pool, limit = declared.calendar, declared.options.pool, declared.options.limit
    if calendar is not None and calendar not in (stored.calendars or {}):
        yield Problem(
            ProblemKind.CALENDAR,
            f"the calendar {calendar!r} is not in the store, so no node would start. Save it first: "
            f"scheduler.calendar({calendar!r}, ...).",
        )
    served = {name for one in stored.live() for name in one.pools}
    if pool not in program.pools and pool not in served:
        yield Problem(
            ProblemKind.POOL, f"no node serves the pool {pool!r}, this program neither; start one with --pools {pool}."
        )
    if limit is not None:
        for job in stored.jobs:
            other = job.definition.limit
            if job.removed or other in (None, limit) or job.name in program.registry.jobs:
                continue
            if parse(str(other))[0] == parse(limit)[0]:
                yield Problem(
                    ProblemKind.LIMIT, f"it says limit={limit!r} and {job.name} {other!r}: a limit has one number."
                )


# --- what it does not declare ----------------------------------------------------------------------------------------


def _undeclared(program: Deployed, stored: Stored) -> Iterator[JobDifference]:
    """Yield the jobs of this program's applications and pools that it does not declare."""
    handlers = program.registry.handlers
    ours = {handler.application for handler in handlers.values()}
    for doc in stored.jobs:
        definition = doc.definition
        if doc.removed or doc.name in program.registry.jobs or definition.pool not in program.pools:
            continue
        if definition.application is not None and definition.application not in ours:
            continue
        handler = handlers.get(definition.handler)
        kept = handler is not None and not is_anothers(definition, handler.application)
        words = described(definition, program.registry.resolve)
        if doc.source is not None:
            live = sorted(fleet_of(definition, stored.sessions, now=stored.now))
            if kept:
                note = "not declared any more, but its handler is: it goes on as it is stored"
            elif live:
                note = f"orphaned when the nodes that have it are replaced ({', '.join(live)}); its slots wait"
            else:
                note = "orphaned already: no live node has it; its slots wait"
            note += f". To forget it: solocron remove {doc.name}"
            yield JobDifference(job=doc.name, difference=Difference.REMOVED, schedule=words, note=note)
        elif kept or _others_with(doc, ours, stored):
            yield JobDifference(job=doc.name, difference=Difference.SAME, schedule=words)
        else:
            text = (
                f"it was added as data, and this program has no handler {definition.handler!r}. Register one of that "
                f"name, or: solocron remove {doc.name}."
            )
            yield JobDifference(
                job=doc.name,
                difference=Difference.ORPHANED,
                schedule=words,
                problems=(Problem(ProblemKind.HANDLER, text),),
            )


def _others_with(doc: Job, ours: set[str], stored: Stored) -> bool:
    """Return whether a live node that is not of this program's applications can run it."""
    return any(
        can_run(one, doc.definition) and not ours & {application for application, _ in one.applications}
        for one in stored.live()
    )


def _next(definition: Definition, program: Deployed, now: int) -> tuple[datetime, ...]:
    """Return the next slots of a definition, in its zone; none if its schedule cannot be read here."""
    try:
        slots: Timetable = program.registry.resolve(definition.schedule)
    except InvalidError:
        return ()
    info = load_zone(str((definition.schedule or {}).get("tz", "UTC"))).info
    found: list[datetime] = []
    at = slots.after(now)
    while at is not None and len(found) < _SLOTS:
        found.append(from_us(at).astimezone(info))
        at = slots.after(at)
    return tuple(found)
