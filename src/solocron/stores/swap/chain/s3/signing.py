"""Signature version 4 of a call, as Amazon and Google both define it, each with words of its own."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

__all__ = ["AMAZON", "GOOGLE", "AccessKey", "Dialect", "signed"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words of one vendor."""

    prefix: str
    end: str
    headers: str
    service: str


AMAZON = Dialect("AWS4", "aws4_request", "x-amz", "s3")
GOOGLE = Dialect("GOOG4", "goog4_request", "x-goog", "storage")


@dataclass(frozen=True, slots=True)
class AccessKey:
    """The caller's key; `token` belongs to keys that end soon."""

    name: str
    secret: str
    token: str = ""

    def __repr__(self) -> str:
        return f"AccessKey({self.name!r})"


def signed(
    dialect: Dialect,
    key: AccessKey,
    region: str,
    *,
    method: str,
    host: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    body: bytes,
    at: datetime | None = None,
) -> dict[str, str]:
    """Return the headers of a call; `path` is quoted already."""
    moment = (at or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(body).hexdigest()
    sent = {**headers, f"{dialect.headers}-date": moment, f"{dialect.headers}-content-sha256": digest}
    if key.token:
        sent[f"{dialect.headers}-security-token"] = key.token
    lower = {name.lower(): value for name, value in sent.items()} | {"host": host}
    names = ";".join(sorted(lower))
    asked = "&".join(f"{quote(name, safe='-_.~')}={quote(query[name], safe='-_.~')}" for name in sorted(query))
    plain = "".join(f"{name}:{lower[name].strip()}\n" for name in sorted(lower))
    request = "\n".join((method, path, asked, plain, names, digest))
    scope = f"{moment[:8]}/{region}/{dialect.service}/{dialect.end}"
    algorithm = f"{dialect.prefix}-HMAC-SHA256"
    text = "\n".join((algorithm, moment, scope, hashlib.sha256(request.encode()).hexdigest()))
    secret = f"{dialect.prefix}{key.secret}".encode()
    for word in (moment[:8], region, dialect.service, dialect.end):
        secret = hmac.new(secret, word.encode(), hashlib.sha256).digest()
    signature = hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()
    sent["Authorization"] = f"{algorithm} Credential={key.name}/{scope}, SignedHeaders={names}, Signature={signature}"
    return sent
