"""Finds what should have run and did not, and reports it: each alarm is raised once and cleared once in the fleet.

The nodes take turns: at each interval one of them reads the documents. It never reads the log, and writes only when an
alarm begins or ends.
"""

from __future__ import annotations

from solocron.engine.attempts import Attempts
from solocron.engine.node_context import NodeContext
from solocron.lease.trust import Standing
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents import alarm
from solocron.model.documents.alarm import TURN, Bounds, Cause
from solocron.stores.contract import All, ChangeFn, Named, Result, Verdict
from solocron.stores.paging import iter_jobs, read_documents, read_pauses, read_sessions

__all__ = ["Alarms"]

_KEPT = 3_600_000_000
"""Microseconds for which a closed alarm is kept: longer than any look takes."""


class Alarms:
    """One look per turn."""

    def __init__(self, context: NodeContext, attempts: Attempts, bounds: Bounds) -> None:
        self._context = context
        self._attempts = attempts
        self._bounds = bounds
        self._unsure: dict[str, tuple[str, str]] = {}
        """Changes whose reply was lost: reported once the document shows that they were ours."""

    def step(self, now: float) -> float:
        """Take a turn if it is due; return when to look again."""
        pause = self._bounds.every / 1_000_000 * self._context.runtime.rng.uniform(1.0, 1.2)
        if self._attempts.draining or self._attempts.lease.standing() is not Standing.HELD:
            return now + min(pause, self._context.settings.beat)
        self._make_sure()
        applied = self._context.store.update(
            Named(Kind.ALARM, (TURN,)),
            lambda doc, at: alarm.take_turn(doc, by=self._context.settings.node, every=self._bounds.every, now=at),
        )
        if applied.results[0].verdict is Verdict.APPLIED:
            self.look()
        return now + pause

    def look(self) -> None:
        """Compare the causes with the open alarms."""
        store = self._context.store
        seen = store.clock()
        found = alarm.causes(
            list(iter_jobs(store)), read_sessions(store), aside=self._aside(),
            tier=str(store.capabilities.tier), bounds=self._bounds, now=seen,
            pauses=read_pauses(store),
        )  # fmt: skip
        known = {doc.name: doc for doc in read_documents(self._context.store, All(Kind.ALARM))}
        for name, cause in sorted(found.items()):
            if name not in known or not alarm.is_open(known[name]):
                self._raise(cause, seen)
        for name, doc in sorted(known.items()):
            if name not in found and (alarm.is_open(doc) or alarm.is_waiting(doc)):
                self._clear(name, seen)
        old = tuple(name for name, doc in known.items() if alarm.forget(doc, before=seen - _KEPT) is not None)
        if old:
            self._context.store.update(Named(Kind.ALARM, old), lambda doc, at: alarm.forget(doc, before=seen - _KEPT))

    def _aside(self) -> frozenset[str]:
        return frozenset(one.name for one in self._context.store.blocked() if one.kind is Kind.JOB)

    # --- raising and clearing ------------------------------------------------------------------------------------

    def _raise(self, cause: Cause, seen: int) -> None:
        token = self._context.runtime.rng.token()
        self._change(
            cause.name, "raised", token, lambda doc, at: alarm.open_(doc, cause, seen=seen, now=at, token=token)
        )

    def _clear(self, name: str, seen: int) -> None:
        token = self._context.runtime.rng.token()
        self._change(name, "cleared", token, lambda doc, at: alarm.close(doc, seen=seen, now=at, token=token))

    def _change(self, name: str, what: str, token: str, change: ChangeFn) -> None:
        self._context.runtime.failpoint("alarm")
        self._unsure[name] = what, token
        result: Result = self._context.store.update(Named(Kind.ALARM, (name,)), change).results[0]
        if result.verdict is Verdict.UNKNOWN:
            return
        del self._unsure[name]
        if result.verdict is Verdict.APPLIED and isinstance(result.doc, SmallDocument) and result.answer == what:
            self._report(what, result.doc)

    def _make_sure(self) -> None:
        """Report the changes of unknown outcome that turn out to be this node's."""
        if not self._unsure:
            return
        found = self._context.store.read(Named(Kind.ALARM, tuple(sorted(self._unsure))))
        unsure, self._unsure = self._unsure, {}
        for doc in found:
            what, token = unsure[doc.name]
            if isinstance(doc, SmallDocument) and doc.body.get("state") != "waiting" and doc.body.get(what) == token:
                self._report(what, doc)

    def _report(self, what: str, doc: SmallDocument) -> None:
        kind, subject, detail, since = (doc.body[name] for name in ("kind", "subject", "detail", "since"))
        job, node = None if kind in ("no node", "tier") else subject, self._context.settings.node
        events = self._context.events
        if what == "raised":
            events.emit("alarm", kind=kind, subject=subject, job=job, detail=detail, since=since, node=node)
        else:
            events.emit("alarm cleared", kind=kind, subject=subject, job=job, detail=detail, since=since, node=node)
