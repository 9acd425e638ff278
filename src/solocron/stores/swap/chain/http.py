"""HTTP calls of object services: connections, the service's time, and what is certain of a call that failed."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from solocron.clock import SECOND
from solocron.errors import ConfigurationError, StoreUnavailable
from solocron.loopback import is_loopback
from solocron.stores.certificates import refusal
from solocron.stores.contract import Check
from solocron.stores.stock import Stock, stock_of
from solocron.stores.swap.address import tls_context
from solocron.stores.swap.http_wire import HttpWire
from solocron.stores.swap.key_store import Lost
from solocron.stores.swap.server_time import ServerTime, Sharpener, time_of
from solocron.stores.url import StoreUrl

__all__ = ["HttpAddress", "HttpLink", "HttpReply", "encryption_checks"]

_IDLE_MOST = 4
_BUSY = (429, 503)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAddress:
    """Where a service is reached."""

    parts: StoreUrl
    host: str
    port: int
    base: str
    """The path of the service itself, without a slash at its end."""
    timeout: float
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    @classmethod
    def of(cls, parts: StoreUrl, endpoint: str, *, timeout: float) -> HttpAddress:
        """Read an endpoint such as `https://host:443/base`; `ca=` and `insecure_tls=` of the URL tell whom to trust."""
        found = urlsplit(endpoint)
        if found.scheme not in ("http", "https") or not found.hostname:
            raise ConfigurationError(
                f"store {parts.masked}: endpoint= begins with http:// or https:// and names a host. Nothing was opened."
            )
        secure = found.scheme == "https"
        port = found.port or (443 if secure else 80)
        tls = tls_context(parts) if secure else None
        return cls(parts=parts, host=found.hostname, port=port, base=found.path.rstrip("/"), timeout=timeout, tls=tls)

    @property
    def authority(self) -> str:
        """The host as a request names it."""
        usual = 443 if self.tls is not None else 80
        return self.host if self.port == usual else f"{self.host}:{self.port}"

    def connection(self) -> HTTPConnection:
        if self.tls is not None:
            return HTTPSConnection(self.host, self.port, timeout=self.timeout, context=self.tls)
        return HTTPConnection(self.host, self.port, timeout=self.timeout)


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A reply that came whole."""

    status: int
    headers: Mapping[str, str]
    """By names in lower case."""
    body: bytes


class HttpLink:
    """The calls of one client. Clients of one process and address share idle connections and the time."""

    def __init__(self, address: HttpAddress, ask: Callable[[], object]) -> None:
        """`ask` makes one cheap call, whose reply tells the time."""
        self.address = address
        self.url = address.parts.masked
        self.time: ServerTime = time_of(("http", address.host, address.port))
        self.sent = 0
        """Calls so far, those of a thread that waits for notifications included."""
        self.busy = 0
        """How often the service had more to do than it may."""
        self._stock: Stock[HttpWire] = stock_of(
            ("http", address.parts.secret, address.host, address.port, address.timeout), keep=_IDLE_MOST
        )
        self._sharpener = Sharpener(self.time, ask)

    def now(self) -> int:
        return self.time.now() if self.time.is_known else 0

    def sharpen(self, within: int) -> None:
        self._sharpener.sharpen(within)

    def close(self) -> None:
        self._stock.leave(self)

    def read(self, method: str, path: str, headers: Mapping[str, str]) -> HttpReply:
        """Make a call that does no harm if it is made twice; once more if it broke soon, or met a busy service."""
        began = time.monotonic()
        for again in (False, True):
            try:
                reply = self.call(method, path, headers)
            except Lost as error:
                if again or time.monotonic() - began > self.address.timeout / 2:
                    raise StoreUnavailable(f"{self.url} did not reply: {error}; nothing was written.") from None
                continue
            if reply.status < 500 or again:
                return reply
        raise AssertionError("the last round returns or raises")

    def call(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> HttpReply:
        """Make a call; raise `Lost` if it was sent and what became of it is not known."""
        for again in (False, True):
            wire = self._stock.take(self) or self._connect()
            try:
                return self._send(wire, method, path, headers, body)
            except _RequestNotSent as error:
                if again:
                    raise self._away(error) from None
        raise AssertionError("the last round returns or raises")

    def _send(self, wire: HttpWire, method: str, path: str, headers: Mapping[str, str], body: bytes) -> HttpReply:
        sent = self.time.begin_call()
        self.sent += 1
        try:
            try:
                wire.connection.request(method, path, body, dict(headers))
            except (OSError, HTTPException) as error:  # not all of it left this machine: no service takes a part
                raise _RequestNotSent(str(error)) from None
            try:
                response = wire.connection.getresponse()
                text = response.read()
            except (OSError, HTTPException) as error:
                raise Lost(self.scrubbed(error)) from None
        except BaseException:
            # Also interrupted in the middle: the next reader would get this call's reply.
            wire.discard()
            raise
        told = {name.lower(): value for name, value in response.getheaders()}
        if "date" in told:
            low = _instant(told["date"])
            self.time.told(low, low + SECOND, sent)
        self.busy += response.status in _BUSY
        if response.will_close:
            wire.discard()
        else:
            self._stock.give(wire)
        return HttpReply(response.status, told, text)

    def _connect(self) -> HttpWire:
        connection = self.address.connection()
        try:
            connection.connect()
        except (OSError, HTTPException) as error:
            connection.close()
            if isinstance(error, ssl.SSLError):
                untrusted = refusal(self.url, self.scrubbed(error), authority="ca=", own="")
                if untrusted is not None:
                    raise untrusted from None
            raise self._away(error) from None
        return HttpWire(connection)

    def _away(self, error: BaseException) -> StoreUnavailable:
        return StoreUnavailable(
            f"{self.url} cannot be reached: {self.scrubbed(error)}; nothing was written. Look whether the name is "
            "right and the network lets this machine out."
        )

    def scrubbed(self, error: object) -> str:
        return self.address.parts.scrub(str(error) or type(error).__name__)


class _RequestNotSent(Exception):
    """The connection broke before the call: a new one may do."""


@lru_cache(maxsize=8)
def _instant(date: str) -> int:
    return int(parsedate_to_datetime(date).timestamp()) * SECOND


def encryption_checks(address: HttpAddress) -> list[Check]:
    """Return the line of `doctor` about what others can read on the way."""
    if address.tls is None and not is_loopback(address.host):
        told = "off: documents and keys cross the network as they are"
        return [Check("encryption", "WARN", told, "use an endpoint with https://")]
    if "insecure_tls" in address.parts.options:
        told = "on, and the certificate of the service is not verified"
        return [Check("encryption", "WARN", told, "remove insecure_tls")]
    return []
