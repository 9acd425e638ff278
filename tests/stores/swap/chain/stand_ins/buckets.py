"""A stand-in for S3 and for the XML interface of Google Cloud Storage; it checks signatures."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from solocron.stores.swap.chain.s3.signing import AMAZON, GOOGLE, AccessKey, signed
from tests.stores.swap.chain.stand_ins import Handler, Reply, StandIn

__all__ = ["KEY", "SECRET", "BucketStandIn"]

KEY, SECRET = "canary", "c4n4ry-p4ss"


def error(status: int, code: str) -> Reply:
    return status, f"<Error><Code>{code}</Code></Error>".encode()


class _Handler(Handler):
    server: BucketStandIn

    def serve(self, path: str, query: dict[str, str], body: bytes) -> Reply | None:
        if not self._is_signed(query, body):
            return error(403, "SignatureDoesNotMatch")
        bucket, _, name = path.lstrip("/").partition("/")
        if bucket != "box":
            return error(404, "NoSuchBucket")
        if self.command == "PUT":
            told = self.headers
            absent = told.get("If-None-Match") == "*" or told.get("x-goog-if-generation-match") == "0"
            assert absent, "nothing is written without the condition"
            return self.server.create(name, body, error(412, "PreconditionFailed"), (200, b""))
        if self.command == "DELETE":
            self.server.delete(name)
            return 204, b""
        if not name and (asked := {"lifecycle", "versioning"} & query.keys()):
            told = self.server.settings.get(asked.pop(), "")
            if told is None:
                return error(403, "AccessDenied")
            return (200, told.encode()) if told else error(404, "NoSuchLifecycleConfiguration")
        if not name:
            return 200, self._listing(query)
        found = self.server.objects.get(name)
        return error(404, "NoSuchKey") if found is None else (200, found)

    def _listing(self, query: dict[str, str]) -> bytes:
        most, after = int(query["max-keys"]), query.get("continuation-token", "")
        names = sorted(one for one in list(self.server.objects) if one.startswith(query["prefix"]) and one > after)
        more = f"<NextContinuationToken>{escape(names[most - 1])}</NextContinuationToken>" if len(names) > most else ""
        keys = "".join(f"<Key>{escape(one)}</Key>" for one in names[:most])
        return f"<ListBucketResult>{keys}{more}</ListBucketResult>".encode()

    def _is_signed(self, query: dict[str, str], body: bytes) -> bool:
        told = self.headers.get("Authorization", "")
        dialect = GOOGLE if told.startswith("GOOG4") else AMAZON
        found = re.search(r"Credential=([^/]+)/\d+/([^/]+)/.*SignedHeaders=([^,]+), ", told)
        if not found:
            return False
        made = (f"{dialect.headers}-date", f"{dialect.headers}-content-sha256")
        names = [name for name in found[3].split(";") if name not in ("host", *made)]
        again = signed(
            dialect,
            AccessKey(found[1], SECRET),
            found[2],
            method=self.command,
            host=self.headers["Host"],
            path=urlsplit(self.path).path,
            query=query,
            headers={name: self.headers[name] for name in names},
            body=body,
            at=datetime.strptime(self.headers[made[0]], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC),
        )
        return again["Authorization"] == told


class BucketStandIn(StandIn):
    """One bucket called `box`."""

    def __init__(self, *, ignores_conditions: bool = False) -> None:
        self.settings: dict[str, str | None] = {}
        """`lifecycle` and `versioning` of the bucket; None: they may not be read."""
        super().__init__(_Handler, ignores_conditions=ignores_conditions)

    def url(self, folder: str, *, scheme: str = "s3", secret: str = SECRET) -> str:
        region = "&region=eu-test-1" if scheme == "s3" else ""
        return f"{scheme}://{KEY}:{secret}@box/{folder}?endpoint={self.endpoint}{region}"
