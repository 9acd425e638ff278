"""Writes this node's definitions into the store, and tries again whenever the fleet changes until they stand."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from solocron.engine.calendars import Calendars, learned
from solocron.engine.settings import Settings
from solocron.events import Events
from solocron.jobs.registry import Declared
from solocron.model.calendars import with_revision
from solocron.model.change import Absent, Change, Kind
from solocron.model.defining import Proposal, propose
from solocron.model.job import Job
from solocron.model.timetable import Resolve
from solocron.stores.contract import Named, Store, Verdict

__all__ = ["Registrar", "fingerprint_of"]

BATCH = 500


def fingerprint_of(declared: Mapping[str, Declared]) -> str:
    """One name for a whole set of definitions: equal on nodes that run the same code."""
    text = "\n".join(f"{name} {declared[name].definition.fingerprint}" for name in sorted(declared))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


class Registrar:
    """Proposes; the pure rule in `model.defining` decides who may write."""

    def __init__(
        self,
        *,
        store: Store,
        settings: Settings,
        events: Events,
        declared: Mapping[str, Declared],
        resolve: Resolve,
        zone_data: str,
        calendars: Calendars | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._events = events
        self._declared = declared
        self._resolve = resolve
        self._zone_data = zone_data
        self._calendars = calendars
        self._latest: Mapping[str, int] = {}
        self._fleet: frozenset[str] | None = None
        self.fingerprint = fingerprint_of(declared)

    def register(self, live: frozenset[str], *, between: Callable[[], None] = lambda: None) -> None:
        """Propose every declared job; `live` are the sets that live sessions advertise, our own not needed.

        `between` is called after each batch: very many jobs on a slow store take longer than a lease.
        """
        self._fleet = None  # unless everything stands, it is tried again with the next look at the fleet
        fetched = False
        names = self._known(sorted(self._declared))
        complete = len(names) == len(self._declared)
        for start in range(0, len(names), BATCH):
            applied = self._store.update(
                Named(Kind.JOB, tuple(names[start : start + BATCH])), lambda doc, at: self._propose(doc, at, live)
            )
            for result in applied.results:
                if result.verdict is Verdict.DECLINED and learned(self._calendars, result.doc):
                    fetched = True
                elif result.verdict is Verdict.DECLINED and isinstance(result.doc, Job):
                    if not self._stands(result.doc) and self._differs(result.doc):
                        self._events.emit("definition kept", job=result.name, node=self._settings.node)
                elif result.verdict is not Verdict.APPLIED and result.verdict is not Verdict.DECLINED:
                    complete = False
            between()
        if fetched:  # the old slots of a job were those of a revision that was not known here
            self.register(live, between=between)
            return
        if self._calendars is not None and self._latest:
            calendared = [name for name in names if self._declared[name].calendar is not None]
            self._calendars.bring(calendared, self._settings.late_for)
        self._fleet = live if complete else None

    def _known(self, names: list[str]) -> list[str]:
        """Those whose calendar is in the store, if they name one; the others wait until somebody has put it there."""
        wanted = {name: self._declared[name].calendar for name in names}
        calendars = {calendar for calendar in wanted.values() if calendar is not None}
        if not calendars or self._calendars is None:
            return names
        self._latest = self._calendars.latest(calendars)
        self._calendars.fetch(self._latest.items())
        for name, calendar in wanted.items():
            if calendar is not None and calendar not in self._latest:
                self._events.emit("job blocked", job=name, error=f"there is no calendar {calendar!r} in the store")
        return [name for name in names if wanted[name] is None or wanted[name] in self._latest]

    def fleet_changed(self, live: frozenset[str]) -> bool:
        """Called with every look at the sessions; True when the proposals were made again."""
        if live == self._fleet:
            return False
        self.register(live)
        return True

    def _stands(self, doc: Job | Absent) -> bool:
        """Whether what is declared here is known to be in the store, because this very set of definitions put it there.

        A restart of many jobs compares nothing else; everything that is not so plain is for `propose` to decide.
        """
        return (
            isinstance(doc, Job)
            and doc.source == self.fingerprint
            and (doc.revision or 0) == (self._settings.revision or 0)
            and doc.zone_data >= self._zone_data
            and not doc.removed
        )

    def _differs(self, doc: Job) -> bool:
        return doc.definition.fingerprint != self._declared[doc.name].definition.fingerprint

    def _propose(self, doc: Job | Absent, now: int, live: frozenset[str]) -> Change | None:
        if self._stands(doc):
            return None
        declared = self._declared[doc.name]
        definition, calendar = declared.definition, declared.calendar
        if calendar is not None:
            definition = with_revision(definition, self._latest[calendar])
        proposal = Proposal(
            definition=definition,
            source=self.fingerprint,
            revision=self._settings.revision,
            zone_data=self._zone_data,
        )
        return propose(
            doc, proposal=proposal, live=live, now=now, late_for=self._settings.late_for, resolve=self._resolve
        )
