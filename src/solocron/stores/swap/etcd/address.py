"""Where an etcd is: hosts, prefix, login and TLS, from a URL such as `etcd://user:password@h1,h2:2379/prefix`."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPSConnection

from solocron.stores.swap.address import TLS_OPTIONS, ServerAddress, hosts_of, tls_context
from solocron.stores.url import StoreUrl

__all__ = ["EtcdAddress"]

_PREFIX = "solocron"


class EtcdAddress(ServerAddress):
    """The members of one cluster, and how to reach them."""

    __slots__ = ()

    @classmethod
    def of(cls, parts: StoreUrl, *, timeout: float) -> EtcdAddress:
        """Read a URL; refuse one with unknown options or without a host."""
        secure = parts.scheme == "etcds"
        parts.refuse_unknown(TLS_OPTIONS if secure else frozenset())
        return cls(
            parts=parts,
            hosts=hosts_of(parts, port=2379, sample="etcd://host:2379/prefix"),
            prefix=parts.path.strip("/") or _PREFIX,
            timeout=timeout,
            tls=tls_context(parts) if secure else None,
        )

    def connection(self, timeout: float | None = None, to: tuple[str, int] | None = None) -> HTTPConnection:
        """Return a connection to a member, the first one unless another is named; not connected yet."""
        host, port = to or self.hosts[0]
        seconds = self.timeout if timeout is None else timeout
        if self.tls is not None:
            return HTTPSConnection(host, port, timeout=seconds, context=self.tls)
        return HTTPConnection(host, port, timeout=seconds)
