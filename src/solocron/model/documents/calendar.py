"""Calendars as documents: one for each revision, whose content never changes, and one that names the latest.

A job's definition names calendar and revision, so that nodes with different caches agree. New content is a new
revision, and the jobs are redefined under it: their slots up to then are decided by the old one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents.definition import CALENDAR_REVISION, Definition
from solocron.model.documents.job import Job
from solocron.model.documents.scoped_pause import ScopedPause
from solocron.model.timetable import Resolve
from solocron.model.transitions.registration import Proposal, define

__all__ = ["advance", "announce", "calendar_of", "document_of", "keep", "named", "revision_of", "with_revision"]


def document_of(name: str, revision: int) -> str:
    """Return the name of the document that keeps one revision."""
    return f"{name}@{revision}"


def named(body: Mapping[str, Any]) -> bool:
    """Return whether a calendar's document is the one that names the latest revision."""
    return "weekend" not in body


def calendar_of(spec: Mapping[str, Any] | None) -> str | None:
    """Return the name of the calendar that a schedule uses."""
    return None if spec is None else spec.get("calendar")


def revision_of(spec: Mapping[str, Any] | None) -> int | None:
    return None if spec is None else spec.get(CALENDAR_REVISION)


def with_revision(definition: Definition, revision: int) -> Definition:
    """Return the definition under that revision of its calendar."""
    return replace(definition, schedule={**(definition.schedule or {}), CALENDAR_REVISION: revision})


def keep(doc: SmallDocument | Absent, *, body: Mapping[str, Any]) -> Change | None:
    """Write a revision. One that exists stays as it is; None if this number has other content."""
    if isinstance(doc, Absent):
        return Change(SmallDocument(kind=Kind.CALENDAR, name=doc.name, body=body))
    return Change(doc) if dict(doc.body) == dict(body) else None


def announce(doc: SmallDocument | Absent, *, revision: int) -> Change | None:
    """Make a revision the latest; None if a later one was announced meanwhile."""
    if isinstance(doc, Absent):
        return Change(SmallDocument(kind=Kind.CALENDAR, name=doc.name, body={"revision": revision}))
    if doc.body["revision"] > revision:
        return None
    return Change(doc if doc.body["revision"] == revision else replace(doc, body={"revision": revision}))


def advance(
    doc: Job | Absent,
    *,
    latest: Mapping[str, int],
    now: int,
    late_for: int,
    resolve: Resolve,
    pauses: Sequence[ScopedPause] = (),
) -> Change | None:
    """Put a job under the latest revision of its calendar.

    None if it is there already, or if its present revision is not known here.
    """
    if isinstance(doc, Absent) or doc.removed:
        return None
    spec = doc.definition.schedule
    revision = latest.get(calendar_of(spec) or "", 0)
    if revision <= (revision_of(spec) or 0) or not resolve(spec).known:
        return None
    proposal = Proposal(
        definition=with_revision(doc.definition, revision),
        source=doc.source,
        revision=doc.revision,
        zone_data=doc.zone_data,
        by=doc.defined_by,
        note=doc.defined_note,
    )
    return define(doc, proposal=proposal, now=now, late_for=late_for, resolve=resolve, pauses=pauses)
