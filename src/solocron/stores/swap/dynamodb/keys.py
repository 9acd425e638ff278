"""DynamoDB as a key store: a commit is one TransactWriteItems, marks are words that each commit makes anew.

A table has items (p, s, v, m): partition, key, value, mark. A partition is a namespace and a shelf of it, because all
writes to one partition together may be only so many a second. There is no secondary index: those are behind.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import partial
from heapq import merge
from itertools import islice
from typing import Any
from zlib import crc32

from solocron.errors import StoreError, StoreUnavailable
from solocron.stores.contract import Capabilities, Check
from solocron.stores.swap.dynamodb.address import DynamoAddress
from solocron.stores.swap.dynamodb.checks import DynamoFacts, ask_facts, capabilities_of, checks_of
from solocron.stores.swap.dynamodb.link import DynamoCancelled, DynamoLink
from solocron.stores.swap.key_store import ABSENT, EXISTS, Condition, Found, Item, KeyLimits, Lost, Span, Stale, Swapped
from solocron.stores.swap.layout import NOTIFY
from solocron.stores.swap.server_time import Sharpener

__all__ = ["DynamoKeys"]

_LIMITS = KeyLimits(keys=100, bytes=3_500_000, value=380_000)
_AT_ONCE = 100
"""Keys of one BatchGetItem."""
_SHELVES = (
    *("aside/", "d/job/", "d/session/", "d/", "dead/", "due/", "f/", "held/", "live/", "log/", "mark/", "parcel/"),
    *("run/", "st/", "swept/"),
)
_BOX, _BOXES = "notify/", 16
"""The partition of notifications, and how many are in it: each client writes to one of them."""
_LOOK = 1.0
"""Seconds between two looks at the notifications while a thread waits for them."""
_ABOUT = "solocron"
"""The partition of what is about the table: its identity, and the namespaces in it."""


class DynamoKeys:
    """One client of a namespace of keys."""

    limits = _LIMITS

    def __init__(self, address: DynamoAddress, namespace: str) -> None:
        self._address = address
        self._namespace = namespace
        self._link = DynamoLink(address)
        self._sharpener = Sharpener(self._link.time, partial(self._about, "identity"))
        self._facts: DynamoFacts | None = None
        self._closed = threading.Event()
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._server = ""
        self._made = False

    @property
    def url(self) -> str:
        return self._link.url

    @property
    def capabilities(self) -> Capabilities:
        return capabilities_of(self._facts, self._link.time)

    def open(self) -> None:
        self._here()
        self._closed.clear()
        if self._facts is None:
            self._facts = ask_facts(self._link)
        self._look()

    def close(self) -> None:
        self._closed.set()
        self._link.close()

    def _here(self) -> None:
        if self._process != os.getpid():
            self._begin()

    # --- what is about the table

    def _look(self) -> str:
        """Return the identity of the table, if a client has written it."""
        if not self._server:
            item = self._about("identity")
            if item is not None:
                self._server = f"dynamodb.{item['v']['S']}"
                self._made = self._about(f"namespace/{self._namespace}") is not None
        return self._server

    def _about(self, name: str) -> Any:
        key = {"p": {"S": _ABOUT}, "s": {"S": name}}
        return self._link.read("get_item", TableName=self._address.table, Key=key, ConsistentRead=True).get("Item")

    def _make(self) -> str:
        """Write the identity and the name of the namespace where they are missing; return the identity."""
        self._here()
        if not self._made:
            for name, value in (("identity", secrets.token_hex(8)), (f"namespace/{self._namespace}", "")):
                item = {"p": {"S": _ABOUT}, "s": {"S": name}, "v": {"S": value}}
                wanted = "attribute_not_exists(p)"
                try:
                    self._link.read("put_item", TableName=self._address.table, Item=item, ConditionExpression=wanted)
                except DynamoCancelled:
                    pass  # it is there
            self._made = True
        return self._look()

    # --- reading

    def fetch(self, keys: Sequence[str], spans: Sequence[Span] = ()) -> Found:
        items: dict[str, Item] = {}
        wanted = [self._key(key) for key in dict.fromkeys(keys)]
        for start in range(0, len(wanted), _AT_ONCE):
            items |= {item.key: item for item in self._batch(wanted[start : start + _AT_ONCE])}
        pages = [self._page(span) for span in spans]
        return Found(items, pages, self._look())

    def _batch(self, keys: Sequence[Mapping[str, Any]]) -> list[Item]:
        """Read keys until none is left: a busy table replies in parts."""
        found: list[Item] = []
        table, until, pause = self._address.table, time.monotonic() + self._address.timeout, 0.01
        asked: dict[str, Any] = {table: {"Keys": list(keys), "ConsistentRead": True}}
        while True:
            reply = self._link.read("batch_get_item", RequestItems=asked)
            found += [_item(one) for one in reply.get("Responses", {}).get(table, ())]
            asked = reply.get("UnprocessedKeys") or {}
            if not asked:
                return found
            if time.monotonic() + pause > until:
                raise StoreUnavailable(
                    f"{self.url} replies in small parts only: it has too much to do. Nothing was done."
                )
            time.sleep(pause)
            pause *= 2

    def _page(self, span: Span) -> list[Item]:
        if span.low >= span.high or span.limit == 0:
            return []
        shelves = [shelf for shelf in ("", *_SHELVES) if _meets(shelf, span)]
        parts = [self._query(shelf, span) for shelf in shelves]
        merged = merge(*parts, key=lambda item: item.key, reverse=span.reverse)
        return list(merged if span.limit is None else islice(merged, span.limit))

    def _query(self, shelf: str, span: Span) -> list[Item]:
        found: list[Item] = []
        asked: dict[str, Any] = {
            "TableName": self._address.table,
            "KeyConditionExpression": "p = :p AND s BETWEEN :low AND :high",
            "ExpressionAttributeValues": {
                ":p": {"S": self._partition(shelf)},
                ":low": {"S": span.low or "\0"},
                ":high": {"S": span.high},
            },
            "ConsistentRead": True,
            "ScanIndexForward": not span.reverse,
        }
        if span.bare:
            asked["ProjectionExpression"] = "s, m"
        while True:
            if span.limit is not None:
                asked["Limit"] = span.limit - len(found) + 1  # the upper end itself may be there, and is left out
            reply = self._link.read("query", **asked)
            found += [item for item in map(_item, reply.get("Items", ())) if item.key != span.high]
            last = reply.get("LastEvaluatedKey")
            if not last or (span.limit is not None and len(found) >= span.limit):
                return found if span.limit is None else found[: span.limit]
            asked["ExclusiveStartKey"] = last

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
        notification = writes.get(NOTIFY)
        writes = {key: value for key, value in writes.items() if key != NOTIFY}
        mark = secrets.token_hex(12)
        keys = [*writes, *(key for key in checks if key not in writes)]
        actions = [self._action(key, checks.get(key), key in writes, writes.get(key), mark) for key in keys]
        try:
            if len(actions) == 1 and "Put" in actions[0]:
                self._link.call("put_item", **actions[0]["Put"])  # at half the price
            elif actions:
                self._transact(actions, mark)
        except DynamoCancelled as cancelled:
            if not cancelled.reasons:
                return Stale(frozenset(keys))
            pairs = zip(keys, cancelled.reasons, strict=True)
            return Stale(frozenset(key for key, reason in pairs if reason == "ConditionalCheckFailed"))
        if notification is not None:
            self._notify(notification, mark)
        return Swapped({key: mark for key, value in writes.items() if value is not None})

    def _transact(self, actions: Sequence[Mapping[str, Any]], token: str) -> None:
        """Send a transaction; once more if no reply comes: DynamoDB knows its token for ten minutes."""
        try:
            self._link.call("transact_write_items", TransactItems=actions, ClientRequestToken=token)
        except Lost:
            self._link.call("transact_write_items", TransactItems=actions, ClientRequestToken=token)

    def _action(
        self, key: str, condition: Condition | None, writes: bool, value: str | None, mark: str
    ) -> dict[str, Any]:
        table = {"TableName": self._address.table}
        if condition is ABSENT:
            table["ConditionExpression"] = "attribute_not_exists(p)"
        elif condition is EXISTS:
            table["ConditionExpression"] = "attribute_exists(p)"
        elif condition is not None:
            table["ConditionExpression"] = "m = :m"
            table["ExpressionAttributeValues"] = {":m": {"S": condition}}  # type: ignore[assignment]
        if not writes:
            return {"ConditionCheck": {**table, "Key": self._key(key)}}
        if value is None:
            return {"Delete": {**table, "Key": self._key(key)}}
        return {"Put": {**table, "Item": {**self._key(key), "v": {"S": value}, "m": {"S": mark}}}}

    def _key(self, key: str) -> dict[str, Any]:
        key.encode()
        shelf = next((shelf for shelf in _SHELVES if key.startswith(shelf)), "")
        return {"p": {"S": self._partition(shelf)}, "s": {"S": key}}

    def _partition(self, shelf: str) -> str:
        return f"{self._namespace}/{shelf}"

    # --- time, notifications, looking after

    def now(self) -> int:
        return self._link.time.now() if self._link.time.is_known else 0

    def ask_time(self) -> str:
        server = self._make()
        self._about("identity")
        return server

    def sharpen(self, within: int) -> None:
        self._sharpener.sharpen(within)

    def _notify(self, value: str, mark: str) -> None:
        """Write a notification. Not in the transaction: all clients would conflict about it."""
        box = crc32(value.partition(" ")[0].encode()) % _BOXES
        item = {"p": {"S": self._partition(_BOX)}, "s": {"S": f"{box:02}"}, "v": {"S": value}, "m": {"S": mark}}
        try:
            self._link.call("put_item", TableName=self._address.table, Item=item)
        except (StoreError, Lost):
            pass  # a wake-up is a bonus: waiting clients look again after a while

    def position(self) -> Mapping[str, Hashable]:
        """Return the marks of the last notifications."""
        self._here()
        return {item.key: item.mark for item in self._boxes()}

    def wait(
        self, after: Mapping[str, Hashable], timeout: float
    ) -> tuple[Mapping[str, Hashable], Sequence[str | None]]:
        """Look once a second. Of several in one box between two looks the last is seen, which is enough to wake."""
        self._here()
        until = time.monotonic() + timeout
        while True:
            found = self._boxes()
            place = {item.key: item.mark for item in found}
            values = [item.value for item in found if after.get(item.key) != item.mark]
            left = until - time.monotonic()
            if values or left <= 0 or self._closed.wait(min(_LOOK, left)):
                return (after, []) if self._closed.is_set() else (place, values)

    def _boxes(self) -> list[Item]:
        names = {":p": {"S": self._partition(_BOX)}}
        reply = self._link.read(
            "query", TableName=self._address.table, KeyConditionExpression="p = :p", ExpressionAttributeValues=names
        )
        return [_item(one) for one in reply.get("Items", ())]

    def checks(self) -> Sequence[Check]:
        return list(checks_of(ask_facts(self._link), self._link))

    def namespaces(self) -> Collection[str]:
        reply = self._link.read(
            "query",
            TableName=self._address.table,
            KeyConditionExpression="p = :p AND begins_with(s, :s)",
            ExpressionAttributeValues={":p": {"S": _ABOUT}, ":s": {"S": "namespace/"}},
            ConsistentRead=True,
        )
        return [item["s"]["S"].removeprefix("namespace/") for item in reply.get("Items", ())]


def _item(found: Mapping[str, Any]) -> Item:
    return Item(found["s"]["S"], found.get("v", {}).get("S", ""), found["m"]["S"])


def _meets(shelf: str, span: Span) -> bool:
    """Return whether a shelf may have keys of a span."""
    if not shelf:
        return not any(span.low.startswith(one) and span.high <= f"{one[:-1]}0" for one in _SHELVES)
    if shelf == "d/" and any(
        span.low.startswith(one) and span.high <= f"{one[:-1]}0" for one in ("d/job/", "d/session/")
    ):
        return False
    return span.low < f"{shelf[:-1]}0" and shelf < span.high
