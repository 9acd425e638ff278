"""Where a server of the family is: hosts, TLS, and which host replied last; what etcd and NATS have in common."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field

from solocron.errors import ConfigurationError
from solocron.loopback import is_loopback
from solocron.stores.contract import Check
from solocron.stores.url import StoreUrl

__all__ = ["TLS_OPTIONS", "ServerAddress", "check_encryption", "hosts_of", "tls_context"]

TLS_OPTIONS = frozenset({"ca", "cert", "key", "insecure_tls"})


@dataclass(slots=True, kw_only=True)
class ServerAddress:
    """The servers of one cluster, and how to reach them."""

    parts: StoreUrl
    hosts: list[tuple[str, int]]
    """The one that replied last comes first."""
    prefix: str
    timeout: float
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    @property
    def verified(self) -> bool:
        """True if a server's certificate is verified."""
        return "insecure_tls" not in self.parts.options

    def failed(self, host: tuple[str, int]) -> None:
        """Put another server first, unless a call has done so already."""
        if self.hosts[0] == host:
            self.hosts = [*self.hosts[1:], host]


def hosts_of(parts: StoreUrl, *, port: int, sample: str) -> list[tuple[str, int]]:
    """Return the hosts of a URL; refuse one without any, and say how it is written."""
    hosts = [_host(word, parts, port) for word in parts.hosts.split(",") if word]
    if not hosts:
        raise ConfigurationError(f"store {parts.masked}: no host is named; write {sample}. Nothing was opened.")
    return hosts


def _host(word: str, parts: StoreUrl, usual: int) -> tuple[str, int]:
    host, colon, port = word.rpartition(":")
    if not colon or word.endswith("]"):
        host, port = word, str(usual)
    if not port.isdecimal() or not 0 < int(port) < 65_536 or not host:
        raise ConfigurationError(f"store {parts.masked}: a host is written name:port. Nothing was opened.")
    return host.strip("[]"), int(port)


def tls_context(parts: StoreUrl) -> ssl.SSLContext:
    """Return what the options of a URL ask of TLS."""
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


def check_encryption(address: ServerAddress, scheme: str) -> Iterator[Check]:
    """Yield the line of `doctor` about what others can read on the way; `scheme` is the one that switches TLS on."""
    if address.tls is None and not all(is_loopback(host) for host, _ in address.hosts):
        told = "off: documents and passwords cross the network as they are"
        yield Check("encryption", "WARN", told, f"use {scheme}://")
    elif not address.verified:
        yield Check("encryption", "WARN", "on, and the server's certificate is not verified", "remove insecure_tls")
