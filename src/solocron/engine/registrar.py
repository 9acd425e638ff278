"""Writes this node's definitions into the store, and tries again whenever the fleet changes until they stand."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from solocron.engine.node_context import NodeContext
from solocron.jobs.registry import Declared, Handler
from solocron.lease.own import OwnLease
from solocron.model.applications import Peers, TakenOn, advertised, is_anothers, take_on
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.calendar import with_revision
from solocron.model.documents.job import GIVEN_WAY, Job
from solocron.model.documents.scoped_pause import ScopedPause
from solocron.model.documents.session import FEATURES, Session
from solocron.model.transitions.registration import PASSED, Proposal, propose
from solocron.stores.contract import Named, Result, Verdict
from solocron.stores.paging import read_pauses, read_sessions

__all__ = ["Registrar", "fingerprint_of"]

BATCH = 500

HANDLERS_LISTED = 2_000
"""Handlers that a session lists at most; with more, its document would weigh more than it is worth."""


def fingerprint_of(declared: Mapping[str, Declared]) -> str:
    """Return a digest of a set of definitions: equal on nodes that run the same code of the same application."""
    text = "\n".join(
        f"{name} {declared[name].handler.application} {declared[name].definition.fingerprint}"
        for name in sorted(declared)
    )
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@dataclass(slots=True)
class _Reported:
    """Jobs whose definition this node does not write, each reported once for its reason."""

    anothers: dict[str, str | None] = field(default_factory=dict)
    """Left to another application, with its name."""
    outranked: dict[str, int] = field(default_factory=dict)
    """Stored with a higher revision than ours, with that revision."""
    unreadable: set[str] = field(default_factory=set)
    """Some live node cannot read the definition."""


class Registrar:
    """Proposes definitions.

    The pure rules of `model.transitions.registration` and `model.applications` decide which node may write.
    """

    def __init__(
        self,
        context: NodeContext,
        lease: OwnLease,
        declared: Mapping[str, Declared],
        handlers: Mapping[str, Handler],
        zone_data: str,
    ) -> None:
        self._context = context
        self._lease = lease
        self._declared = declared
        self._handlers = handlers
        self._zone_data = zone_data
        self._latest: Mapping[str, int] = {}
        self._fleet: Peers | None = None
        self._reported = _Reported()
        self._noted: deque[str] = deque()
        """Jobs that the claimer could not decide, passed from its thread to the one that proposes."""
        self._placing = True
        """True while a start writes where functions stand. Old and new nodes would else write it in turns."""
        self.fingerprint = fingerprint_of(declared)

    def describe(self) -> Session:
        """Describe this node as its session does, without an id."""
        settings = self._context.settings
        from_where = {name: handler.application for name, handler in self._handlers.items()}
        handlers, applications = advertised(from_where, most=HANDLERS_LISTED)
        return Session(
            name="",
            node=settings.node,
            host=settings.host,
            pid=settings.pid,
            pools=tuple(sorted(settings.pools)),
            handlers=handlers,
            applications=applications,
            version=settings.version,
            fingerprint=self.fingerprint,
            revision=settings.revision,
            zone_data=self._zone_data,
            lease=settings.lease_us,
            keep=settings.keep,
            max_running=settings.max_running,
            features=FEATURES,
        )

    def register(self, between: Callable[[], None]) -> None:
        """Propose every declared job; again after the store went back, because it may have lost them.

        `between` is called after each batch: very many jobs on a slow store take longer than a lease.
        """
        self._placing = True
        self._register(self._seen(read_sessions(self._context.store)), between)
        self._placing = False

    def review(self, sessions: Sequence[Session] | None = None) -> bool:
        """Propose again what a change of the fleet, or a noted job, gives cause for; True if there was cause.

        `sessions` are those of the fleet if the caller has just read them.
        """
        names: set[str] = {self._noted.popleft() for _ in range(len(self._noted))}
        # the right to write depends on the nodes that live after the jobs were noted, not before
        if sessions is None or names:
            sessions = read_sessions(self._context.store)
        fleet = self._seen(sessions)
        changed = fleet != self._fleet
        if changed:
            self._register(fleet)
            names -= self._declared.keys()
        if names and not self._propose_all(sorted(names), fleet):
            self._fleet = None
        if not changed and not names:
            return False
        self._context.signals.claim.definitions_written()
        return True

    @property
    def has_notes(self) -> bool:
        """True if a job was noted since the last review."""
        return bool(self._noted)

    def _seen(self, sessions: Sequence[Session]) -> Peers:
        return Peers.seen(sessions, besides=self._lease.session, now=self._lease.store_now() or 0)

    def _register(self, fleet: Peers, between: Callable[[], None] | None = None) -> None:
        self._fleet = None  # unless everything stands, the next review of the fleet tries again
        if self._propose_all(sorted({*self._declared, *self._reported.anothers}), fleet, between):
            self._fleet = fleet

    def note(self, job: Job) -> bool:
        """Note a job for review: it has given way, or is another application's. False: there is nothing to do.

        A job that was added as data is declared nowhere: the application that has its handler learns of it here.
        """
        if job.source == GIVEN_WAY and job.name in self._declared:
            self._noted.append(job.name)
            return True
        if not is_anothers(job.definition, self._application(job)):
            return False
        if self._reported.anothers.get(job.name) == job.definition.application:
            return False
        self._noted.append(job.name)
        return True

    def _propose_all(self, names: list[str], fleet: Peers, between: Callable[[], None] | None = None) -> bool:
        """Return whether every one of them stands as it was proposed, or was declined."""
        fetched, wanted = False, len(names)
        self._report_unreadable(names, fleet)
        names = self._known(names)
        complete = len(names) == wanted
        pauses = read_pauses(self._context.store)
        for start in range(0, len(names), BATCH):
            applied = self._context.store.update(
                Named(Kind.JOB, tuple(names[start : start + BATCH])),
                lambda doc, at: self._propose(doc, at, fleet, pauses),
            )
            for result in applied.results:
                if result.verdict is Verdict.DECLINED and isinstance(result.doc, Job):
                    if self._context.calendars.learn([result.doc]):
                        fetched = True
                    else:
                        self._kept(result.doc, fleet)
                elif result.verdict is Verdict.APPLIED:
                    self._written(result)
                elif result.verdict is not Verdict.DECLINED:
                    complete = False
            if between is not None:
                between()
        if fetched:  # the old slots of a job were those of a revision that was not known here
            return self._propose_all(names, fleet, between) and complete
        if self._latest:
            calendared = [name for name in names if self._calendar(name) is not None]
            self._context.calendars.bring(calendared, self._context.settings.late_for)
        return complete

    def _report_unreadable(self, names: Sequence[str], fleet: Peers) -> None:
        """Report, once each, the jobs that wait until the nodes of an older version are gone."""
        for name in names:
            declared = self._declared.get(name)
            if declared is None or fleet.can_read(declared.options):
                self._reported.unreadable.discard(name)
            elif name not in self._reported.unreadable:
                self._reported.unreadable.add(name)
                self._context.events.emit(
                    "job blocked", job=name,
                    error=f"a node of an older version lives, which does not know {declared.run_in!r} for a carrier "
                    "and would fail its runs; its definition is written when that node is gone",
                )  # fmt: skip

    def _known(self, names: list[str]) -> list[str]:
        """Return those whose calendar is in the store, if they name one; the others wait until it is there."""
        wanted = {name: self._calendar(name) for name in names}
        calendars = {calendar for calendar in wanted.values() if calendar is not None}
        if not calendars:
            return names
        self._latest = self._context.calendars.latest(calendars)
        self._context.calendars.fetch(self._latest.items())
        for name, calendar in wanted.items():
            if calendar is not None and calendar not in self._latest:
                self._context.events.emit(
                    "job blocked", job=name, error=f"there is no calendar {calendar!r} in the store"
                )
        return [name for name in names if wanted[name] is None or wanted[name] in self._latest]

    def _calendar(self, name: str) -> str | None:
        declared = self._declared.get(name)
        return None if declared is None else declared.calendar

    def _application(self, job: Job) -> str | None:
        """Return the application that would run the job here: of its handler, or of the one declared for it."""
        handler = self._handlers.get(job.name if job.name in self._declared else job.definition.handler)
        return None if handler is None else handler.application

    def _kept(self, doc: Job, fleet: Peers) -> None:
        """Report, if it makes a difference, that the stored definition stands."""
        ours = self._application(doc)
        if is_anothers(doc.definition, ours):
            theirs = doc.definition.application
            if self._reported.anothers.get(doc.name) != theirs:
                self._reported.anothers[doc.name] = theirs
                self._context.events.emit(
                    "another application",
                    job=doc.name,
                    node=self._context.settings.node,
                    application=ours,
                    declared_by=theirs,
                )
            return
        self._reported.anothers.pop(doc.name, None)
        if doc.name not in self._declared or self._stands(doc) or not self._differs(doc):
            return
        stored, mine = doc.revision or 0, self._context.settings.revision or 0
        if stored <= max(mine, fleet.revision):  # a deploy in progress: the new code, or the old one, still runs
            self._context.events.emit(
                "definition kept", job=doc.name, node=self._context.settings.node, stored=stored, ours=mine
            )
        elif self._reported.outranked.get(doc.name) != stored:
            self._reported.outranked[doc.name] = stored
            self._context.events.emit(
                "rolled back", job=doc.name, node=self._context.settings.node, stored=stored, ours=mine
            )

    def _written(self, result: Result) -> None:
        self._reported.anothers.pop(result.name, None)
        self._reported.outranked.pop(result.name, None)
        if result.answer == PASSED and isinstance(result.doc, Job):
            slots = self._context.resolve(result.doc.definition.schedule)
            self._context.events.emit(
                "never due", job=result.name, node=self._context.settings.node, slot=slots.before(result.doc.cursor + 1)
            )
        if isinstance(result.answer, TakenOn) and isinstance(result.doc, Job):
            self._context.events.emit(
                "application changed", job=result.name, node=self._context.settings.node,
                application=result.doc.definition.application, declared_by=result.answer.before,
            )  # fmt: skip

    def _stands(self, doc: Job | Absent) -> bool:
        """Return whether the declared job is known to be in the store, because this set of definitions put it there.

        A restart with many jobs compares nothing else; `propose` decides every other case.
        """
        return (
            isinstance(doc, Job)
            and doc.source == self.fingerprint
            and (doc.revision or 0) == (self._context.settings.revision or 0)
            and doc.zone_data >= self._zone_data
            and not (self._placing and doc.place != self._declared[doc.name].handler.line)
            and not doc.removed
        )

    def _differs(self, doc: Job) -> bool:
        return doc.definition.fingerprint != self._declared[doc.name].definition.fingerprint

    def _propose(self, doc: Job | Absent, now: int, fleet: Peers, pauses: Sequence[ScopedPause]) -> Change | None:
        if self._stands(doc):
            return None
        declared = self._declared.get(doc.name)
        if declared is None:
            return take_on(doc, application=self._application(doc), fleet=fleet) if isinstance(doc, Job) else None
        definition, calendar = declared.definition, declared.calendar
        if calendar is not None:
            definition = with_revision(definition, self._latest[calendar])
        proposal = Proposal(
            definition=definition,
            source=self.fingerprint,
            revision=self._context.settings.revision,
            zone_data=self._zone_data,
            place=declared.handler.line,
        )
        return propose(
            doc,
            proposal=proposal,
            fleet=fleet,
            now=now,
            late_for=self._context.settings.late_for,
            resolve=self._context.resolve,
            pauses=pauses,
        )
