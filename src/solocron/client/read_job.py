"""One job as a single read of its document has found it: further questions about it cost the store nothing more."""

from __future__ import annotations

from datetime import datetime

from solocron.calendars.views import notes_of
from solocron.client.job_documents import JobDocuments
from solocron.client.recorded_slots import under_way
from solocron.clock import from_us, to_us
from solocron.errors import InvalidError
from solocron.schedules import Calendared, Schedule, load_zone, rule_of
from solocron.stores.paging import sessions_since
from solocron.views import BackfillView, JobView

__all__ = ["ReadJob"]


class ReadJob:
    """Answers from one document. Only `view` reads more: the nodes and the pauses of many jobs."""

    def __init__(self, documents: JobDocuments, name: str) -> None:
        self._documents = documents
        self._store = documents.store
        self._doc = documents.get(name)

    @property
    def zone(self) -> str:
        """The zone of its schedule."""
        return str((self._doc.definition.schedule or {}).get("tz", "UTC"))

    @property
    def backfills(self) -> list[BackfillView]:
        """Its backfills that still have slots to start."""
        return under_way(self._doc)

    def view(self) -> JobView:
        """Return the job for a caller of the API."""
        documents = self._documents
        return documents.view_of(self._doc, sessions_since(self._store), self._store.clock(), documents.pauses())

    def schedule(self) -> Schedule | None:
        """Return its schedule; None if it has none, or if only code knows it."""
        return self._documents.resolve(self._doc.definition.schedule).schedule

    def upcoming(self, n: int = 10, *, start: datetime | None = None) -> list[datetime]:
        """Return its next slots, in its zone; with `start`, the slots strictly after that instant."""
        if not 1 <= n <= 1_000:
            raise InvalidError(f"n={n}: give a whole number from 1 to 1000.")
        doc, slots = self._doc, self._documents.resolve(self._doc.definition.schedule)
        if not slots.known:
            raise InvalidError(
                f"{doc.name} has a schedule of its own class, which only its code knows; ask a program that has it."
            )
        info = load_zone(self.zone).info
        at = max(slots.decided_until(doc.cursor, doc.nominal), self._store.clock()) if start is None else to_us(start)
        found: list[datetime] = []
        while len(found) < n:
            following = slots.after(at)
            if following is None:
                break
            found.append(from_us(following).astimezone(info))
            at = following
        return found

    def upcoming_changes(self, n: int = 10, *, start: datetime | None = None) -> list[str]:
        """Return a sentence for each slot up to its n-th next one that its calendar moves or leaves out."""
        slots, schedule = self.upcoming(n, start=start), self.schedule()
        rule = None if schedule is None else rule_of(schedule)
        if not isinstance(rule, Calendared) or not slots:
            return []
        begin = self._store.clock() if start is None else to_us(start)
        return notes_of(rule, begin, to_us(slots[-1]))
