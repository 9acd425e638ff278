"""Fetches the revisions of calendars that jobs name, and puts jobs under the latest ones.

What a revision says never changes, so that it is fetched once. A node that meets one which it does not know leaves the
job alone, fetches it, and looks again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from solocron.jobs.registry import Registry
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents.calendar import advance, calendar_of, document_of, named, revision_of
from solocron.model.documents.job import Job
from solocron.schedules.calendar import Calendar
from solocron.stores.contract import All, Named, Store, Verdict
from solocron.stores.paging import iter_job_pages, read_jobs, read_pauses

__all__ = ["Calendars"]

AGAIN = 5
"""Every so many times all jobs are looked at, also when no calendar was changed: a definition may come late."""


class Calendars:
    """The calendars of one namespace, as far as the registry of this process knows them."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self.store = store
        self._registry = registry
        self._followed: dict[str, int] = {}
        self._looks = 0

    def unknown(self, job: Job) -> list[tuple[str, int]]:
        """The revisions that a job's document names and this process does not know."""
        specs = [job.definition.schedule, *(waiting_range.schedule for waiting_range in job.waiting_ranges)]
        wanted = {(calendar_of(spec) or "", revision_of(spec) or 0) for spec in specs}
        return sorted(one for one in wanted if one[0] and one not in self._registry.calendars)

    def learn(self, jobs: Iterable[Job]) -> bool:
        """Fetch what is missing; True when something was."""
        return self.fetch({one for job in jobs for one in self.unknown(job)})

    def fetch(self, wanted: Iterable[tuple[str, int]]) -> bool:
        missing = sorted(set(wanted) - self._registry.calendars.keys())
        if not missing:
            return False
        names = {document_of(*one): one for one in missing}
        found = False
        for doc in self.store.read(Named(Kind.CALENDAR, tuple(sorted(names)))):
            if isinstance(doc, SmallDocument):
                name, revision = names[doc.name]
                self._registry.calendars[(name, revision)] = Calendar.from_json(name, doc.body)
                found = True
        return found

    def latest(self, names: Iterable[str] | None = None) -> dict[str, int]:
        """The latest revision of these calendars, or of all."""
        which = All(Kind.CALENDAR) if names is None else Named(Kind.CALENDAR, tuple(sorted(set(names))))
        docs = self.store.read(which)
        return {doc.name: doc.body["revision"] for doc in docs if isinstance(doc, SmallDocument) and named(doc.body)}

    def follow(self, late_for: int, latest: Mapping[str, int] | None = None) -> list[str]:
        """Put every job under the latest revision of its calendar; returns which. Repeating it does no harm."""
        heads = self.latest() if latest is None else dict(latest)
        self._looks += 1
        if not heads or (heads == self._followed and self._looks % AGAIN):
            return []
        self.fetch(heads.items())
        changed: list[str] = []
        complete = True
        for page in iter_job_pages(self.store):
            behind = [job for job in page if _behind(job, heads)]
            if behind:
                done, all_done = self._advance(behind, heads, late_for)
                changed += done
                complete = complete and all_done
        if complete and not changed:  # once more after a change: a job may have been registered beside it
            self._followed = heads
        return changed

    def bring(self, names: Iterable[str], late_for: int) -> None:
        """Look again at jobs that were just written: a calendar may have been changed, and followed, meanwhile."""
        jobs = read_jobs(self.store, tuple(names))
        heads = self.latest({calendar for job in jobs if (calendar := calendar_of(job.definition.schedule))})
        behind = [job for job in jobs if _behind(job, heads)]
        if behind:
            self.fetch(heads.items())
            self._advance(behind, heads, late_for)

    def _advance(self, behind: list[Job], heads: Mapping[str, int], late_for: int) -> tuple[list[str], bool]:
        """Put jobs under these revisions; which were, and whether nothing is left to do."""
        self.learn(behind)
        pauses, resolve = read_pauses(self.store), self._registry.resolve
        applied = self.store.update(
            Named(Kind.JOB, tuple(job.name for job in behind)),
            lambda doc, now: advance(doc, latest=heads, now=now, late_for=late_for, resolve=resolve, pauses=pauses),
        )
        done = [result.name for result in applied.results if result.verdict is Verdict.APPLIED]
        return done, all(result.verdict in (Verdict.APPLIED, Verdict.DECLINED) for result in applied.results)


def _behind(job: Job, latest: Mapping[str, int]) -> bool:
    spec: Mapping[str, Any] | None = job.definition.schedule
    return not job.removed and latest.get(calendar_of(spec) or "", 0) > (revision_of(spec) or 0)
