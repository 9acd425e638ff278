"""Where a NATS is: servers, prefix, login and TLS, from a URL such as `nats://user:password@h1,h2:4222/prefix`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from solocron.errors import ConfigurationError
from solocron.stores.swap.address import TLS_OPTIONS, ServerAddress, hosts_of, tls_context
from solocron.stores.url import StoreUrl

__all__ = ["NatsAddress"]

_PREFIX = "solocron"


@dataclass(slots=True, kw_only=True)
class NatsAddress(ServerAddress):
    """The servers of one cluster, and how to reach them."""

    replicas: int | None = None
    """Copies of a stream that is made; None: three where there are several servers, else one."""
    monitors: tuple[tuple[str, int], ...] = ()
    """Where each server tells its settings over HTTP; empty: the URL does not say."""

    @classmethod
    def of(cls, parts: StoreUrl, *, timeout: float) -> NatsAddress:
        """Read a URL; refuse one with unknown options or without a host."""
        parts.refuse_unknown(TLS_OPTIONS | {"replicas", "monitor"})
        hosts = hosts_of(parts, port=4222, sample="nats://host:4222/")
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
            parts=parts,
            hosts=hosts,
            prefix=prefix,
            timeout=timeout,
            replicas=None if replicas is None else int(replicas),
            monitors=_monitors(parts, hosts),
            tls=tls_context(parts) if secure else None,
        )


def _monitors(parts: StoreUrl, hosts: list[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Return where the servers are monitored: `monitor=8222`, or a port for each host in their order."""
    words = parts.options.get("monitor", "").split(",")
    if words == [""]:
        return ()
    if len(words) not in (1, len(hosts)) or not all(word.isdecimal() and 0 < int(word) < 65_536 for word in words):
        raise ConfigurationError(
            f"store {parts.masked}: monitor is the port at which the servers are monitored, 8222 say, or one for each "
            "host. Nothing was opened."
        )
    ports = words * len(hosts) if len(words) == 1 else words
    return tuple((host, int(port)) for (host, _), port in zip(hosts, ports, strict=True))
