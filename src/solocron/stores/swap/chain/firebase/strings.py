"""Strings of one database as objects of a chain."""

from __future__ import annotations

import json
from collections.abc import Sequence

from solocron.errors import StoreRefused, StoreUnavailable
from solocron.stores.contract import Check
from solocron.stores.swap.chain.firebase.address import FirebaseAddress
from solocron.stores.swap.chain.http import HttpReply
from solocron.stores.swap.chain.service import ServiceObjects
from solocron.stores.swap.key_store import KeyLimits, Lost

__all__ = ["FirebaseStrings"]

_LIMITS = KeyLimits(keys=1_000, bytes=2_000_000, value=1_000_000)


class FirebaseStrings(ServiceObjects):
    """One client of a path. An empty string would not be there, so each begins with a mark."""

    limits = _LIMITS

    def __init__(self, address: FirebaseAddress) -> None:
        super().__init__(address.http)
        self.address = address

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
        found = self._read(prefix, shallow=True)
        keys = found if isinstance(found, dict) else {}
        return sorted(f"{prefix}{key.replace('~', '.')}" for key in keys)[:limit]

    def _read(self, name: str, *, shallow: bool = False) -> object:
        reply = self.link.read("GET", self.address.place(name, shallow=shallow), {})
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

    def checks(self) -> Sequence[Check]:
        remedy = "run the suite on a database of your own, see the page on object stores"
        return [
            Check("database", "WARN", f"{self.address.path} of {self.address.http.host}: {self.why}", remedy),
            self._rules(),
            *self._shared_checks(throttled="give Solocron a database of its own"),
        ]

    def _rules(self) -> Check:
        """Read the path as a stranger."""
        reply = self.link.read("GET", self.address.place("identity", login=False), {})
        if reply.status in (401, 403):
            return Check("rules", "OK", "closed: a stranger may not read the path")
        if reply.status == 200:
            told = "open: every client of the internet may read the path"
            return Check("rules", "FAIL", told, 'set ".read" and ".write" of the path to false; the secret passes them')
        return Check("rules", "OK", f"cannot be seen (HTTP {reply.status})")

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
