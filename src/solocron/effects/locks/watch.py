"""Finds out whether the session that holds something is dead, and buries it if both clocks say so.

A session is never buried on the store's clock alone while somebody is there to watch it (rule 5 of the lease
protocol). Who asks only once, and finds nobody else alive, has no watcher: then the store's clock decides.
"""

from __future__ import annotations

from solocron.model.change import Kind
from solocron.model.documents.session import Life, Session, bury
from solocron.runtime import Runtime
from solocron.stores.contract import All, Named, Store, Verdict

__all__ = ["Watch"]


class Watch:
    """Remembers when it last saw each session change, on this machine's boot clock."""

    def __init__(self, store: Store, runtime: Runtime, by: str) -> None:
        self._store = store
        self._runtime = runtime
        self._by = by
        self._seen: dict[str, tuple[int, float]] = {}

    def is_dead(self, name: str, *, now: int, once: bool) -> bool:
        """Whether what the session holds may be taken; `now` is the store's time, `once`: nobody will ask again."""
        found = self._store.read(Named(Kind.SESSION, (name,)))
        if not found:
            return True
        session = found[0]
        assert isinstance(session, Session)
        if session.state is not Life.LIVE:
            return True
        boot, left = self._runtime.clock.boot(), (session.expires_at - now) / 1_000_000
        beats, over = self._seen.get(name, (-1, 0.0))
        if beats != session.beats:
            over = boot + session.lease / 1_000_000  # what is left by a clock that has just leapt is no measure
            self._seen[name] = (session.beats, over)
        if left > 0:
            return False
        if boot >= over or (once and self._nobody_watches(name, now)):
            return self._bury(session)
        return False

    def due(self, name: str) -> float | None:
        """Boot time at which it is worth looking again."""
        known = self._seen.get(name)
        return None if known is None else known[1]

    def _nobody_watches(self, name: str, now: int) -> bool:
        """Only nodes watch others; a session without pools is that of a process that holds a lock or a key.

        The node of this very process watches whatever the store's clock says: a step of it has expired them all.
        """
        sessions = [doc for doc in self._store.read(All(Kind.SESSION)) if isinstance(doc, Session)]
        nodes = [s for s in sessions if s.name != name and s.pools and s.state is Life.LIVE]
        return not any(s.expires_at > now or s.node == self._by for s in nodes)

    def _bury(self, session: Session) -> bool:
        reason = f"not renewed in time, buried by {self._by}"
        result = self._store.update(
            Named(Kind.SESSION, (session.name,)), lambda doc, at: bury(doc, now=at, reason=reason, seen=session.beats)
        ).results[0]
        return result.verdict is Verdict.APPLIED
