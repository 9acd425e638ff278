"""One HTTPS request to a configured target, and to no other.

Only https, with the certificate checked. The name is resolved once, all its addresses must be public (unless private
ones are allowed), and the connection goes to the address that was checked. Redirects are not followed. The whole
exchange ends within its timeout however slow the server is, and only the status of the response counts.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from solocron.errors import InvalidError

__all__ = ["NotDelivered", "Target"]

TIMEOUT = 10.0
_AGAIN = frozenset({408, 425, 429})
_OF_A_GATEWAY = frozenset({502, 504})
"""Statuses of a proxy that does not know what the server behind it has done."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class NotDelivered(Exception):
    """The request failed.

    `again` says whether another try may succeed, `doubtful` whether this one may have been accepted all the same.
    """

    def __init__(self, why: str, *, again: bool, doubtful: bool = False) -> None:
        super().__init__(why)
        self.again = again
        self.doubtful = doubtful


@dataclass(frozen=True, slots=True)
class Target:
    """A checked URL. Its path may hold a token, so only its host is ever shown."""

    url: str = field(repr=False)
    what: str
    allow_private: bool = False

    def __post_init__(self) -> None:
        parts = _split(self.url)
        if parts is None or parts.scheme != "https" or not parts.hostname:
            raise InvalidError(f"{self.what} is not an https URL; only https is used. Nothing was configured.")
        if parts.username or parts.password or parts.fragment or not self.url.isascii() or not self.url.isprintable():
            raise InvalidError(
                f"{self.what}: give a plain URL, without user, password or fragment. Nothing was configured."
            )
        literal = _literal(parts.hostname)
        if literal is not None:
            self._refuse_private(literal, "Nothing was configured; allow_private=True allows it.", InvalidError)

    @property
    def host(self) -> str:
        return str(urlsplit(self.url).hostname)

    def post(self, body: bytes, headers: Mapping[str, str], *, below: str = "", timeout: float | None = None) -> None:
        """Post to the target, or to the path `below` it; raise NotDelivered unless the response is 2xx."""
        until = time.monotonic() + (TIMEOUT if timeout is None else timeout)
        parts = urlsplit(self.url)
        port = parts.port or 443
        path = (parts.path.rstrip("/") + below if below else parts.path or "/") + (
            f"?{parts.query}" if parts.query else ""
        )
        sent = threading.Event()
        try:
            status = self._exchange(self._address(port), port, path, body, headers, until, sent)
        except NotDelivered:
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:
            late = "it did not respond in time" if time.monotonic() >= until else f"{type(error).__name__}: {error}"
            perhaps = ", and may have got it" if sent.is_set() else ""
            raise NotDelivered(f"{self.host}: {late}{perhaps}", again=True, doubtful=sent.is_set()) from None
        if 300 <= status < 400:
            raise NotDelivered(f"{self.host} returned {status}, and redirects are not followed", again=False)
        if not 200 <= status < 300:
            again, doubtful = status >= 500 or status in _AGAIN, status in _OF_A_GATEWAY
            raise NotDelivered(f"{self.host} returned {status}", again=again, doubtful=doubtful)

    def _exchange(
        self,
        address: str,
        port: int,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        until: float,
        sent: threading.Event,
    ) -> int:
        """Return the status; `sent` is set before the first byte of the request leaves."""
        raw = socket.create_connection((address, port), timeout=max(until - time.monotonic(), 0.001))
        try:
            context = ssl.create_default_context()
            safe = context.wrap_socket(raw, server_hostname=self.host, do_handshake_on_connect=False)
        except BaseException:
            raw.close()
            raise
        # The timeout of a socket starts again with every byte; this timer ends the whole exchange.
        end = threading.Timer(max(until - time.monotonic(), 0.0), _shut, [safe])
        end.daemon = True
        end.start()
        try:
            with safe:
                safe.do_handshake()
                connection = http.client.HTTPConnection(self.host, port)
                connection.sock = safe
                sent.set()
                named = self.host if port == 443 else f"{self.host}:{port}"
                connection.request("POST", path, body, {"Host": named, "Connection": "close", **headers})
                with connection.getresponse() as response:
                    return response.status
        finally:
            end.cancel()
            end.join()

    def _address(self, port: int) -> str:
        """Resolve and check the address to connect to; a later change of the DNS name has no effect."""
        found = [str(info[4][0]) for info in socket.getaddrinfo(self.host, port, type=socket.SOCK_STREAM)]
        for one in found:
            self._refuse_private(ipaddress.ip_address(one.partition("%")[0]), "Nothing was sent.", _final)
        return found[0]

    def _refuse_private(self, address: Address, untouched: str, error: type[InvalidError] | type[_final]) -> None:
        if not self.allow_private and not _public(address):
            raise error(f"{self.what}: {self.host} is {address}, which is not a public address. {untouched}")


class _final(NotDelivered):  # noqa: N801 - never seen by name
    """Refused before anything was sent: another try would be refused too."""

    def __init__(self, why: str) -> None:
        super().__init__(why, again=False)


def _split(url: object) -> SplitResult | None:
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        return parts if parts is None or parts.port is None or parts.port > 0 else None
    except ValueError:
        return None


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _public(address: Address) -> bool:
    """Return whether an address is public, including one that is embedded in an IPv6 address."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return _public(inner)
    return address.is_global and not address.is_multicast


def _shut(safe: ssl.SSLSocket) -> None:
    """End the reading of another thread; `SSLSocket.shutdown` would remove the TLS state under it."""
    try:
        socket.socket.shutdown(safe, socket.SHUT_RDWR)
    except OSError:
        pass  # closed already
