"""Where a ZooKeeper is: members, folder, login and TLS, from a URL such as `zookeeper://user:password@h1,h2/folder`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from solocron.errors import ConfigurationError
from solocron.stores.swap.address import TLS_OPTIONS, ServerAddress, hosts_of, tls_context
from solocron.stores.url import StoreUrl

__all__ = ["ZooAddress"]

_FOLDER = "solocron"


@dataclass(slots=True, kw_only=True)
class ZooAddress(ServerAddress):
    """The members of one ensemble, and how to reach them."""

    login: str = "sasl"
    """How a user is told: `sasl`, which the server can refuse, or `digest`, which only rights on nodes refuse."""

    @classmethod
    def of(cls, parts: StoreUrl, *, timeout: float) -> ZooAddress:
        """Read a URL; refuse one with unknown options or without a host."""
        secure = parts.scheme == "zookeepers"
        parts.refuse_unknown((TLS_OPTIONS if secure else frozenset()) | {"login"})
        hosts = hosts_of(parts, port=2281 if secure else 2181, sample="zookeeper://host:2181/folder")
        folder = parts.path.strip("/") or _FOLDER
        if not re.fullmatch(r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*", folder):
            raise ConfigurationError(
                f"store {parts.masked}: the path is the folder of all nodes; take letters, digits, '_', '-' and '/'. "
                "Nothing was opened."
            )
        login = parts.options.get("login", "sasl")
        if login not in ("sasl", "digest"):
            raise ConfigurationError(f"store {parts.masked}: login is 'sasl' or 'digest'. Nothing was opened.")
        if (parts.user is None) != (parts.password is None):
            raise ConfigurationError(
                f"store {parts.masked}: a user comes with a password, as user:password@. Nothing was opened."
            )
        return cls(
            parts=parts,
            hosts=hosts,
            prefix=f"/{folder}",
            timeout=timeout,
            tls=tls_context(parts) if secure else None,
            login=login,
        )
