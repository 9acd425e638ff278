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

    @classmethod
    def of(cls, parts: StoreUrl, *, timeout: float) -> NatsAddress:
        """Read a URL; refuse one with unknown options or without a host."""
        parts.refuse_unknown(TLS_OPTIONS | {"replicas"})
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
            tls=tls_context(parts) if secure else None,
        )
