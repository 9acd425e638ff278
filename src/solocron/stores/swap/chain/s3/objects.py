"""Objects of one bucket as objects of a chain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import unescape

from solocron.errors import StoreRefused, StoreUnavailable
from solocron.stores.contract import Check
from solocron.stores.swap.chain.http import HttpReply
from solocron.stores.swap.chain.s3.address import BucketAddress
from solocron.stores.swap.chain.s3.signing import GOOGLE
from solocron.stores.swap.chain.service import STAND_IN, ServiceObjects
from solocron.stores.swap.key_store import KeyLimits, Lost

__all__ = ["BucketObjects"]

_LIMITS = KeyLimits(keys=1_000, bytes=4_000_000, value=1_000_000)
_NO_LOGIN = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "InvalidSecurity")
_SKEWED = "RequestTimeTooSkewed"
_ACTS = re.compile(r"<Expiration>\s*<(?:Days|Date)>|<Transition>|<Delete\s*/>|<SetStorageClass>|<Delete>")
"""Actions of a lifecycle rule on current objects: the first two are Amazon's, the others Google's."""


class BucketObjects(ServiceObjects):
    """One client of a folder of objects."""

    limits = _LIMITS

    def __init__(self, address: BucketAddress) -> None:
        super().__init__(address.http)
        self.address = address
        google = address.dialect is GOOGLE
        vendor = "Google Cloud Storage" if google else "Amazon S3"
        self.why = f"{vendor} is strongly consistent and durable by the vendor's word, but {STAND_IN}"
        self._absent = {"x-goog-if-generation-match": "0"} if google else {"If-None-Match": "*"}

    def create(self, name: str, content: bytes) -> bool:
        headers = {**self._absent, "Content-Type": "application/json"}
        path, signed = self.address.signed("PUT", name, {}, headers, content)
        reply = self.link.call("PUT", path, signed, content)
        if reply.status == 200:
            return True
        if reply.status == 412:
            return False
        code = _code(reply)
        if reply.status == 501 or code == "NotImplemented":
            raise StoreRefused(
                f"{self.url} cannot create an object only if it is absent ({code or 'HTTP 501'}), so two nodes could "
                "both win; no job was touched. Take a service that can: see the page on object stores."
            )
        if reply.status == 409 or reply.status >= 500:
            raise Lost(f"HTTP {reply.status} {code}")  # 409: another call on that name was under way; it is read then
        raise self._refusal(reply, code)

    def get(self, name: str) -> bytes | None:
        path, signed = self.address.signed("GET", name, {}, {})
        reply = self.link.read("GET", path, signed)
        if reply.status == 200:
            return reply.body
        code = _code(reply)
        if reply.status == 404 and code != "NoSuchBucket":
            return None
        raise self._refusal(reply, code)

    def names(self, prefix: str, limit: int) -> Sequence[str]:
        folder = self.address.folder
        found: list[str] = []
        query = {"list-type": "2", "prefix": folder + prefix}
        while True:
            query["max-keys"] = str(min(1_000, limit - len(found)))
            path, signed = self.address.signed("GET", None, query, {})
            reply = self.link.read("GET", path, signed)
            if reply.status != 200:
                raise self._refusal(reply, _code(reply))
            text = reply.body.decode()
            found += [unescape(name).removeprefix(folder) for name in re.findall(r"<Key>([^<]*)</Key>", text)]
            more = re.search(r"<NextContinuationToken>([^<]+)</NextContinuationToken>", text)
            if more is None or len(found) >= limit:
                return sorted(found)[:limit]
            query["continuation-token"] = unescape(more[1])

    def delete(self, name: str) -> None:
        path, signed = self.address.signed("DELETE", name, {}, {})
        reply = self.link.read("DELETE", path, signed)
        if reply.status not in (200, 204, 404):
            raise self._refusal(reply, _code(reply))

    def checks(self) -> Sequence[Check]:
        remedy = "run the suite on a bucket of your own, see the page on object stores"
        found = [Check("bucket", "WARN", f"{self.address.bucket}: {self.why}", remedy), *self._rules()]
        return [*found, *self._shared_checks(throttled="give each namespace a folder or a bucket of its own")]

    def _rules(self) -> Iterator[Check]:
        """Yield what the bucket's own rules do to commits: whether they delete or move them, and keep old versions."""
        lifecycle, versioning = self._setting("lifecycle"), self._setting("versioning")
        if lifecycle is None:
            told = "cannot be seen with this access key; no rule of the bucket may delete or move objects of the folder"
            yield Check("lifecycle", "OK", told)
        elif harmful := _harmful(lifecycle, self.address.folder):
            told = f"{harmful} of the bucket deletes or moves objects of the folder; without them the store is broken"
            yield Check("lifecycle", "FAIL", told, "remove the rule, or give it another prefix")
        else:
            yield Check("lifecycle", "OK", "no rule of the bucket deletes or moves objects of the folder")
        if versioning is not None and "<Status>Enabled</Status>" in versioning:
            told = "on: a commit that is deleted stays as an old version, and is paid for"
            yield Check(
                "versioning", "WARN", told, "switch it off, or let a rule delete old versions (not current ones)"
            )

    def _setting(self, word: str) -> str | None:
        """Return a setting of the bucket as XML, empty where it has none; None if it cannot be seen."""
        path, signed = self.address.signed("GET", None, {word: ""}, {})
        reply = self.link.read("GET", path, signed)
        if reply.status == 200:
            return reply.body.decode(errors="replace")
        return "" if _code(reply) == "NoSuchLifecycleConfiguration" else None

    def _refusal(self, reply: HttpReply, code: str) -> Exception:
        """Return what a reply means that is neither success nor an answer: nothing was done."""
        told = code or f"HTTP {reply.status}"
        if code == "NoSuchBucket":
            return StoreRefused(
                f"{self.url}: there is no bucket {self.address.bucket!r}; nothing was written. Create it, in one "
                "region and without rules that delete or move its objects."
            )
        if code == _SKEWED:
            return StoreRefused(f"{self.url}: the clock of this machine is off by minutes ({told}); nothing was done.")
        if code in _NO_LOGIN or reply.status == 401:
            return StoreRefused(f"{self.url} refused the access key or its secret ({told}); nothing was done.")
        if reply.status == 403:
            return StoreRefused(
                f"{self.url}: the access key has not the rights ({told}); nothing was done. It needs to read, create, "
                "list and delete objects: see the page on object stores."
            )
        if reply.status in (301, 307, 400) and code in ("PermanentRedirect", "AuthorizationHeaderMalformed"):
            return StoreRefused(
                f"{self.url}: the bucket is in another region ({told}); nothing was done. Mend region=."
            )
        if reply.status == 429 or reply.status >= 500:
            return StoreUnavailable(f"{self.url} has too much to do or is away ({told}); nothing was done.")
        return StoreRefused(f"{self.url} refused a call ({told}); nothing was done.")


def _harmful(lifecycle: str, folder: str) -> str:
    """Return the name of a rule that deletes or moves current objects of a folder; empty if none does."""
    for rule in re.findall(r"<Rule>(.*?)</Rule>", lifecycle, re.DOTALL):
        idle = "<Status>Disabled</Status>" in rule or "<IsLive>false</IsLive>" in rule
        if idle or not _ACTS.search(rule):
            continue
        prefixes = re.findall(r"<(?:Prefix|MatchesPrefix)>([^<]*)</", rule) or [""]
        if any(folder.startswith(prefix) or prefix.startswith(folder) for prefix in map(unescape, prefixes)):
            name = re.search(r"<ID>([^<]*)</ID>", rule)
            return f"the rule {unescape(name[1])!r}" if name else "a rule"
    return ""


def _code(reply: HttpReply) -> str:
    found = re.search(rb"<Code>([^<]*)</Code>", reply.body)
    return found[1].decode(errors="replace") if found else ""
