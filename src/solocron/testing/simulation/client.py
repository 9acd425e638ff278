"""A process's way to the simulated store: calls over a network that delays, loses, repeats and reorders.

Silence is unknown, never no. A request that was sent may be applied at any later time, whatever its sender believes by
then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from solocron.errors import StoreUnavailable
from solocron.model.documents.session import Life, Session
from solocron.stores.contract import Result, Verdict
from solocron.testing.simulation.database import Database
from solocron.testing.simulation.kernel import Process, SimEvent
from solocron.testing.simulation.network import Network

__all__ = ["WireClient"]


class WireClient:
    """The calls of one process, and what it was told of its renewals."""

    statements: Counter[str]

    def __init__(self, database: Database, process: Process, network: Network, *, timeout: float, rate: float) -> None:
        self.last_confirmed: dict[str, float] = {}
        """Per session, when its last renewal that was replied to in time had been sent."""
        self._database = database
        self._process = process
        self._network = network
        self._timeout = timeout
        self._rate = rate
        self._news = SimEvent(process.kernel, rate)
        database.on_wake[process.name] = self._wake

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

    def _confirm(self, results: Sequence[Result], sent: float) -> None:
        for result in results:
            doc = result.doc
            if result.verdict is not Verdict.APPLIED or not isinstance(doc, Session) or doc.state is not Life.LIVE:
                continue
            last = self.last_confirmed.get(doc.name, sent)
            # A reply that came after the lease was over confirms nothing: lost is final.
            if (self._process.kernel.now - last) * self._rate <= doc.lease / 1_000_000:
                self.last_confirmed[doc.name] = sent

    def _send(self, action: Callable[[], None]) -> None:
        for delay in self._network.request(self._process.name):
            self._process.kernel.after(delay, action)

    def signal(self) -> None:
        self._send(self._database.wake)

    def wait(self, timeout: float) -> bool:
        woken = self._news.wait(timeout)
        self._news.clear()
        return woken
