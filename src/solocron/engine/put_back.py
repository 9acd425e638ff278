"""Puts back what this node remembers and a store that went back has lost: claims, effects, permits, definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from solocron.engine.memory import LetGo, Memory
from solocron.engine.node_context import NodeContext
from solocron.engine.permits import Permits
from solocron.engine.registrar import Registrar
from solocron.errors import StoreUnavailable
from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents.job import Job
from solocron.model.documents.namespace import Namespace, Openness
from solocron.model.transitions.rejoin import Remembered, may_have_started, rejoin, write_off
from solocron.model.transitions.rejoin_effects import rejoin_effect
from solocron.stores.contract import ChangeFn, Gate, Named, Result, Verdict
from solocron.stores.paging import iter_job_pages
from solocron.stores.until_known import OPEN_OUTCOMES, update_until_known

__all__ = ["Overtaken", "PutBack"]

PORTION = 200
"""Documents in one update: the session is renewed in between."""


class Overtaken(Exception):
    """Another check has begun, or this session is not the one that the store knows: read again."""


class PutBack:
    """Writes what the process remembers into the store, one portion after the other."""

    def __init__(self, context: NodeContext, memory: Memory, permits: Permits, registrar: Registrar) -> None:
        self._context = context
        self._memory = memory
        self._permits = permits
        self.registrar = registrar

    def everything(self, known: Namespace, session: str, gate: Gate, between: Callable[[], None]) -> None:
        """Put back runs, locks, keys, steps and permits; `between` renews the session.

        From here on replies to claims of an earlier epoch come too late. In a closed namespace nothing is put back.
        """
        memories = self._memory.recall(known.epoch)
        if known.openness is Openness.CLOSED:
            return
        names = sorted(memories)
        for start in range(0, len(names), PORTION):
            self._runs(names[start : start + PORTION], memories, known.epoch, session, gate)
            between()
        self._effects(session, gate)
        # Last: what was given up while the pass above put it back as held, from an earlier look at the memory.
        self.release(session, gate, between, self._memory.given_up())
        self._permits.put_back(
            session, lambda names, change: self._update_all(Kind.PERMIT, names, change, session, gate)
        )

    def unreleased(self) -> list[LetGo]:
        """Return the locks and keys that this process gave up and the store may still have as held."""
        return self._memory.given_up(unreleased=True)

    def release(self, session: str, gate: Gate, between: Callable[[], None], left: Sequence[LetGo]) -> None:
        """Release locks and keys that this process gave up; `between` renews the session."""
        while left:
            portion: dict[tuple[Kind, str], LetGo] = {}
            for one in left:  # of several acquisitions of one lock, one at a time
                if len(portion) < PORTION:
                    portion.setdefault((one.change.kind, one.change.name), one)
            for kind in {kind for kind, _ in portion}:
                of_kind = {name: one for (of, name), one in portion.items() if of is kind}
                self._update_all(
                    kind, sorted(of_kind), partial(_release, given_up=of_kind), session, gate, partial(_note, of_kind)
                )
            between()
            done = {id(one) for one in portion.values()}
            left = [one for one in left if id(one) not in done]

    def remembers(self, epoch: str) -> bool:
        """Return whether this process remembers anything that could be missing in this epoch."""
        return bool(self._memory.recall(epoch))

    def definitions(self, between: Callable[[], None]) -> None:
        """Write the definitions of this node; `between` renews the session."""
        self.registrar.register(between)

    def write_off(self, known: Namespace, session: str, gate: Gate, between: Callable[[], None]) -> None:
        """Decide what was due when the check began: a node that died during it may have started that already."""

        def change(doc: Job | Absent, now: int) -> Change | None:
            late_for, resolve = self._context.settings.late_for, self._context.resolve
            return write_off(doc, until=known.since, late_for=late_for, now=now, resolve=resolve, pauses=known.pauses)

        for page in iter_job_pages(self._context.store, size=PORTION):
            due = [job.name for job in page if may_have_started(job, known.since)]
            self._update_all(Kind.JOB, due, change, session, gate)
            between()

    def _runs(
        self, names: Sequence[str], memories: Mapping[str, list[Remembered]], epoch: str, session: str, gate: Gate
    ) -> None:
        def change(doc: Job | Absent, now: int) -> Change | None:
            resolve = self._context.resolve
            return rejoin(doc, memories[doc.name], epoch=epoch, session=session, now=now, resolve=resolve)

        self._update_all(Kind.JOB, names, change, session, gate, self._report)

    def _report(self, result: Result) -> None:
        if result.verdict is Verdict.APPLIED:
            self._context.events.emit("put back", job=result.name, node=self._context.settings.node)
        elif result.verdict is Verdict.BLOCKED:
            self._context.events.emit("job blocked", job=result.name, error=result.error)

    def _effects(self, session: str, gate: Gate) -> None:
        """Put back locks, keys and steps."""
        for kind, effects in self._memory.effects().items():
            change = partial(_rejoin_effect, effects=effects, session=session)
            names = sorted(effects)
            for start in range(0, len(names), PORTION):
                self._update_all(kind, names[start : start + PORTION], change, session, gate)

    def _update_all(
        self,
        kind: Kind,
        names: Sequence[str],
        change: ChangeFn,
        session: str,
        gate: Gate,
        each: Callable[[Result], None] | None = None,
    ) -> None:
        """Apply a change to each of these under the gate, and again if another node was faster."""
        if not names:
            return
        applied = update_until_known(
            self._context.store, Named(kind, tuple(names)), change, session=session, gate=gate, each=each
        )
        if applied.shut or not applied.alive:
            raise Overtaken
        left = [result.name for result in applied.results if result.verdict in OPEN_OUTCOMES]
        if left:
            raise StoreUnavailable(
                f"{len(left)} documents of kind {kind} could not be checked, {left[0]} among them; it is tried again"
            )


def _release(doc: SmallDocument | Absent, now: int, *, given_up: Mapping[str, LetGo]) -> Change | None:
    return given_up[doc.name].change(doc, now)


def _note(given_up: Mapping[str, LetGo], result: Result) -> None:
    one = given_up[result.name]
    one.released = one.released or result.verdict is Verdict.APPLIED
    one.answered = True


def _rejoin_effect(
    doc: SmallDocument | Absent, now: int, *, effects: Mapping[str, SmallDocument], session: str
) -> Change | None:
    return rejoin_effect(doc, effects[doc.name], session=session, now=now)
