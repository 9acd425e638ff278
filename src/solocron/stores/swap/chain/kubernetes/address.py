"""Where a cluster is, from a URL such as `kubernetes://namespace/prefix`; inside a Pod nothing more is needed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from solocron.errors import ConfigurationError, StoreRefused
from solocron.stores.swap.chain.http import HttpAddress
from solocron.stores.url import StoreUrl

__all__ = ["ClusterAddress"]

_OPTIONS = frozenset({"endpoint", "ca", "token_file", "insecure_tls"})
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_INSIDE = "https://kubernetes.default.svc"
_PREFIX = "solocron"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAddress:
    """The API of a cluster, a namespace in it, how names begin, and the account of the Pod."""

    http: HttpAddress
    namespace: str
    prefix: str
    token_file: Path = field(default=_ACCOUNT / "token")

    @classmethod
    def of(cls, parts: StoreUrl, *, timeout: float) -> ClusterAddress:
        """Read a URL; refuse one with unknown options or without a namespace."""
        parts.refuse_unknown(_OPTIONS)
        prefix = parts.path.strip("/") or _PREFIX
        for word, what in ((parts.hosts, "the host is a namespace of the cluster"), (prefix, "the path begins names")):
            if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?", word):
                raise ConfigurationError(
                    f"store {parts.masked}: {what}, of lower-case letters, digits and '-'; write "
                    "kubernetes://namespace/solocron. Nothing was opened."
                )
        authority = _ACCOUNT / "ca.crt"
        if "ca" not in parts.options and authority.exists():
            parts = replace(parts, options={**parts.options, "ca": str(authority)})
        endpoint = parts.options.get("endpoint", _INSIDE)
        token_file = Path(parts.options.get("token_file", _ACCOUNT / "token"))
        http = HttpAddress.of(parts, endpoint, timeout=timeout)
        return cls(http=http, namespace=parts.hosts, prefix=prefix, token_file=token_file)

    def headers(self) -> dict[str, str]:
        """Return the headers of a call: the token of the account, which Kubernetes renews in its file."""
        try:
            token = self.token_file.read_text().strip()
        except OSError as error:
            raise StoreRefused(
                f"{self.http.parts.masked}: the account's token cannot be read ({error.strerror}: {self.token_file}); "
                "nothing was done. Run inside a Pod with a service account, or write token_file=."
            ) from None
        return {"Authorization": f"Bearer {token}", "Accept": "application/json"}
