"""The simulated store as a map of ordered keys: the swap family's own code runs on it, and its commits are observed.

The keys are the truth. The documents and the log that checkers look at are read off each commit as it is made, so that
a commit which forgets an index key, or writes half of a change, shows.
"""

from __future__ import annotations

from collections.abc import Mapping

from solocron.model.change import Absent, Kind
from solocron.model.codec import decode, encode_fixed, encode_state
from solocron.model.documents.run import Record
from solocron.stores.contract import Doc
from solocron.stores.drafts import kind_and_name
from solocron.stores.swap.key_store import Condition, Stale, Swapped
from solocron.stores.swap.layout import (
    NOTIFY,
    Header,
    blocked_in,
    changed,
    document_key,
    fixed_key,
    header_of,
    packed,
    record_at,
    unpacked,
)
from solocron.stores.swap.memory import KeyWorld
from solocron.stores.swap.portions import records_in
from solocron.testing.simulation.commits import Commit, LogKey
from solocron.testing.simulation.database import Database
from solocron.testing.simulation.kernel import Kernel

__all__ = ["KeyDatabase"]

_MOMENTS = 20_000


class KeyDatabase(Database):
    """The one store of a world, on keys. It never goes back."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel, locking=False, idle_timeout=0.0)
        self.world = KeyWorld()
        self.world.identity = self.identity
        self._moments: dict[int, float] = {}
        """The moment of the world at which the store's clock told a time."""

    def tell_time(self) -> int:
        """Return the store's time, as a reply tells it."""
        now = self.clock()
        self._moments[now] = self.kernel.now
        if len(self._moments) > _MOMENTS:
            for old in list(self._moments)[: _MOMENTS // 2]:
                del self._moments[old]
        return now

    def put(self, doc: Doc) -> None:
        """Write a document directly, bypassing every client."""
        super().put(doc)
        kind, name = kind_and_name(doc)
        fixed, old = encode_fixed(doc), self.world.items.get(document_key(kind, name))
        before = None if old is None else header_of(old.value)
        header = Header.of(doc, fixed)
        writes = changed({} if before is None else before.index(kind, name), header.index(kind, name))
        if header.digest:
            writes[fixed_key(kind, name)] = fixed
        self.world.commit({}, writes | {document_key(kind, name): packed(header, fixed, encode_state(doc))})

    def commit_keys(
        self,
        client: str,
        checks: Mapping[str, Condition],
        writes: Mapping[str, str | None],
        *,
        look: str | None,
        also: str | None,
        decided: int,
        pruned: int,
    ) -> Swapped | Stale:
        """Commit, and show the checkers every document that was written. `decided`: the time that the client knew."""
        old = {key: self.world.items[key].value for key in writes if key in self.world.items}
        reply = self.world.commit(checks, writes, look, also)
        if isinstance(reply, Stale):
            return reply
        self._observe_asides(writes)
        self._observe_removed(old, writes, pruned)
        records = self._appended(old, writes)
        for key in [key for key in writes if key.startswith("d/")]:
            self._observe(client, key, writes[key], old.get(key), records, decided)
        assert not records, f"I6: records without a document: {records}"
        if NOTIFY in writes:
            self.wake()
        return reply

    def _appended(self, old: Mapping[str, str], writes: Mapping[str, str | None]) -> list[Record]:
        """Return the records that this commit appends: those of its own keys and of its parcels, not unpacked ones."""
        found: list[Record] = []
        unpacks = any(key.startswith("parcel/") and key in old for key in writes)
        for key, value in writes.items():
            if value is None:
                continue
            if key.startswith("run/"):
                record = record_at(key, value)
                assert key not in old, f"I6: a record is overwritten: {record}"
                if not unpacks:
                    found.append(record)
            elif key.startswith("parcel/") and key not in old:
                found += records_in(value).values()
        return found

    def _observe(
        self, client: str, key: str, value: str | None, old: str | None, records: list[Record], decided: int
    ) -> None:
        _, word, name = key.split("/", 2)
        kind = Kind(word)
        known = self.docs.get((kind, name))
        before: Doc | Absent = Absent(kind, name) if known is None else known[0]
        header = None
        new: Doc | None = None
        if value is not None:
            header, fixed, state = unpacked(value)
            assert header is not None
            self._check_index(kind, name, header, None if old is None else header_of(old))
            if header.digest:
                fixed = self.world.items[fixed_key(kind, name)].value
            new = decode(kind, name, fixed, state)
            if known is not None and new == known[0]:
                new = known[0]  # the very object, as from a change that leaves the document alone
        own = [one for one in records if kind is Kind.JOB and one.job == name]
        for one in own:
            records.remove(one)
        if new is before and not own:
            return
        decided = header.time if header is not None and header.time else decided
        commit = Commit(
            self.kernel.now, self.clock(), client, kind, name, before, new, tuple(own), decided,
            self._moments.get(decided, self.kernel.now),
        )  # fmt: skip
        self._append(name, own, {})
        if new is not before:
            self._version += 1
            self._put((kind, name), new, self._version)
        self.commits.append(commit)
        for observer in self.on_commit:
            observer(commit)

    def _check_index(self, kind: Kind, name: str, header: Header, before: Header | None) -> None:
        """A document is found by its index keys, and by none that it had before."""
        wanted = header.index(kind, name)
        missing = [key for key in wanted if key not in self.world.items]
        left = [key for key in (before.index(kind, name) if before else ()) if key not in wanted]
        assert not missing, f"I5: {kind} {name} is not found by {missing}"
        assert not [key for key in left if key in self.world.items], f"I5: {kind} {name} is still found by {left}"

    def _observe_asides(self, writes: Mapping[str, str | None]) -> None:
        for key, value in writes.items():
            if key.startswith("aside/"):
                _, kind, name = key.split("/", 2)
                self.aside.pop((Kind(kind), name), None)
                if value is not None:
                    self.aside[Kind(kind), name] = blocked_in(key, value)

    def _observe_removed(self, old: Mapping[str, str], writes: Mapping[str, str | None], before: int) -> None:
        for key, value in writes.items():
            if key.startswith("run/") and value is None and key in old:
                record = record_at(key, old[key])
                place: LogKey = (record.run, record.attempt)
                self.log.pop(place, None)
                for observer in self.on_prune:
                    observer(record, before)
