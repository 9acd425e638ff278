"""From a URL to the server that takes writes: one server, the primary that sentinels name, or the node of a slot.

redis://user:password@host:6379/0          one server; rediss:// with TLS, valkey:// is the same as redis://
redis://s1:26379,s2:26379/0?sentinel=main  the primary of that name, asked for at every connect
redis://n1:6379,n2:6379?cluster=yes        the cluster's node that has this namespace; MOVED is followed
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.credentials import CredentialProvider
from redis.retry import Retry
from redis.sentinel import Sentinel

from solocron.errors import ConfigurationError
from solocron.stores.url import Renewed, StoreUrl

__all__ = ["OPTIONS", "Address", "is_cluster"]

OPTIONS = frozenset(
    ("cluster", "sentinel", "sentinel_user", "sentinel_password", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
) | {"insecure_skip_verify"}
_YES, _NO = ("1", "yes", "true", "on"), ("0", "no", "false", "off")


@dataclass(frozen=True, slots=True)
class Host:
    name: str
    port: int


class Address:
    """Make connections to the server that takes the writes at the moment."""

    def __init__(self, parts: StoreUrl, *, timeout: float) -> None:
        parts.refuse_unknown(OPTIONS)
        self.hosts = _hosts(parts)
        self.tls = parts.scheme == "rediss"
        self.verified = not _flag(parts, "insecure_skip_verify")
        self.sentinel = parts.options.get("sentinel")
        self.cluster = is_cluster(parts)
        self.database = _database(parts)
        if self.cluster and (self.sentinel is not None or self.database):
            raise ConfigurationError(
                f"store {parts.masked}: a cluster has no sentinels and no databases. Nothing was opened."
            )
        if len(self.hosts) > 1 and not self.cluster and self.sentinel is None:
            raise ConfigurationError(
                f"store {parts.masked}: several hosts need ?sentinel=<name of the primary> or ?cluster=yes. "
                "Nothing was opened."
            )
        self._timeout = timeout
        self._moved: Host | None = None
        self._sentinels = self._ask_sentinels(parts) if self.sentinel is not None else None
        # Everything that the driver would else choose by its version: protocol, timeouts, retries.
        self._options: dict[str, Any] = {
            **_credentials(parts),
            "db": self.database,
            "socket_timeout": timeout,
            "socket_connect_timeout": timeout,
            "socket_keepalive": True,
            "protocol": 2,
            "retry": Retry(NoBackoff(), 0),
            "health_check_interval": 0,
        }
        if self.tls:
            self._options |= _tls(parts)

    @property
    def loopback(self) -> bool:
        """Return whether nothing leaves this machine."""
        return all(
            host.name in ("localhost", "::1") or (host.name.startswith("127.") and host.name.count(".") == 3)
            for host in self.hosts
        )

    @property
    def seeds(self) -> int:
        """Return how many hosts may be asked first; sentinels are asked in turn by the driver."""
        return len(self.hosts) if self.cluster else 1

    def connection(self) -> Any:
        """Return a connection that is not connected yet; raise the driver's errors where sentinels do not answer."""
        host = self._moved or self.hosts[0]
        if self._sentinels is not None:
            host = Host(*self._sentinels.discover_master(self.sentinel))
        kind: Any = redis.SSLConnection if self.tls else redis.Connection
        return kind(host=host.name, port=host.port, **self._options)

    def moved(self, host: str, port: int) -> None:
        """A node of the cluster said who has the slot."""
        self._moved = Host(host or self.hosts[0].name, port)

    def failed(self) -> None:
        """Begin again with the next of the given hosts: the last one did not reply."""
        self._moved = None
        if self.cluster:
            self.hosts = (*self.hosts[1:], self.hosts[0])

    def _ask_sentinels(self, parts: StoreUrl) -> Any:
        options: dict[str, Any] = {
            "username": parts.options.get("sentinel_user"),
            "password": parts.options.get("sentinel_password"),
            "socket_timeout": self._timeout,
            "socket_connect_timeout": self._timeout,
            "protocol": 2,
            "retry": Retry(NoBackoff(), 0),
        }
        if self.tls:
            options |= {"ssl": True} | _tls(parts)
        sentinels: Any = Sentinel
        return sentinels([(host.name, host.port) for host in self.hosts], sentinel_kwargs=options)


def is_cluster(parts: StoreUrl) -> bool:
    """Return whether a URL names nodes of a cluster."""
    return _flag(parts, "cluster")


def _hosts(parts: StoreUrl) -> tuple[Host, ...]:
    default = 26379 if "sentinel" in parts.options else 6379
    return tuple(_host(parts, text, default) for text in parts.hosts.split(","))


def _host(parts: StoreUrl, text: str, default: int) -> Host:
    name, colon, port = text.rpartition(":")
    if text.endswith("]") or not colon:  # an IPv6 address without a port, or a name alone
        name, port = text, str(default)
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigurationError(f"store {parts.masked}: {port[:8]!r} is not a port. Nothing was opened.")
    return Host(name.strip("[]") or "localhost", int(port))


def _database(parts: StoreUrl) -> int:
    text = parts.path.strip("/")
    if text and not (text.isdigit() and int(text) < 10_000):
        raise ConfigurationError(
            f"store {parts.masked}: the path of a Redis URL is a database's number, such as /0. Nothing was opened."
        )
    return int(text or 0)


def _flag(parts: StoreUrl, name: str) -> bool:
    value = parts.options.get(name, "no").lower()
    if value not in _YES + _NO:
        raise ConfigurationError(f"store {parts.masked}: {name} is yes or no. Nothing was opened.")
    return value in _YES


def _tls(parts: StoreUrl) -> dict[str, Any]:
    verify = not _flag(parts, "insecure_skip_verify")
    files = {name: parts.options.get(name) for name in ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")}
    for name, file in files.items():
        if file is not None and not Path(file).is_file():
            raise ConfigurationError(f"store {parts.masked}: {name}= names no file. Nothing was opened.")
    return files | {"ssl_cert_reqs": "required" if verify else "none", "ssl_check_hostname": verify}


def _credentials(parts: StoreUrl) -> dict[str, Any]:
    """Return user and password; a password that may change is asked for by the driver at each connection."""
    if isinstance(parts.password, Renewed):
        return {"credential_provider": _Provider(parts.user, parts.password)}
    return {"username": parts.user, "password": parts.password.last if parts.password else None}


class _Provider(CredentialProvider):
    """Gives the driver the present password."""

    def __init__(self, user: str | None, password: Renewed) -> None:
        self._user = user
        self._password = password

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        password = self._password.reveal()
        return (self._user, password) if self._user else (password,)
