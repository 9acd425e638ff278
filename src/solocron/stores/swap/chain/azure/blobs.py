"""Blobs of one container as objects of a chain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape
from urllib.parse import unquote

from solocron.errors import StoreRefused, StoreUnavailable
from solocron.stores.contract import Check, Tier
from solocron.stores.swap.chain.azure.address import AzureAddress
from solocron.stores.swap.chain.http import HttpReply
from solocron.stores.swap.chain.service import ServiceObjects
from solocron.stores.swap.key_store import KeyLimits, Lost

__all__ = ["AzureBlobs"]

_LIMITS = KeyLimits(keys=1_000, bytes=4_000_000, value=1_000_000)
_WHY = "Azure Blob Storage is strongly consistent and durable by the vendor's word; the suites ran on Azurite"
_TAKEN = ("BlobAlreadyExists", "ConditionNotMet", "UnauthorizedBlobOverwrite")


class AzureBlobs(ServiceObjects):
    """One client of a folder of blobs."""

    limits = _LIMITS
    tier = Tier.B
    why = _WHY

    def __init__(self, address: AzureAddress) -> None:
        super().__init__(address.http)
        self.address = address

    def create(self, name: str, content: bytes) -> bool:
        headers = {
            "x-ms-blob-type": "BlockBlob",
            "If-None-Match": "*",
            "Content-Type": "application/json",
            "Content-Length": str(len(content)),
        }
        path, signed = self.address.signed("PUT", name, {}, headers, len(content))
        reply = self.link.call("PUT", path, signed, content)
        if reply.status == 201:
            return True
        code = _code(reply)
        if reply.status in (409, 412) and (code in _TAKEN or not code):
            return False
        if reply.status >= 500:
            raise Lost(f"HTTP {reply.status} {code}")
        raise self._refusal(reply, code)

    def get(self, name: str) -> bytes | None:
        path, signed = self.address.signed("GET", name, {}, {}, 0)
        reply = self.link.read("GET", path, signed)
        if reply.status == 200:
            return reply.body
        code = _code(reply)
        if reply.status == 404 and code != "ContainerNotFound":
            return None
        raise self._refusal(reply, code)

    def names(self, prefix: str, limit: int) -> Sequence[str]:
        folder = self.address.folder
        found: list[str] = []
        query = {"restype": "container", "comp": "list", "prefix": folder + prefix}
        while True:
            query["maxresults"] = str(min(5_000, limit - len(found)))
            path, signed = self.address.signed("GET", None, query, {}, 0)
            reply = self.link.read("GET", path, signed)
            if reply.status != 200:
                raise self._refusal(reply, _code(reply))
            text = reply.body.decode()
            found += [unescape(name).removeprefix(folder) for name in re.findall(r"<Name>([^<]*)</Name>", text)]
            marker = re.search(r"<NextMarker>([^<]+)</NextMarker>", text)
            if marker is None or len(found) >= limit:
                return sorted(found)[:limit]
            query["marker"] = unescape(marker[1])

    def delete(self, name: str) -> None:
        path, signed = self.address.signed("DELETE", name, {}, {}, 0)
        reply = self.link.read("DELETE", path, signed)
        if reply.status not in (200, 202, 404):
            raise self._refusal(reply, _code(reply))

    def checks(self) -> Sequence[Check]:
        address = self.address
        unseen = (
            "cannot be seen with a key or a SAS token; no rule of the account may delete or move blobs of the folder"
        )
        found = [
            Check("container", "OK", f"{address.container} of {address.account}: {_WHY}"),
            Check("lifecycle", "OK", unseen),
        ]
        return [*found, *self._shared_checks(throttled="give Solocron a storage account of its own")]

    def _refusal(self, reply: HttpReply, code: str) -> Exception:
        """Return what a reply means that is neither success nor an answer: nothing was done."""
        address, url = self.address, self.url
        told = code or f"HTTP {reply.status}"
        if code == "ContainerNotFound":
            return StoreRefused(
                f"{url}: there is no container {address.container!r}; nothing was written. Create it with: az storage "
                f"container create --account-name {address.account} --name {address.container}"
            )
        signed = address.http.parts.user == "key"
        if code in ("AuthenticationFailed", "InvalidAuthenticationInfo") or reply.status == 401:
            secret = "account's key" if signed else "SAS token"
            return StoreRefused(f"{url} refused the {secret} ({told}); nothing was done.")
        if reply.status == 403 and signed:  # a key has every right, unless a rule of the account keeps this machine out
            return StoreRefused(
                f"{url} refused the account's key, or calls from this network ({told}); nothing was done."
            )
        if reply.status == 403:
            return StoreRefused(
                f"{url}: the SAS token has not the rights, or has expired ({told}); nothing was done. It needs read, "
                "create, write, list and delete on the container."
            )
        if reply.status in (429, 503) or reply.status >= 500:
            return StoreUnavailable(f"{url} has too much to do or is away ({told}); nothing was done.")
        return StoreRefused(f"{url} refused a call ({told}); nothing was done.")


def _code(reply: HttpReply) -> str:
    told = reply.headers.get("x-ms-error-code", "")
    if not told:
        found = re.search(rb"<Code>([^<]*)</Code>", reply.body)
        told = unquote(found[1].decode()) if found else ""
    return told
