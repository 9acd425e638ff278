"""A node's client of a simulated key store: the swap family as it is shipped, over messages that may be lost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

from solocron.errors import InvalidError, StoreUnavailable
from solocron.model.change import Kind
from solocron.stores.contract import Applied, Capabilities, ChangeFn, Check, Gate, Named, Tier, Which
from solocron.stores.drafts import Selection
from solocron.stores.swap.key_store import Condition, Found, KeyLimits, KeyStore, Lost, Span, Stale, Swapped
from solocron.stores.swap.store import SwapStore
from solocron.testing.simulation.client import WireClient
from solocron.testing.simulation.kernel import Process, SimEvent
from solocron.testing.simulation.key_database import KeyDatabase
from solocron.testing.simulation.network import Network

__all__ = ["KeyWireStore", "SimKeys"]

_LIMITS = KeyLimits(keys=24, bytes=1_000_000, value=500_000)
"""Few keys, so that batches are often cut and records packed."""


class KeyWireStore(WireClient, SwapStore):
    """The store as one process of the simulated world sees it."""

    rounds = 2  # few, so that the nodes often meet what is contended
    own_errors = (InvalidError,)  # anything else that a change raises is a bug and ends the world
    pruned = 0
    """The instant before which this process removed records last."""

    def __init__(
        self, database: KeyDatabase, process: Process, network: Network, *, timeout: float, rate: float, lease: float
    ) -> None:
        WireClient.__init__(self, database, process, network, timeout=timeout, rate=rate)
        self.boot = lambda: process.kernel.now * rate
        SwapStore.__init__(self, self.make_keys(database), lease=timedelta(seconds=lease))
        self._calls.pause = lambda seconds: SimEvent(process.kernel, rate).wait(seconds)

    def make_keys(self, database: KeyDatabase) -> KeyStore:
        """Return this process's client of the keys."""
        return SimKeys(self, database, self._process.name)

    def open(self, *, read_only: bool = False) -> None:
        """Do nothing: it is always open."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def recall(self, which: Named) -> Selection | None:
        """Recall nothing: clocks whose rates differ by two per cent tell no time without a call."""
        return None

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        sent = self._process.kernel.now
        applied = SwapStore.update(self, which, change, session=session, gate=gate)
        if isinstance(which, Named) and which.kind is Kind.SESSION:
            self._confirm(applied.results, sent)
        for result in applied.results:
            self._database.twice += [(first, first) for first in result.duplicates]
        return applied

    def prune(self, before: int, limit: int) -> int:
        self.pruned = before
        return SwapStore.prune(self, before, limit)

    def call(self, serve: Callable[[Callable[[Any], None]], None], what: str) -> Any:
        """Make one round trip."""
        return self._call(serve, what)

    def conflicts(self) -> bool:
        """Return whether the server settles a conflict against this client although no check is stale."""
        return self._network.serialization_fails()


class SimKeys:
    """The key store of one process."""

    limits = _LIMITS
    url = "simulated://keys"
    capabilities = Capabilities(tier=Tier.A, why="simulated", notifies=True)

    def __init__(self, wire: KeyWireStore, database: KeyDatabase, client: str) -> None:
        self._wire = wire
        self._database = database
        self._client = client
        self._told = 0

    def open(self) -> None:
        """Do nothing: it is always open."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def fetch(self, keys: Sequence[str], spans: Sequence[Span] = ()) -> Found:
        database = self._database
        found, self._told = self._wire.call(
            lambda reply: reply((database.world.fetch(keys, spans), database.tell_time())), "fetch"
        )
        return found  # type: ignore[no-any-return]

    def commit(
        self,
        checks: Mapping[str, Condition],
        writes: Mapping[str, str | None],
        *,
        look: str | None = None,
        also: str | None = None,
        server: str | None = None,
    ) -> Swapped | Stale:
        if self._wire.conflicts():
            return Stale()
        once: list[tuple[Swapped | Stale, int]] = []
        decided, pruned = self._told, self._wire.pruned

        def serve(reply: Callable[[Any], None]) -> None:
            if not once:  # a repeated request is recognised and gets the first reply
                made = self._database.commit_keys(
                    self._client, checks, writes, look=look, also=also, decided=decided, pruned=pruned
                )
                once.append((made, self._database.tell_time()))
            reply(once[0])

        try:
            made, self._told = self._wire.call(serve, "commit")
        except StoreUnavailable as error:
            raise Lost(str(error)) from error
        return made  # type: ignore[no-any-return]

    def now(self) -> int:
        return self._told

    def sharpen(self, within: int) -> None:
        """Do nothing: the time is that of the last reply."""

    def ask_time(self) -> str:
        told = self._wire.call(lambda reply: reply((self._database.identity, self._database.tell_time())), "clock")
        server, self._told = told
        return server  # type: ignore[no-any-return]

    def position(self) -> Any:
        return None

    def wait(self, after: Any, timeout: float) -> tuple[Any, Sequence[str | None]]:
        raise AssertionError("the simulated store is woken by messages")

    def checks(self) -> Sequence[Check]:
        return ()

    def namespaces(self) -> Collection[str]:
        return ("default",)
