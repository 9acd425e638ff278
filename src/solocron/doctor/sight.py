"""A snapshot of everything that the doctor examines, read once; the lines are pure functions of it."""

from __future__ import annotations

from dataclasses import dataclass

from solocron.model.applications import can_run
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.namespace import Namespace
from solocron.model.documents.scoped_pause import KeptBack, ScopedPause, kept_back, standing
from solocron.model.documents.session import Life, Session, is_live
from solocron.stores.contract import All, Blocked, Store
from solocron.stores.documents import QUEUES
from solocron.stores.paging import PAGE, iter_documents, iter_jobs, read_documents, read_namespace, read_sessions

__all__ = ["Sight", "look"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """A namespace at one moment."""

    now: int
    sessions: tuple[Session, ...] = ()
    jobs: tuple[Job, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    holders: frozenset[str] = frozenset()
    namespace: Namespace | None = None
    """True if claims are granted; None before the first node has started."""
    requests: tuple[SmallDocument, ...] = ()
    """Triggers of committed transactions that no node has accepted; the first page of them."""
    alarms: tuple[SmallDocument, ...] = ()
    """The documents of alarms: what is open, what was told, what is silenced, and who looked last."""

    @property
    def live(self) -> tuple[Session, ...]:
        """The sessions whose lease has not run out."""
        return tuple(s for s in self.sessions if is_live(s, now=self.now))

    @property
    def silent(self) -> tuple[Session, ...]:
        """The sessions past their lease that are not buried yet."""
        return tuple(s for s in self.sessions if s.state is Life.LIVE and s.expires_at <= self.now)

    @property
    def unswept(self) -> tuple[Session, ...]:
        """The dead sessions whose holds may not have been taken over."""
        return tuple(s for s in self.sessions if s.state is Life.DEAD)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Holders without a session, or with a swept one: their holds never end by themselves."""
        known = {session.name for session in self.sessions if session.state is not Life.SWEPT}
        return tuple(sorted(self.holders - known - {QUEUES}))

    @property
    def holds(self) -> tuple[tuple[Job, Hold], ...]:
        return tuple((job, hold) for job in self.jobs for hold in job.active)

    @property
    def pauses(self) -> tuple[ScopedPause, ...]:
        """The pauses of many jobs that stand."""
        return () if self.namespace is None else standing(self.namespace.pauses, self.now)

    def is_paused(self, job: Job) -> bool:
        """Return whether a job is paused, by itself or with others."""
        return job.paused is not None or kept_back(self.pauses, job, now=self.now) is not KeptBack.NOTHING

    def can_run(self, job: Job) -> tuple[Session, ...]:
        """The live sessions that may claim a job."""
        return tuple(session for session in self.live if can_run(session, job.definition))


def look(store: Store) -> Sight:
    """Read the snapshot. Holders come first: a claim needs a live session, so the sessions read later include them."""
    holders = store.holders()
    jobs = tuple(iter_jobs(store))
    sessions = tuple(read_sessions(store))
    return Sight(
        now=store.clock(),
        sessions=sessions,
        jobs=jobs,
        blocked=tuple(store.blocked()),
        holders=holders,
        namespace=read_namespace(store),
        requests=tuple(read_documents(store, All(Kind.REQUEST, limit=PAGE))),
        alarms=tuple(iter_documents(store, Kind.ALARM)),
    )
