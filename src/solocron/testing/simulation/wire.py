"""A node's client of the simulated store: the store contract over a network that delays, loses, repeats and reorders.

An `update` is three legs: select, change, commit. Silence is unknown, never no. A request that was sent may be
applied at any later time, whatever its sender believes by then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from solocron.errors import InvalidError, StoreUnavailable
from solocron.model.change import Absent, Kind, SmallDocument
from solocron.model.documents.job import Job
from solocron.model.documents.session import Life, Session
from solocron.stores.contract import (
    All,
    Applied,
    Blocked,
    Capabilities,
    ChangeFn,
    Check,
    Doc,
    Due,
    Gate,
    HeldBy,
    HeldByAny,
    Named,
    Page,
    Query,
    Result,
    Tier,
    Verdict,
    Which,
)
from solocron.stores.log import page_within
from solocron.testing.simulation.commits import SimOutcome
from solocron.testing.simulation.database import Database, SimSelection, Write
from solocron.testing.simulation.kernel import Process, SimEvent
from solocron.testing.simulation.network import Network

__all__ = ["WireStore"]


class WireStore:
    """The store as one process of the simulated world sees it."""

    def __init__(self, database: Database, process: Process, network: Network, *, timeout: float, rate: float) -> None:
        self.statements: Counter[str] = Counter()
        self.url = "simulated://"
        self.namespace = "default"
        self.capabilities = Capabilities(tier=Tier.A, why="simulated", notifies=True)
        self.last_confirmed: dict[str, float] = {}
        """Per session, when its last renewal that was replied to in time had been sent."""
        self._database = database
        self._process = process
        self._network = network
        self._timeout = timeout
        self._rate = rate
        self._news = SimEvent(process.kernel, rate)
        database.on_wake[process.name] = self._wake

    # --- the network ---------------------------------------------------------------------------------------------

    def _call(self, serve: Callable[[Callable[[Any], None]], None], what: str) -> Any:
        """Make one round trip; raise if there was no reply in time."""
        process, network, database = self._process, self._network, self._database
        kernel, task = process.kernel, process.kernel.current
        assert task is not None
        self.statements[what] += 1
        box: list[Any] = []
        turn = task.turn
        patience = self._timeout / self._rate
        deadline = kernel.now + patience
        due, expected = deadline - process.slept, False
        scripted = network.scripted(process.name, what)

        def arrive(value: Any) -> None:
            if not box:
                box.append(value)
                process.resume(task, None, turn)

        def reply(value: Any) -> None:
            nonlocal expected
            if network.reply_passes(process.name) if scripted is None else scripted[1]:
                delay = network.delay()
                kernel.after(delay, arrive, value)
                expected = expected or kernel.now + delay < deadline

        def deliver() -> None:
            if database.up:
                serve(reply)
            if not expected:
                give_up_in_time()

        def give_up_in_time() -> None:
            kernel.at(deadline, process.time_out, task, turn, due)

        if scripted is None:
            trip = network.request(process.name)
        else:
            trip = [] if scripted[0] is None else [scripted[0]]
        for delay in trip:
            kernel.after(delay, deliver)
        # A timer only if the reply may be late: a call that is replied to in time costs two messages.
        if not trip or trip[0] >= patience:
            give_up_in_time()
        kernel.pause_current()
        if not box:
            raise StoreUnavailable(f"the store did not answer ({what})")
        return box[0]

    def _wake(self) -> None:
        if not self._process.alive:
            self._database.on_wake.pop(self._process.name, None)
        elif self._network.reply_passes(self._process.name):
            self._process.kernel.after(self._network.delay(), self._news.set)

    # --- the contract --------------------------------------------------------------------------------------------

    def open(self, *, read_only: bool = False) -> None:
        """Do nothing: it is always open."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def clock(self) -> int:
        now: int = self._call(lambda reply: reply(self._database.clock()), "clock")
        return now

    def read(self, which: Which) -> tuple[Doc, ...]:
        age = self._network.staleness()
        return tuple(self._call(lambda reply: reply(self._database.read(which, age=age)), "read"))

    def holders(self) -> frozenset[str]:
        found: frozenset[str] = self._call(lambda reply: reply(self._database.holders()), "holders")
        return found

    def identity(self) -> str:
        told: str = self._call(lambda reply: reply(self._database.identity), "identity")
        return told

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        sent, label = self._process.kernel.now, _label(which)
        chosen: SimSelection = self._call(
            lambda reply: self._database.select(self._process.name, which, reply, lock=True), f"select {label}"
        )
        results: dict[str, Result] = {}
        writes: list[Write] = []
        for doc, version in chosen.docs:
            made, result = self._change(doc, version, change, chosen)
            results[doc.name] = result
            if made is not None:
                writes.append(made)
        if not writes:
            if chosen.locked:
                self._send(lambda: self._database.rollback(chosen))
            return self._applied(chosen, results)
        serialization = self._network.serialization_fails()
        if serialization:
            self._send(lambda: self._database.rollback(chosen))
            for write in writes:
                results[write.name] = Result(write.name, Verdict.CONTENDED, write.before)
            return self._applied(chosen, results)
        once: list[SimOutcome] = []

        def serve(reply: Callable[[SimOutcome], None]) -> None:
            # A repeated request is recognised and gets the first reply.
            if not once:
                once.append(self._database.commit(chosen, writes, session, gate))
            reply(once[0])

        try:
            outcome: SimOutcome = self._call(serve, f"commit {label}")
        except StoreUnavailable:
            for write in writes:
                results[write.name] = Result(write.name, Verdict.UNKNOWN, write.before)
            return self._applied(chosen, results)
        if not outcome.alive or outcome.shut:
            return Applied(results=(), now=chosen.now, alive=outcome.alive, shut=outcome.shut)
        for write in writes:
            if not outcome.applied[write.name]:
                results[write.name] = Result(write.name, Verdict.CONTENDED, write.before)
            elif write.name in outcome.duplicates:
                results[write.name] = replace(results[write.name], duplicates=outcome.duplicates[write.name])
        self._confirm(which, results, sent)
        return self._applied(chosen, results, outcome)

    def _change(
        self, doc: Doc | Absent, version: int, change: ChangeFn, chosen: SimSelection
    ) -> tuple[Write | None, Result]:
        try:
            made = change(doc, chosen.now)
        except InvalidError as error:  # a document that cannot be read; anything else is a bug and ends the world
            kind, why = Kind.JOB if isinstance(doc, Job) else Kind.SESSION, str(error)
            self._send(lambda: self._database.set_aside(kind, doc.name, why))
            return None, Result(doc.name, Verdict.BLOCKED, doc, error=why)
        if made is None:
            return None, Result(doc.name, Verdict.DECLINED, doc)
        result = Result(doc.name, Verdict.APPLIED, made.doc, made.answer)
        if made.doc is doc and not made.records:
            return None, result
        kind = (
            doc.kind if isinstance(doc, Absent | SmallDocument) else Kind.JOB if isinstance(doc, Job) else Kind.SESSION
        )
        return Write(kind, doc.name, doc, version, made.doc, made.records, chosen.now, chosen.at), result

    def _applied(self, chosen: SimSelection, results: dict[str, Result], told: SimOutcome | None = None) -> Applied:
        ordered = tuple(results[doc.name] for doc, _ in chosen.docs)
        holds, gate = (None, None) if told is None else (told.holds, told.gate)
        return Applied(results=ordered, now=chosen.now, next_due=chosen.next_due, holds=holds, gate=gate)

    def _confirm(self, which: Which, results: dict[str, Result], sent: float) -> None:
        if isinstance(which, Named) and which.kind is Kind.SESSION:
            for name, result in results.items():
                doc = result.doc
                if result.verdict is not Verdict.APPLIED or not isinstance(doc, Session) or doc.state is not Life.LIVE:
                    continue
                last = self.last_confirmed.get(name, sent)
                # A reply that came after the lease was over confirms nothing: lost is final.
                if (self._process.kernel.now - last) * self._rate <= doc.lease / 1_000_000:
                    self.last_confirmed[name] = sent

    def _send(self, action: Callable[[], None]) -> None:
        for delay in self._network.request(self._process.name):
            self._process.kernel.after(delay, action)

    def names(self, kind: Kind, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        return tuple(doc.name for doc in self.read(All(kind, after, limit)))

    def history(self, query: Query) -> Page:
        page: Page = self._call(lambda reply: reply(page_within(query, self._database.log.values())), "history")
        return page

    def tally(self, since: int) -> Mapping[str, int]:
        counts: Counter[str] = Counter()
        for record in self._database.log.values():
            if record.recorded_at >= since:
                counts[record.status] += record.count
        return counts

    def prune(self, before: int, limit: int) -> int:
        removed: int = self._call(lambda reply: reply(self._database.prune(before, limit)), "prune")
        return removed

    def blocked(self) -> Sequence[Blocked]:
        now = self._database.clock()
        return [aside for aside in self._database.aside.values() if aside.until > now]

    def unblock(self, kind: Kind, name: str) -> bool:
        return self._database.aside.pop((kind, name), None) is not None

    def signal(self) -> None:
        self._send(self._database.wake)

    def wait(self, timeout: float) -> bool:
        woken = self._news.wait(timeout)
        self._news.clear()
        return woken

    def checks(self) -> Sequence[Check]:
        return ()

    def shift_clock(self, by: int) -> None:
        self._database.step += by / 1_000_000


def _label(which: Which) -> str:
    """Return what an update is about, as statements are counted and scripted: claim, job, session, held, ..."""
    match which:
        case Due():
            return "claim"
        case HeldBy() | HeldByAny():
            return "held"
        case Named(kind=kind) | All(kind=kind):
            return str(kind)
