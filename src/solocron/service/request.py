"""Requests and responses as values. Adapters make the one and send the other; nothing here does I/O."""

from __future__ import annotations

import base64
import gzip
import hashlib
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

__all__ = ["PROBLEM", "RequestHead", "Response", "make_request_id", "packed", "sealed"]

JSON = "application/json"
PROBLEM = "application/problem+json"

_COMPRESSED_FROM = 1024
_LEVEL = 5
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types solocron"
)
_DENIED = ("accelerometer", "camera", "display-capture", "geolocation", "gyroscope", "microphone", "payment", "usb")
_SAFE = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    # With no-referrer, Chromium sends `Origin: null` with the forms of our own pages.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": ", ".join(f"{feature}=()" for feature in _DENIED),
    "Cache-Control": "no-store",
    "Vary": "Accept-Encoding, Authorization, Cookie",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHead:
    """A request without its body: all that the guard may look at before anything is read."""

    id: str
    """In the response, the log and the audit."""
    method: str
    path: str
    """Below `base`, percent-encoded, as it was sent."""
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    """Names in lower case."""
    address: str | None = None
    secure: bool = False
    """True if the client speaks TLS, to us or to the proxy in front of us."""
    base: str = ""
    """The path under which the service is mounted: empty, or `/a/b`."""
    below: str = ""
    """The end of `base` that names one of several namespaces: empty, or `/ns/NAME`."""

    @property
    def site(self) -> str:
        """The path of all namespaces of this service, for which a login counts."""
        return self.base.removesuffix(self.below) if self.below else self.base

    def header(self, name: str) -> str | None:
        """Return the first header of a name, which is given in lower case."""
        return next((value for found, value in self.headers if found == name), None)

    def count(self, name: str) -> int:
        """Return how many headers have this name."""
        return sum(found == name for found, _ in self.headers)

    @property
    def reads(self) -> bool:
        """True for the methods that change nothing."""
        return self.method in ("GET", "HEAD", "OPTIONS")

    @property
    def origin(self) -> str:
        """The origin of the service itself, as the client addressed it."""
        return f"{'https' if self.secure else 'http'}://{self.header('host') or ''}"

    @property
    def cookies(self) -> Mapping[str, str]:
        """The cookies; of two with the same name the first, which is the one with the longer path."""
        found: dict[str, str] = {}
        for name, value in self.headers:
            if name == "cookie":
                for part in value.split(";"):
                    cookie, _, text = part.strip().partition("=")
                    found.setdefault(cookie, text)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A status, a body and its type. `sealed` adds the headers that every response has."""

    status: int
    body: bytes = b""
    kind: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    tag: str | None = None
    """Weak entity tag, without its quotes."""
    endless: bool = False
    """True if the body is sent bit by bit by the adapter: it has no length."""
    packed: bytes | None = None
    """The compressed body, if it is known already: that of a part that many callers get."""

    def header(self, name: str) -> str | None:
        """Return the first header of a name, whatever its case."""
        return next((value for found, value in self.headers if found.lower() == name.lower()), None)


def sealed(head: RequestHead, response: Response) -> Response:
    """Add the headers of every response; answer 304 for a known tag, compress, and drop the body for HEAD."""
    own = {name.lower() for name, _ in response.headers}
    extra = [(name, value) for name, value in _SAFE.items() if name.lower() not in own]
    extra.append(("Solocron-Request", head.id))
    if head.secure:
        extra.append(("Strict-Transport-Security", "max-age=31536000"))
    body, status = response.body, response.status
    if response.tag is not None:
        extra.append(("ETag", f'W/"{response.tag}"'))
        if status == 200 and head.reads and _knows(head.header("if-none-match"), response.tag):
            body, status = b"", 304
    if body or response.endless:
        extra.append(("Content-Type", response.kind))
        if len(body) >= _COMPRESSED_FROM and _takes_gzip(head.header("accept-encoding")):
            body = response.packed or _compressed(body)
            extra.append(("Content-Encoding", "gzip"))
    if status not in (204, 304) and not response.endless:
        extra.append(("Content-Length", str(len(body))))
    if head.method == "HEAD":
        body = b""
    return replace(response, status=status, body=body, headers=(*response.headers, *extra))


def packed(response: Response) -> Response:
    """Return a response whose body is compressed once, for all callers that will get it."""
    if len(response.body) < _COMPRESSED_FROM:
        return response
    return replace(response, packed=_compressed(response.body))


def tag_of(body: bytes) -> str:
    """Return an entity tag of a body."""
    return base64.urlsafe_b64encode(hashlib.blake2b(body, digest_size=12).digest()).decode()


def make_request_id() -> str:
    """Return an id that a person can read out: `req-` and eight letters or digits."""
    return f"req-{base64.b32encode(secrets.token_bytes(5)).decode()}"


def _compressed(body: bytes) -> bytes:
    return gzip.compress(body, _LEVEL, mtime=0)


def _knows(given: str | None, tag: str) -> bool:
    tags: Iterable[str] = (one.strip().removeprefix("W/").strip('"') for one in (given or "").split(","))
    return given is not None and (given.strip() == "*" or tag in tags)


def _takes_gzip(given: str | None) -> bool:
    for one in (given or "").split(","):
        coding, _, parameter = one.partition(";")
        if coding.strip().lower() in ("gzip", "*"):
            return parameter.replace(" ", "").lower() not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
