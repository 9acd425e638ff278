"""Where a NATS is: servers, prefix, login and TLS, from a URL such as `nats://user:password@h1,h2:4222/prefix`."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field

from solocron.errors import ConfigurationError
from solocron.stores.url import StoreUrl

__all__ = ["NatsAddress"]

_PORT = 4222
_OPTIONS = frozenset({"replicas", "ca", "cert", "key", "insecure_tls"})
_PREFIX = "solocron"


@dataclass(slots=True)
class NatsAddress:
    """The servers of one cluster, and how to reach them."""

    parts: StoreUrl
    hosts: list[tuple[str, int]]
    """The one that replied last comes first."""
    prefix: str
    timeout: float
    replicas: int | None = None
    """Copies of a stream that is made; None: three where there are several servers, else one."""
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    verified: bool = True

    @classmethod
    def of(cls, parts: StoreUrl, *, timeout: float) -> NatsAddress:
        """Read a URL; refuse one with unknown options or without a host."""
        parts.refuse_unknown(_OPTIONS)
        hosts = [_host(word, parts) for word in parts.hosts.split(",") if word]
        if not hosts:
            raise ConfigurationError(
                f"store {parts.masked}: no host is named; write nats://host:4222/. Nothing was opened."
            )
        prefix = parts.path.strip("/") or _PREFIX
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", prefix):
            raise ConfigurationError(
                f"store {parts.masked}: the path names the streams; take 1 to 32 letters, digits, '_' or '-'. "
                "Nothing was opened."
            )
        replicas = parts.options.get("replicas")
        if replicas is not None and replicas not in ("1", "3", "5"):
            raise ConfigurationError(f"store {parts.masked}: replicas is 1, 3 or 5. Nothing was opened.")
        secure = parts.scheme == "tls" or bool({"ca", "cert", "insecure_tls"} & parts.options.keys())
        return cls(
            parts, hosts, prefix, timeout, None if replicas is None else int(replicas),
            _context(parts) if secure else None, "insecure_tls" not in parts.options,
        )  # fmt: skip

    def failed(self, host: tuple[str, int]) -> None:
        """Put another server first, unless a call has done so already."""
        if self.hosts[0] == host:
            self.hosts = [*self.hosts[1:], host]


def _host(word: str, parts: StoreUrl) -> tuple[str, int]:
    host, colon, port = word.rpartition(":")
    if not colon or word.endswith("]"):
        host, port = word, str(_PORT)
    if not port.isdecimal() or not 0 < int(port) < 65_536 or not host:
        raise ConfigurationError(f"store {parts.masked}: a host is written name:port. Nothing was opened.")
    return host.strip("[]"), int(port)


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
