"""Strings of one database as objects of a chain."""

from __future__ import annotations

import json
from collections.abc import Sequence

from solocron.clock import MILLISECOND
from solocron.errors import StoreRefused, StoreUnavailable
from solocron.stores.contract import Capabilities, Check, Tier
from solocron.stores.swap.chain.firebase.address import FirebaseAddress
from solocron.stores.swap.chain.http import HttpLink, HttpReply, encryption_checks
from solocron.stores.swap.key_store import KeyLimits, Lost

__all__ = ["FirebaseStrings"]

_LIMITS = KeyLimits(keys=1_000, bytes=2_000_000, value=1_000_000)
_WHY = "the suites have run on a stand-in of Solocron's own only"


class FirebaseStrings:
    """One client of a path. An empty string would not be there, so each begins with a mark."""

    limits = _LIMITS

    def __init__(self, address: FirebaseAddress) -> None:
        self.address = address
        self.link = HttpLink(address.http, lambda: self.get("identity"))

    @property
    def url(self) -> str:
        return self.link.url

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(tier=Tier.C, why=_WHY, notifies=False, clock_within=self.link.time.width)

    def open(self) -> None:
        """Ask for a string: a database that is not there, or a wrong secret, is told now."""
        self.get("identity")

    def close(self) -> None:
        self.link.close()

    def create(self, name: str, content: bytes) -> bool:
        body = json.dumps(f"={content.decode()}").encode()
        headers = {"if-match": "null_etag", "Content-Type": "application/json"}
        reply = self.link.call("PUT", self.address.place(name), headers, body)
        if reply.status == 200:
            return True
        if reply.status == 412:
            return False
        if reply.status >= 500:
            raise Lost(f"HTTP {reply.status}")
        raise self._refusal(reply)

    def get(self, name: str) -> bytes | None:
        found = self._read(name)
        return found[1:].encode() if isinstance(found, str) and found else None

    def names(self, prefix: str, limit: int) -> Sequence[str]:
        """Return the names in a folder; every prefix of a chain is one."""
        found = self._read(prefix, shallow="true")
        keys = found if isinstance(found, dict) else {}
        return sorted(f"{prefix}{key.replace('~', '.')}" for key in keys)[:limit]

    def _read(self, name: str, **query: str) -> object:
        reply = self.link.read("GET", self.address.place(name, **query), {})
        if reply.status != 200:
            raise self._refusal(reply)
        try:
            return json.loads(reply.body)
        except ValueError:
            raise self._refusal(reply) from None

    def delete(self, name: str) -> None:
        reply = self.link.read("DELETE", self.address.place(name), {})
        if reply.status != 200:
            raise self._refusal(reply)

    def now(self) -> int:
        return self.link.now()

    def sharpen(self, within: int) -> None:
        self.link.sharpen(within)

    def checks(self) -> Sequence[Check]:
        remedy = "run the suite on a database of your own, see the page on object stores"
        told = f"known to {self.link.time.width / MILLISECOND:.0f} ms; the service tells whole seconds"
        return [
            Check("database", "WARN", f"{self.address.path}: {_WHY}", remedy),
            Check("time", "OK", f"{told}, and a node asks when they turn; a takeover may take a second longer"),
            *encryption_checks(self.address.http),
        ]

    def _refusal(self, reply: HttpReply) -> Exception:
        """Return what a reply means that is neither success nor an answer: nothing was done."""
        told = self.link.scrubbed(reply.body.decode(errors="replace")[:120].strip() or f"HTTP {reply.status}")
        if reply.status in (401, 403):
            return StoreRefused(f"{self.url} refused the secret, or its rules forbid it ({told}); nothing was done.")
        if reply.status in (404, 423):
            return StoreRefused(f"{self.url}: there is no such database ({told}); nothing was done.")
        if reply.status == 429 or reply.status >= 500:
            return StoreUnavailable(f"{self.url} has too much to do or is away ({told}); nothing was done.")
        return StoreRefused(f"{self.url} refused a call ({told}); nothing was done.")
