"""A simulated folder of objects, and a node's client of it: the commit chain as it is shipped, over lossy messages.

The objects are the truth. A commit counts from the creation of the next number on; one that is created under a number
that was deleted changes nothing that another client will ever see, whatever its maker believes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from solocron.errors import StoreUnavailable
from solocron.model.documents.run import Record
from solocron.stores.contract import Capabilities, Check, Doc, Tier
from solocron.stores.drafts import kind_and_name
from solocron.stores.swap.chain.keys import ChainKeys
from solocron.stores.swap.chain.state import ChainPace
from solocron.stores.swap.chain.text import ChainCommit, commit_name, number_of
from solocron.stores.swap.key_store import KeyLimits, KeyStore, Lost
from solocron.stores.swap.layout import changed, derived, document_key, fixed_key
from solocron.stores.swap.portions import records_in
from solocron.testing.simulation.kernel import Kernel, SimEvent, SimTurns
from solocron.testing.simulation.key_database import KeyDatabase
from solocron.testing.simulation.key_wire import KeyWireStore

__all__ = ["ChainDatabase", "ChainWireStore", "SimObjects"]

_LIMITS = KeyLimits(keys=24, bytes=1_000_000, value=500_000)
"""Few keys, so that batches are often cut and records packed."""
_COMMITS = 4
"""Commits from one root to the next: a world makes hundreds of them."""


class ChainDatabase(KeyDatabase):
    """The one store of a world, as objects."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.objects: dict[str, bytes] = {"identity": self.identity.encode()}
        self.head = 0
        self.deleted = 0
        """Number of commits that were deleted."""
        self.ghosts = 0
        """Number of commits that were created under a deleted number."""

    def put(self, doc: Doc) -> None:
        """Write a document directly, bypassing every client."""
        super().put(doc)
        kind, name = kind_and_name(doc)
        keys = (document_key(kind, name), fixed_key(kind, name))
        writes = {key: self.world.items[key].value for key in keys if key in self.world.items}
        self.head += 1
        self.objects[f"d/default/{commit_name(self.head)}"] = ChainCommit("put", writes).to_bytes()

    def create(self, client: str, name: str, content: bytes, decided: int, pruned: int) -> bool:
        """Create an object; show the checkers the commit, if it is the next one."""
        if name in self.objects:
            return False
        self.objects[name] = content
        if "/c/" in name:
            number = number_of(name)
            if number != self.head + 1:
                self.ghosts += 1
                return True
            self.head = number
            self._make_visible(client, ChainCommit.of(content), decided, pruned)
        return True

    def _make_visible(self, client: str, commit: ChainCommit, decided: int, pruned: int) -> None:
        writes = dict(commit.writes)
        for key, value in commit.writes.items():
            old = self.world.items.get(key)
            writes |= changed(
                {} if old is None else derived(key, old.value), {} if value is None else derived(key, value)
            )
        self.commit_keys(client, {}, writes, look=None, also=None, decided=decided, pruned=pruned)

    def _appended(self, old: Mapping[str, str], writes: Mapping[str, str | None]) -> list[Record]:
        """Return the records that this commit appends; it may also unpack others, for another thread of its client."""
        parcels = {key for key in old if key.startswith("parcel/")}
        packed = {key for parcel in parcels for key in records_in(old[parcel])}
        assert not packed & old.keys(), "I6: a record is overwritten by an unpacked one"
        own = {key: value for key, value in writes.items() if key not in packed and key not in parcels}
        return super()._appended(old, own)

    def delete(self, name: str) -> None:
        if self.objects.pop(name, None) is not None and "/c/" in name:
            self.deleted += 1


class ChainWireStore(KeyWireStore):
    """The store as one process of the simulated world sees it."""

    def make_keys(self, database: KeyDatabase) -> KeyStore:
        assert isinstance(database, ChainDatabase)
        process, rate = self._process, self._rate
        # No call lasts longer than a quarter of the lease, unless its process was frozen: that is what has to be found.
        pace = ChainPace(commits=_COMMITS, kept=3 * self._timeout, trusted=self._timeout)

        def pause(most: float) -> None:
            SimEvent(process.kernel, rate).wait(process.kernel.dice.uniform(most / 2, most))

        return ChainKeys(
            SimObjects(self, database, process.name),
            pace=pace,
            boot=self.boot,
            pause=pause,
            turns=lambda: SimTurns(process.kernel, rate),
            aside=lambda body: process.spawn(body, f"{process.name} chain"),
        )

    def close(self) -> None:
        """Wait for the root that is being made."""
        self._keys.close()


class SimObjects:
    """The objects as one process sees them."""

    limits = _LIMITS
    url = "simulated://chain"
    capabilities = Capabilities(tier=Tier.A, why="simulated", notifies=True)

    def __init__(self, wire: KeyWireStore, database: ChainDatabase, client: str) -> None:
        self._wire = wire
        self._database = database
        self._client = client
        self._told = 0

    def open(self) -> None:
        """Do nothing: it is always open."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def create(self, name: str, content: bytes) -> bool:
        if self._wire.conflicts():
            raise Lost("the service was busy, and says no more")
        decided, pruned = self._told, self._wire.pruned
        try:
            return self._call(lambda: self._database.create(self._client, name, content, decided, pruned), "commit")  # type: ignore[no-any-return]
        except StoreUnavailable as error:
            raise Lost(str(error)) from error

    def get(self, name: str) -> bytes | None:
        return self._call(lambda: self._database.objects.get(name), "fetch")  # type: ignore[no-any-return]

    def names(self, prefix: str, limit: int) -> Sequence[str]:
        objects = self._database.objects
        return self._call(lambda: sorted(name for name in objects if name.startswith(prefix))[:limit], "list")  # type: ignore[no-any-return]

    def delete(self, name: str) -> None:
        self._call(lambda: self._database.delete(name), "delete")

    def _call(self, act: Callable[[], Any], what: str) -> Any:
        """Make one round trip whose reply tells the time."""
        found, told = self._wire.call(lambda reply: reply((act(), self._database.tell_time())), what)
        self._told = max(self._told, told)
        return found

    def now(self) -> int:
        return self._told

    def sharpen(self, within: int) -> None:
        """Do nothing: the time is that of the last reply."""

    def checks(self) -> Sequence[Check]:
        return ()
