"""etcd as a key store: one transaction reads, one commits; marks are revisions, which etcd never uses twice."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from solocron.stores.contract import Capabilities, Check, Tier
from solocron.stores.swap.etcd.address import EtcdAddress
from solocron.stores.swap.etcd.checks import EtcdFacts, ask_facts, capabilities_of, checks_of, refuse
from solocron.stores.swap.etcd.link import EtcdFull, EtcdLink, packed_text, unpacked_text
from solocron.stores.swap.etcd.watch import EtcdWatch
from solocron.stores.swap.key_store import (
    ABSENT,
    EXISTS,
    Condition,
    Found,
    Item,
    KeyLimits,
    Span,
    Stale,
    Swapped,
    holds,
)
from solocron.stores.swap.layout import NOTIFY
from solocron.stores.swap.server_time import Sharpener

__all__ = ["EtcdKeys"]

_OPERATIONS = 128
"""Operations and comparisons of a transaction (--max-txn-ops)."""
_PAGE = 1_000
_LIMITS = KeyLimits(keys=_OPERATIONS - 3, bytes=1_000_000, value=1_000_000)
"""Of a request of 1.5 MB, a third is lost to base64."""


class EtcdKeys:
    """One client of a namespace of keys."""

    limits = _LIMITS

    def __init__(self, address: EtcdAddress, namespace: str) -> None:
        self._address = address
        self._root = f"{address.prefix}/"
        self._prefix = f"{self._root}{namespace}/"
        self._link = EtcdLink(address)
        self._watch = EtcdWatch(self._link, f"{self._prefix}{NOTIFY}")
        self._facts: EtcdFacts | None = None
        self._sharpener = Sharpener(self._link.time, self.ask_time)
        self._process = os.getpid()

    @property
    def url(self) -> str:
        return self._link.url

    @property
    def capabilities(self) -> Capabilities:
        if self._facts is None:
            return Capabilities(tier=Tier.C, why="not opened yet, so nothing is known of it", notifies=True)
        return capabilities_of(self._facts, self._link.time)

    def open(self) -> None:
        self._here()
        self._watch.closed.clear()
        if self._facts is None:
            facts = ask_facts(self._link)
            refuse(self.url, facts)
            self._facts = facts

    def close(self) -> None:
        self._here()
        self._watch.close()
        self._link.close()

    def _here(self) -> None:
        if self._process != os.getpid():
            self._process = os.getpid()
            self._watch.begin()

    # --- reading

    def fetch(self, keys: Sequence[str], spans: Sequence[Span] = ()) -> Found:
        items: dict[str, Item] = {}
        pages: list[list[Item]] = [[] for _ in spans]
        wanted: list[tuple[int | None, dict[str, Any]]] = [(None, {"key": self._packed(key)}) for key in keys]
        wanted += [(i, self._range(span, span.low, span.high, span.limit)) for i, span in enumerate(spans)]
        server = ""
        while wanted or not server:
            some, wanted = wanted[:_OPERATIONS], wanted[_OPERATIONS:]
            server, replies = self._ranges([one for _, one in some])
            for (place, _), found in zip(some, replies, strict=True):
                page = [self._item(kv) for kv in found.get("kvs", ())]
                if place is None:
                    items |= {item.key: item for item in page}
                    continue
                pages[place] += page
                more = self._rest(spans[place], pages[place]) if found.get("more") else None
                if more is not None:
                    wanted.append((place, more))
        return Found(items, pages, server)

    def _ranges(self, wanted: Sequence[Mapping[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
        """Read ranges in one transaction; from a server that is full one by one, so that it can still be looked at."""
        try:
            reply = self._link.read("/v3/kv/txn", {"success": [{"request_range": one} for one in wanted]})
        except EtcdFull:
            replies = [self._link.read("/v3/kv/range", one) for one in wanted]
            return self.ask_time(), replies
        return _server(reply), [one["response_range"] for one in reply.get("responses", ())]

    def _range(self, span: Span, low: str, high: str, limit: int | None) -> dict[str, Any]:
        wanted: dict[str, Any] = {
            "key": self._packed(low),
            "range_end": self._packed(max(low, high)),
            "limit": _PAGE if limit is None else min(limit, _PAGE),
        }
        if low >= high or limit == 0:  # etcd reads an empty range as a single key, and no limit as none
            wanted = {"key": packed_text("\0"), "limit": 1, "range_end": packed_text("\0\0")}
        if span.bare:
            wanted["keys_only"] = True
        if span.reverse:
            wanted |= {"sort_order": "DESCEND", "sort_target": "KEY"}
        return wanted

    def _rest(self, span: Span, page: Sequence[Item]) -> dict[str, Any] | None:
        """Return the range of what follows a page; None if there is enough."""
        left = None if span.limit is None else span.limit - len(page)
        if left is not None and left <= 0:
            return None
        last = page[-1].key
        low, high = (span.low, last) if span.reverse else (f"{last}\0", span.high)
        return self._range(span, low, high, left)

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
        success: list[dict[str, Any]] = [] if look is None else [{"request_range": self._below(look)}]
        if also is not None:
            success.append({"request_range": {"key": self._packed(also)}})
        for key, value in writes.items():
            if value is None:
                success.append({"request_delete_range": {"key": self._packed(key)}})
            else:
                success.append({"request_put": {"key": self._packed(key), "value": packed_text(value)}})
        body = {
            "compare": [self._compare(key, condition) for key, condition in checks.items()],
            "success": success,
            "failure": [{"request_range": {"key": self._packed(key), "keys_only": True}} for key in checks],
        }
        reply = self._link.call("/v3/kv/txn", body, server=server)
        if not reply:
            return Stale(frozenset(), moved=True)
        responses = reply.get("responses", [])
        if not reply.get("succeeded"):
            return Stale(self._stale(checks, responses))
        revision = int(reply["header"]["revision"])
        found = None if look is None else bool(int(responses[0]["response_range"].get("count", 0)))
        marks = {key: revision for key, value in writes.items() if value is not None}
        if also is None:
            return Swapped(marks, found)
        kvs = responses[0 if look is None else 1]["response_range"].get("kvs", ())
        return Swapped(marks, found, self._item(kvs[0]) if kvs else None, _server(reply))

    def _below(self, prefix: str) -> dict[str, Any]:
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        return {"key": self._packed(prefix), "range_end": self._packed(end), "count_only": True}

    def _compare(self, key: str, condition: Condition) -> dict[str, Any]:
        compared: dict[str, Any] = {"key": self._packed(key)}
        if condition is ABSENT:
            return compared | {"target": "CREATE", "result": "EQUAL", "create_revision": "0"}
        if condition is EXISTS:
            return compared | {"target": "CREATE", "result": "GREATER", "create_revision": "0"}
        return compared | {"target": "MOD", "result": "EQUAL", "mod_revision": str(condition)}

    def _stale(self, checks: Mapping[str, Condition], responses: Sequence[Mapping[str, Any]]) -> frozenset[str]:
        """Return the checks that do not hold, from the keys as the same transaction saw them."""
        stale: set[str] = set()
        for (key, condition), response in zip(checks.items(), responses, strict=True):
            kvs = response["response_range"].get("kvs", ())
            mark = int(kvs[0]["mod_revision"]) if kvs else None
            if not holds(condition, mark):
                stale.add(key)
        return frozenset(stale)

    # --- time, notifications, looking after

    def now(self) -> int:
        return self._link.time.now()

    def ask_time(self) -> str:
        return _server(self._link.read("/v3/kv/range", {"key": packed_text("\0"), "limit": 1}))

    def sharpen(self, within: int) -> None:
        self._sharpener.sharpen(within)

    def position(self) -> int:
        return int(self._link.read("/v3/kv/range", {"key": packed_text("\0"), "limit": 1})["header"]["revision"])

    def wait(self, after: int, timeout: float) -> tuple[int, Sequence[str | None]]:
        self._here()
        return self._watch.wait(after, timeout)

    def checks(self) -> Sequence[Check]:
        return list(checks_of(ask_facts(self._link, closely=True), self._address, self._link.time))

    def namespaces(self) -> Collection[str]:
        """Step from one namespace to the next: a call for each."""
        found: list[str] = []
        low, high = self._root, f"{self._root[:-1]}0"
        while True:
            wanted = {"key": packed_text(low), "range_end": packed_text(high), "limit": 1, "keys_only": True}
            kvs = self._link.read("/v3/kv/range", wanted).get("kvs", ())
            if not kvs:
                return found
            found.append(unpacked_text(kvs[0]["key"]).removeprefix(self._root).partition("/")[0])
            low = f"{self._root}{found[-1]}0"

    def _packed(self, key: str) -> str:
        return packed_text(f"{self._prefix}{key}")

    def _item(self, kv: Mapping[str, Any]) -> Item:
        key = unpacked_text(kv["key"]).removeprefix(self._prefix)
        return Item(key, unpacked_text(kv.get("value", "")), int(kv["mod_revision"]))


def _server(reply: Mapping[str, Any]) -> str:
    return f"etcd.{int(reply['header']['cluster_id']):x}"
