"""Where an etcd is: hosts, prefix, login and TLS, from a URL such as `etcd://user:password@h1,h2:2379/prefix`."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPSConnection

from solocron.errors import ConfigurationError
from solocron.stores.url import StoreUrl

__all__ = ["EtcdAddress"]

_PORT = 2379
_OPTIONS = frozenset({"ca", "cert", "key", "insecure_tls"})
_PREFIX = "solocron"


@dataclass(slots=True)
class EtcdAddress:
    """The members of one cluster, and how to reach them."""

    parts: StoreUrl
    hosts: list[tuple[str, int]]
    """The one that replied last comes first."""
    prefix: str
    timeout: float
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    verified: bool = True

    @classmethod
    def of(cls, parts: StoreUrl, *, timeout: float) -> EtcdAddress:
        """Read a URL; refuse one with unknown options or without a host."""
        known = _OPTIONS if parts.scheme == "etcds" else frozenset()
        parts.refuse_unknown(known)
        hosts = [_host(word, parts) for word in parts.hosts.split(",") if word]
        if not hosts:
            raise ConfigurationError(
                f"store {parts.masked}: no host is named; write etcd://host:2379/prefix. Nothing was opened."
            )
        prefix = parts.path.strip("/") or _PREFIX
        tls = _context(parts) if parts.scheme == "etcds" else None
        return cls(parts, hosts, prefix, timeout, tls, "insecure_tls" not in parts.options)

    @property
    def is_private(self) -> bool:
        """Whether what is sent can be read on the way: no TLS, and a host that is not this machine."""
        return self.tls is None and not all(_is_loopback(host) for host, _ in self.hosts)

    def connection(self, timeout: float | None = None) -> HTTPConnection:
        """Return a connection to the first member, not connected yet."""
        host, port = self.hosts[0]
        seconds = self.timeout if timeout is None else timeout
        if self.tls is not None:
            return HTTPSConnection(host, port, timeout=seconds, context=self.tls)
        return HTTPConnection(host, port, timeout=seconds)

    def failed(self, host: tuple[str, int]) -> None:
        """Put another member first, unless a call has done so already."""
        if self.hosts[0] == host:
            self.hosts = [*self.hosts[1:], host]


def _host(word: str, parts: StoreUrl) -> tuple[str, int]:
    host, colon, port = word.rpartition(":")
    if not colon or word.endswith("]"):
        host, port = word, str(_PORT)
    if not port.isdecimal() or not 0 < int(port) < 65_536 or not host:
        raise ConfigurationError(f"store {parts.masked}: a host is written name:port. Nothing was opened.")
    return host.strip("[]"), int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _context(parts: StoreUrl) -> ssl.SSLContext:
    options = parts.options
    try:
        context = ssl.create_default_context(cafile=options.get("ca"))
        if "cert" in options:
            context.load_cert_chain(options["cert"], options.get("key"))
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"store {parts.masked}: a file of ca=, cert= or key= cannot be read ({error}). Nothing was opened."
        ) from None
    if "insecure_tls" in options:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
