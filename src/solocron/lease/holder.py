"""Begin, renew and close a session: the one implementation, for nodes and for processes that only hold locks.

A renewal is conditional on the session being live, never on a version and never an upsert. Its number makes a late one
harmless, and its trust counts from before it was sent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from solocron.errors import StoreUnavailable
from solocron.lease.own import OwnLease
from solocron.lease.renewals import AcknowledgedRenewals
from solocron.lease.terms import LeaseTerms
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.session import Life, Progress, Session, begin, end, renew
from solocron.runtime import Runtime
from solocron.stores.contract import Applied, Gate, Named, Store, Verdict
from solocron.stores.until_known import update_until_known

__all__ = ["Fate", "Holder", "Renewal"]

FORMER = 8
"""Sessions of this process whose renewals are remembered, the present one included."""


class Fate(StrEnum):
    """Results of a renewal."""

    RENEWED = "renewed"
    LATE = "late"
    """The store acknowledged it after the trust had ended: the session is lost all the same."""
    REFUSED = "refused"
    """The session is dead or gone, or older in the store than what was acknowledged; or the gate is shut."""
    UNCERTAIN = "uncertain"
    """Contended, without a reply, or overtaken by a later one: try again."""


@dataclass(frozen=True, slots=True)
class Renewal:
    """A renewal that the store replied to, and its document there."""

    fate: Fate
    applied: Applied
    doc: Session | Absent | None

    @property
    def verdict(self) -> Verdict:
        return self.applied.results[0].verdict


class Holder:
    """Holds one session after the other for this process."""

    def __init__(self, store: Store, runtime: Runtime, lease: OwnLease, terms: LeaseTerms) -> None:
        self._store = store
        self._runtime = runtime
        self.lease = lease
        self._terms = terms
        self.former: dict[str, AcknowledgedRenewals] = {}
        """The sessions that this process has had, by id, with their acknowledged renewals; the oldest first."""

    def begin(self, described: Session) -> tuple[str, int]:
        """Begin a session under an id that no process has had before; return it and the store's time.

        It is trusted from before the request.
        """
        asked, session = self._runtime.clock.boot(), self._runtime.rng.token()
        named = replace(described, name=session)
        applied = self._store.update(Named(Kind.SESSION, (session,)), lambda doc, at: begin(doc, named, now=at))
        self.lease.observe(applied.now, asked=asked, replied=self._runtime.clock.boot())
        verdict = applied.results[0].verdict
        if verdict is not Verdict.APPLIED:
            raise StoreUnavailable(f"a new session could not be begun ({verdict}); trying again")
        self.lease.begin(session, asked)
        self.former[session] = AcknowledgedRenewals(asked, self._terms.lease, applied.now)
        while len(self.former) > FORMER:
            del self.former[next(iter(self.former))]
        return session, applied.now

    def renew(
        self,
        session: str,
        *,
        running: int = 0,
        progress: Progress | None = None,
        mark: str | None = None,
        lift: bool = False,
        gate: Gate | None = None,
    ) -> Renewal:
        """Renew by one conditional write, with the mark of a checked epoch if one is given.

        `lift` accepts a document that is older than what the store has acknowledged: its holder knows that the store
        went back. `gate` is tested in the commit. `progress` is that of the runs; None leaves what was reported last.
        """
        asked = self._runtime.clock.boot()
        seen, number = self.lease.beats, self.lease.next_number()
        report = self.lease.report(asked, self._runtime.clock.wall())
        try:
            applied = self._store.update(
                Named(Kind.SESSION, (session,)),
                lambda doc, at: renew(
                    doc,
                    now=at,
                    running=running,
                    progress=progress,
                    seen=seen,
                    number=number,
                    epoch=mark,
                    lift=lift,
                    report=report,
                ),
                session=None if gate is None else session,
                gate=gate,
            )
        except Exception:
            self.lease.trouble()
            raise
        if applied.shut or not applied.alive:
            return Renewal(Fate.REFUSED, applied, None)
        result = applied.results[0]
        doc = result.doc if isinstance(result.doc, Session | Absent) else None
        self.lease.observe(applied.now, asked=asked, replied=self._runtime.clock.boot())
        if result.verdict is Verdict.APPLIED and isinstance(doc, Session):
            self.lease.acknowledge(session, doc.beats)
            if session in self.former:
                self.former[session].acknowledge(doc.beats, asked, applied.now)
            return Renewal(Fate.RENEWED if self.lease.renewed(session, asked) else Fate.LATE, applied, doc)
        live = isinstance(doc, Session) and doc.state is Life.LIVE and doc.beats >= seen
        if result.verdict is Verdict.DECLINED and not live:
            return Renewal(Fate.REFUSED, applied, doc)
        self.lease.trouble()
        return Renewal(Fate.UNCERTAIN, applied, doc)

    def close(self, session: str, reason: str, *, gate: Gate | None = None) -> Applied:
        """Close a session of this process under which no body is left, so that its lease need not expire.

        With `gate`, only if the namespace is as this process has checked it.
        """
        under = None if gate is None else session
        return update_until_known(
            self._store,
            Named(Kind.SESSION, (session,)),
            lambda doc, at: end(doc, now=at, reason=reason),
            session=under,
            gate=gate,
        )

    def remove(self, session: str) -> None:
        """Remove a session that holds nothing: it need not wait to be swept, and a missing session counts as dead."""
        self._store.update(Named(Kind.SESSION, (session,)), lambda doc, at: _removed(doc))

    def next_beat(self, now: float) -> float:
        """Return when to renew next after a renewal.

        Jittered, so that the nodes of a fleet do not renew all at once.
        """
        return now + self._terms.beat * self._runtime.rng.uniform(0.85, 1.0)

    def next_try(self) -> float:
        """Return when to renew next after a failure: several more tries fit into what is left of the lease."""
        return self._runtime.clock.boot() + self._terms.beat / 8 * self._runtime.rng.uniform(0.8, 1.2)


def _removed(doc: Session | Absent) -> Change | None:
    return None if isinstance(doc, Absent) else Change(None)
