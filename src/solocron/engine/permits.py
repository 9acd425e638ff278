"""The permits that this node holds of limits across jobs: taken before a claim, released once its run is over.

A permit is bound to the node's session, so that the sweeper frees those of a dead node. A permit whose claim has an
unknown outcome is kept until the next renewal shows whether the claim stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from solocron.engine.namespace_gate import NamespaceGate
from solocron.engine.node_context import NodeContext
from solocron.errors import StoreError
from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents.job import Hold
from solocron.model.documents.permit import free, give, names_of, take, turn_of
from solocron.stores.contract import ChangeFn, HeldBy, Named, Verdict

__all__ = ["Permits"]

_IN_HAND, _IN_DOUBT = "", "?"


@dataclass(slots=True)
class _Mine:
    turn: int
    """Number of the acquisition: a late message about an earlier one changes nothing."""
    run: str = _IN_HAND
    """Run that has it, or a mark: not used yet, or in doubt."""


class Permits:
    """The permits of this session, each with its run; safe to call from any of the node's loops."""

    def __init__(self, context: NodeContext, gate: NamespaceGate) -> None:
        self._context = context
        self._gate = gate
        self._mutex = context.runtime.mutex()
        self._session: str | None = None
        self._used: dict[str, _Mine] = {}
        self._back: dict[str, int] = {}
        """Permits to release, each with the number of its acquisition."""
        self._calls = 0
        self._turn = 0
        self._flushing = False

    def take(self, limit: str, wanted: int, session: str) -> list[str]:
        """Take up to `wanted` free permits of a limit; return those that were taken."""
        with self._mutex:
            if self._session != session:  # what an earlier session held is freed with it
                self._session, self._used, self._back = session, {}, {}
            names = [name for name in names_of(limit) if name not in self._used and name not in self._back]
            self._calls += 1
            self._turn += 1
            turn = self._turn
        try:
            docs = self._context.store.read(Named(Kind.PERMIT, tuple(names)))
            held = {doc.name for doc in docs if isinstance(doc, SmallDocument) and not free(doc)}
            # Request one even if none is free: the node that releases it then notifies the others.
            chosen = [name for name in names if name not in held][:wanted] or names[:1]
            if not chosen:
                return []
            applied = self._context.store.update(
                Named(Kind.PERMIT, tuple(chosen)),
                lambda doc, at: take(doc, session=session, node=self._context.settings.node, turn=turn, now=at),
                session=session,
                gate=self._gate.gate(),
            )
            got = [r.name for r in applied.results if r.verdict is Verdict.APPLIED and r.answer]
            with self._mutex:
                if self._session == session:
                    self._used.update({name: _Mine(turn) for name in got})
            return got
        finally:
            with self._mutex:
                self._calls -= 1

    def owns(self, hold: Hold) -> bool:
        """Return whether a claim may start: its permit is ours, and no other run has it.

        From then on this run has it.
        """
        if hold.permit is None:
            return True
        with self._mutex:
            mine = self._used.get(hold.permit)
            if hold.session != self._session or mine is None or mine.run not in (_IN_HAND, _IN_DOUBT, hold.run):
                return False
            mine.run = hold.run
            return True

    def doubt(self, permits: Iterable[str]) -> None:
        """Mark permits whose claims may or may not stand."""
        with self._mutex:
            for name in permits:
                mine = self._used.get(name)
                if mine is not None and mine.run == _IN_HAND:
                    mine.run = _IN_DOUBT

    def release(self, permits: Iterable[str], session: str | None) -> None:
        """Mark permits that are no longer needed; `flush` releases them."""
        with self._mutex:
            if session != self._session:
                return
            for name in permits:
                mine = self._used.pop(name, None)
                if mine is not None:
                    self._back[name] = mine.turn

    def run_over(self, hold: Hold) -> None:
        """Release the permit of an ended claim with the next `flush`, unless another run has it by now."""
        if hold.permit is None:
            return
        with self._mutex:
            mine = self._used.get(hold.permit)
            if mine is not None and hold.session == self._session and mine.run == hold.run:
                del self._used[hold.permit]
                self._back[hold.permit] = mine.turn

    def flush(self) -> None:
        """Release what is to be released; without a reply of the store it is tried again with the next renewal."""
        with self._mutex:
            session, back = self._session, dict(self._back)
            if not back or session is None or self._flushing:
                return
            self._flushing = True

        def change(doc: SmallDocument | Absent, at: int) -> Change | None:
            return give(doc, session=session, turn=back[doc.name], now=at)

        try:
            applied = self._context.store.update(Named(Kind.PERMIT, tuple(sorted(back))), change, session=session)
            done = {r.name for r in applied.results if r.verdict in (Verdict.APPLIED, Verdict.DECLINED)}
            asked = any(result.answer for result in applied.results)
            if asked:
                self._context.store.signal()
        except StoreError:
            return
        finally:
            with self._mutex:
                self._flushing = False
        with self._mutex:
            self._back = {name: turn for name, turn in self._back.items() if name not in done or turn != back[name]}
        self._context.signals.claim.look_again()  # a job of this node may wait for one

    def put_back(self, session: str, update_all: Callable[[Sequence[str], ChangeFn], None]) -> None:
        """Hold permits of this session again after the store went back, unless another session holds them."""
        with self._mutex:
            held = {name: mine.turn for name, mine in self._used.items()} if self._session == session else {}

        def change(doc: SmallDocument | Absent, at: int) -> Change | None:
            return take(doc, session=session, node=self._context.settings.node, turn=held[doc.name], now=at)

        update_all(sorted(held), change)

    def reconcile(self, session: str, holds: Iterable[Hold]) -> None:
        """Release, with every renewal, permits that are ours by the store and that no claim uses."""
        needed = {hold.permit for hold in holds if hold.permit is not None}
        with self._mutex:
            quiet, seen = self._calls == 0 and self._session == session, self._turn
        if not quiet:
            return
        ours = [doc for doc in self._context.store.read(HeldBy(session, Kind.PERMIT)) if isinstance(doc, SmallDocument)]
        with self._mutex:
            if self._calls or self._turn != seen or self._session != session:
                return
            doubted = {n: m.turn for n, m in self._used.items() if m.run == _IN_DOUBT and n not in needed}
            for name in doubted:
                del self._used[name]
            known = self._used.keys() | self._back.keys() | needed
            self._back |= doubted | {doc.name: turn_of(doc) for doc in ours if doc.name not in known | doubted.keys()}
        self.flush()
