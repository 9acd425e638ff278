"""MongoDB as a key store: a commit is one transaction on one collection, marks are words that each commit makes anew.

A key is a document {_id, v, m}: namespace and key, value, mark. **Transactions of MongoDB are isolated as snapshots, in
which two may each read what the other writes.** A check that only reads would let a claim and the burial of its session
both commit, so every key that is checked is written too, and then one of the two is refused.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pymongo import DeleteOne, InsertOne, ReplaceOne, UpdateOne
from pymongo.errors import BulkWriteError, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from solocron.clock import MILLISECOND
from solocron.errors import StoreRefused, StoreUnavailable
from solocron.stores.contract import Capabilities, Check
from solocron.stores.swap.key_store import (
    ABSENT,
    EXISTS,
    Condition,
    Found,
    Item,
    KeyLimits,
    Lost,
    Span,
    Stale,
    Swapped,
    holds,
)
from solocron.stores.swap.layout import NOTIFY
from solocron.stores.swap.mongodb.address import MongoAddress
from solocron.stores.swap.mongodb.checks import MongoFacts, ask_facts, capabilities_of, checks_of
from solocron.stores.swap.mongodb.link import MongoConflict, MongoLink
from solocron.stores.swap.mongodb.stream import MongoStream

__all__ = ["MongoKeys"]

_LIMITS = KeyLimits(keys=150, bytes=8_000_000, value=1_000_000)
_BLUNT = 20 * MILLISECOND
"""Doubt about the time from which on a read asks for it."""
_AGAIN = 0.02
"""Seconds between two questions for the outcome of a commit."""
_DUPLICATE, _CONFLICT = 11000, 112
_IDENTITY, _NAMESPACES = "/identity", "/namespace/"


class _Stale(Exception):
    """A check did not hold, as the transaction saw it."""


class MongoKeys:
    """One client of a namespace of keys."""

    limits = _LIMITS

    def __init__(self, address: MongoAddress, namespace: str) -> None:
        self._address = address
        self._prefix = f"{namespace}/"
        self._link = MongoLink(address)
        self._stream = MongoStream(self._link, f"{self._prefix}{NOTIFY}")
        self._facts: MongoFacts | None = None
        self._server = ""
        self._made = False

    @property
    def url(self) -> str:
        return self._link.url

    @property
    def capabilities(self) -> Capabilities:
        return capabilities_of(self._facts)

    def open(self) -> None:
        self._stream.open()
        self._facts = ask_facts(self._link)
        self._look()

    def close(self) -> None:
        self._stream.close()
        self._link.close()

    # --- what is about the collection

    def _look(self) -> str:
        """Return the identity of the collection, if a client has written it."""
        if not self._server:
            wanted = [_IDENTITY, f"{_NAMESPACES}{self._prefix}"]
            found = self._link.read(lambda: list(self._link.collection.find({"_id": {"$in": wanted}})))
            values = {one["_id"]: one["v"] for one in found}
            if _IDENTITY in values:
                self._server = f"mongodb.{values[_IDENTITY]}"
                self._made = len(values) == len(wanted)
        return self._server

    def _make(self) -> str:
        """Write the identity and the name of the namespace where they are missing; return the identity."""
        if not self._made:
            for key, value in ((_IDENTITY, secrets.token_hex(8)), (f"{_NAMESPACES}{self._prefix}", "")):
                wish = {"$setOnInsert": {"v": value, "m": "1"}}
                self._link.read(lambda key=key, wish=wish: self._once(key, wish))  # type: ignore[misc]
            self._made = True
        return self._look()

    def _once(self, key: str, wish: Mapping[str, Any]) -> None:
        try:
            self._link.collection.update_one({"_id": key}, wish, upsert=True)
        except PyMongoError as error:
            if getattr(error, "code", None) != _DUPLICATE:  # two at the same time: one of them made it
                raise

    # --- reading

    def fetch(self, keys: Sequence[str], spans: Sequence[Span] = ()) -> Found:
        items: dict[str, Item] = {}
        if keys:
            wanted = {"_id": {"$in": [f"{self._prefix}{key}" for key in keys if key.encode() is not None]}}
            found = self._link.read(lambda: list(self._link.collection.find(wanted)))
            items = {item.key: item for item in map(self._item, found)}
        pages = [self._page(span) for span in spans]
        if not self._link.time.is_known or self._link.time.width > _BLUNT:
            self._link.hello()
        return Found(items, pages, self._look())

    def _page(self, span: Span) -> list[Item]:
        if span.low >= span.high or span.limit == 0:
            return []
        wanted = {"_id": {"$gte": f"{self._prefix}{span.low}", "$lt": f"{self._prefix}{span.high}"}}
        shown = {"v": 0} if span.bare else None
        order = [("_id", -1 if span.reverse else 1)]
        found = self._link.read(
            lambda: list(self._link.collection.find(wanted, shown, sort=order, limit=span.limit or 0))
        )
        return [self._item(one) for one in found]

    def _item(self, found: Mapping[str, Any]) -> Item:
        return Item(found["_id"].removeprefix(self._prefix), found.get("v", ""), found["m"])

    # --- writing

    def commit(
        self,
        checks: Mapping[str, Condition],
        writes: Mapping[str, str | None],
        *,
        look: str | None = None,
        also: str | None = None,
        server: str | None = None,
    ) -> Swapped | Stale:
        identity = self._make()
        if server is not None and identity != server:
            return Stale(frozenset(), moved=True)
        mark = secrets.token_hex(12)
        compared, free = self._operations(checks, writes, mark)
        until = time.monotonic() + self._address.timeout
        pause = 0.002
        while True:
            try:
                if compared or free:
                    self._transact(compared, free, until)
                return Swapped({key: mark for key, value in writes.items() if value is not None})
            except _Stale:
                stale = self._stale(checks)
                if stale:
                    return Stale(stale)
            except MongoConflict:
                pass  # with a transaction that may be about other keys: only the next try tells
            if time.monotonic() + pause > until:
                raise StoreUnavailable(
                    f"{self.url} has too many commits under way on the same keys; nothing was written."
                )
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter
            pause = min(pause * 2, 0.1)

    def _operations(
        self, checks: Mapping[str, Condition], writes: Mapping[str, str | None], mark: str
    ) -> tuple[list[Any], list[Any]]:
        """Return the operations that each have to find their key as it is expected, and those that do not care."""
        compared: list[Any] = []
        free: list[Any] = []
        for key in [*writes, *(key for key in checks if key not in writes)]:
            name = f"{self._prefix}{key}"
            name.encode()
            condition, value = checks.get(key), writes.get(key)
            document = {"_id": name, "v": value, "m": mark}
            wanted: dict[str, Any] = {"_id": name}
            if condition not in (None, ABSENT, EXISTS):
                wanted["m"] = condition
            if condition is ABSENT:
                compared.append(InsertOne(document))
                if value is None:  # only a creation proves that it is not there
                    free.append(DeleteOne({"_id": name}))
            elif condition is None:
                free.append(DeleteOne(wanted) if value is None else ReplaceOne(wanted, document, upsert=True))
            elif key not in writes:
                compared.append(UpdateOne(wanted, {"$set": {"w": mark}}))
            else:
                compared.append(DeleteOne(wanted) if value is None else ReplaceOne(wanted, document))
        return compared, free

    def _transact(self, compared: Sequence[Any], free: Sequence[Any], until: float) -> None:
        collection = self._link.collection
        if len(compared) + len(free) == 1:
            # A single document is atomic by itself, and is on the disks of a majority as well.
            with self._link.errors():
                self._apply(collection, compared, free, None)
            return
        lasts = max(int(self._address.timeout * 1_000), 1)
        with self._link.session() as session:
            try:
                with self._link.errors():
                    session.start_transaction(ReadConcern("snapshot"), WriteConcern("majority", j=True, wtimeout=lasts))
                    self._apply(collection, compared, free, session)
            except Lost as error:
                # Without its commit, which was not sent, a transaction does nothing.
                raise StoreUnavailable(f"{self.url} did not reply: {error}; nothing was written.") from None
            self._end(session, until)

    def _end(self, session: Any, until: float) -> None:
        """Commit; ask for the same commit again while its outcome is unknown: it is made once."""
        lost: Lost | None = None
        while True:
            try:
                with self._link.errors():
                    session.commit_transaction()
                return
            except Lost as error:
                lost = error
            except (StoreUnavailable, StoreRefused):
                # Of this try alone it is certain that it did nothing. One before it may have arrived.
                if lost is None:
                    raise
            if time.monotonic() > until:
                raise lost
            time.sleep(_AGAIN)  # a driver without a server fails at once

    def _apply(self, collection: Any, compared: Sequence[Any], free: Sequence[Any], session: Any) -> None:
        """Make the operations; raise `_Stale` unless each that compares has found its key."""
        try:
            if compared:
                done = collection.bulk_write(list(compared), session=session)
                if done.inserted_count + done.matched_count + done.deleted_count != len(compared):
                    raise _Stale
            if free:
                collection.bulk_write(list(free), session=session)
        except BulkWriteError as error:
            codes = {one.get("code") for one in error.details.get("writeErrors", ())}
            if _DUPLICATE in codes:
                raise _Stale from None
            if _CONFLICT in codes:
                raise MongoConflict from None
            raise

    def _stale(self, checks: Mapping[str, Condition]) -> frozenset[str]:
        """Return the checks that do not hold now; none where a transaction was refused for an earlier moment."""
        marks = {item.key: item.mark for item in self.fetch(list(checks)).items.values()}
        return frozenset(key for key, condition in checks.items() if not holds(condition, marks.get(key)))

    # --- time, notifications, looking after

    def now(self) -> int:
        return self._link.time.now() if self._link.time.is_known else 0

    def ask_time(self) -> str:
        self._link.hello()
        return self._make()

    def sharpen(self, within: int) -> None:
        """Ask once if the last reply is too old: MongoDB tells milliseconds."""
        if not self._link.time.is_known or self._link.time.width > within:
            self._link.hello()

    def position(self) -> Any:
        return self._stream.position()

    def wait(self, after: Any, timeout: float) -> tuple[Any, Sequence[str | None]]:
        return self._stream.wait(after, timeout)

    def checks(self) -> Sequence[Check]:
        return list(checks_of(ask_facts(self._link), self._link))

    def namespaces(self) -> Collection[str]:
        span = {"_id": {"$gte": _NAMESPACES, "$lt": f"{_NAMESPACES[:-1]}0"}}
        found = self._link.read(lambda: list(self._link.collection.find(span)))
        return [one["_id"].removeprefix(_NAMESPACES).rstrip("/") for one in found]
