"""ConfigMaps of one namespace as objects of a chain. Each is immutable, and bears the name that the chain gave it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from solocron.errors import StoreRefused, StoreUnavailable
from solocron.stores.contract import Check
from solocron.stores.swap.chain.http import HttpReply
from solocron.stores.swap.chain.kubernetes.address import ClusterAddress
from solocron.stores.swap.chain.service import ServiceObjects
from solocron.stores.swap.key_store import KeyLimits, Lost

__all__ = ["ConfigMaps"]

_LIMITS = KeyLimits(keys=500, bytes=500_000, value=300_000)
"""An object may have a megabyte, and JSON in JSON doubles every quotation mark."""
_FOLDER = "solocron-folder"
_NAME = "solocron-name"
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_PAGE = 500
_VERBS = ("get", "list", "create", "delete")
_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class ConfigMaps(ServiceObjects):
    """One client of a namespace of the cluster."""

    limits = _LIMITS

    def __init__(self, address: ClusterAddress) -> None:
        super().__init__(address.http)
        self.address = address
        self._path = f"{address.http.base}/api/v1/namespaces/{address.namespace}/configmaps"

    def create(self, name: str, content: bytes) -> bool:
        folder = f"{name.rpartition('/')[0]}/"
        made = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self._object(name),
                "labels": {_FOLDER: self._label(folder)},
                "annotations": {_NAME: name},
            },
            "immutable": True,
            "data": {"content": content.decode()},
        }
        headers = {**self.address.headers(), "Content-Type": "application/json"}
        reply = self.link.call("POST", self._path, headers, json.dumps(made, ensure_ascii=False).encode())
        if reply.status == 201:
            return True
        if reply.status == 409:
            return False
        if reply.status >= 500:
            raise Lost(f"HTTP {reply.status} {_message(reply)}")
        raise self._refusal(reply)

    def get(self, name: str) -> bytes | None:
        reply = self.link.read("GET", f"{self._path}/{self._object(name)}", self.address.headers())
        if reply.status == 200:
            return str(_parsed(reply).get("data", {}).get("content", "")).encode()
        if reply.status == 404:
            return None
        raise self._refusal(reply)

    def names(self, prefix: str, limit: int) -> Sequence[str]:
        """Return the names in a folder; every prefix of a chain is one."""
        found: list[str] = []
        query = {"labelSelector": f"{_FOLDER}={self._label(prefix)}", "limit": str(_PAGE)}
        while True:
            headers = {**self.address.headers(), "Accept": _METADATA}
            reply = self.link.read("GET", f"{self._path}?{urlencode(query)}", headers)
            if reply.status != 200:
                raise self._refusal(reply)
            page = _parsed(reply)
            found += [str(item["metadata"]["annotations"][_NAME]) for item in page.get("items", ())]
            query["continue"] = page.get("metadata", {}).get("continue", "")
            if not query["continue"]:
                return sorted(found)[:limit]  # not before: names of the cluster are in another order

    def delete(self, name: str) -> None:
        reply = self.link.read("DELETE", f"{self._path}/{self._object(name)}", self.address.headers())
        if reply.status not in (200, 202, 404):
            raise self._refusal(reply)

    def _object(self, name: str) -> str:
        """Return the name of an object in the cluster: lower-case letters and digits, no two names alike."""
        return f"{self.address.prefix}-{re.sub('[^a-wyz0-9]', lambda one: f'x{ord(one[0]):02x}', name)}"

    def _label(self, folder: str) -> str:
        return hashlib.blake2b(f"{self.address.prefix}/{folder}".encode(), digest_size=16).hexdigest()

    def checks(self) -> Sequence[Check]:
        remedy = "run the suite on a cluster of your own, see the page on object stores"
        return [
            Check("cluster", "WARN", f"namespace {self.address.namespace}: {self.why}", remedy),
            self._rights(),
            *self._shared_checks("the API", throttled="run fewer nodes, or take a store for more commits"),
        ]

    def _rights(self) -> Check:
        """Ask the cluster for each right by its name; a review creates nothing."""
        lacking = []
        for verb in _VERBS:
            about = {"namespace": self.address.namespace, "verb": verb, "resource": "configmaps"}
            asked = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": about},
            }
            headers = {**self.address.headers(), "Content-Type": "application/json"}
            try:
                reply = self.link.call("POST", self.address.http.base + _REVIEW, headers, json.dumps(asked).encode())
            except Lost:
                return Check("rights", "OK", "cannot be seen: the cluster did not reply to a review")
            if reply.status != 201:
                return Check(
                    "rights", "OK", f"cannot be seen: a review was refused ({self.link.scrubbed(_message(reply))})"
                )
            if not _parsed(reply).get("status", {}).get("allowed"):
                lacking.append(verb)
        if lacking:
            told = f"the account may not {', '.join(lacking)} configmaps in {self.address.namespace}"
            return Check("rights", "FAIL", told, f"give it a Role with {', '.join(_VERBS)} on configmaps")
        return Check("rights", "OK", f"{', '.join(_VERBS)} on configmaps")

    def _refusal(self, reply: HttpReply) -> Exception:
        """Return what a reply means that is neither success nor an answer: nothing was done."""
        told = self.link.scrubbed(_message(reply))
        if reply.status == 401:
            return StoreRefused(f"{self.url} refused the token of the account ({told}); nothing was done.")
        if reply.status == 403:
            return StoreRefused(
                f"{self.url}: the account has not the rights ({told}); nothing was done. Give it a Role with get, "
                "list, create and delete on configmaps: see the page on object stores."
            )
        if reply.status == 404:
            return StoreRefused(f"{self.url}: there is no such namespace ({told}); nothing was done.")
        if reply.status == 429 or reply.status >= 500:
            return StoreUnavailable(f"{self.url} has too much to do or is away ({told}); nothing was done.")
        return StoreRefused(f"{self.url} refused a call ({told}); nothing was done.")


def _parsed(reply: HttpReply) -> Mapping[str, Any]:
    try:
        found = json.loads(reply.body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _message(reply: HttpReply) -> str:
    return str(_parsed(reply).get("message", f"HTTP {reply.status}"))[:200]
