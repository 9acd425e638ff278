"""Where a container is, and how its key signs a call, from a URL such as `azblob://key:<account key>@account/box`."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import formatdate
from urllib.parse import parse_qsl, quote, urlencode

from solocron.errors import ConfigurationError
from solocron.stores.swap.chain.http import HttpAddress
from solocron.stores.url import StoreUrl

__all__ = ["AzureAddress"]

_OPTIONS = frozenset({"endpoint", "ca", "insecure_tls"})
_VERSION = "2021-12-02"
_SAMPLE = "azblob://key:<account key>@account/container"


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureAddress:
    """An account, a container in it, a folder in that, and the secret that opens it."""

    http: HttpAddress
    account: str
    container: str
    folder: str
    """With a slash at its end; empty: the container itself."""

    @classmethod
    def of(cls, parts: StoreUrl, *, timeout: float) -> AzureAddress:
        """Read a URL; refuse one with unknown options, without an account, a container or a secret."""
        parts.refuse_unknown(_OPTIONS)
        container, _, folder = parts.path.strip("/").partition("/")
        if not re.fullmatch(r"[a-z0-9]{3,24}", parts.hosts) or not re.fullmatch(r"[a-z0-9-]{3,63}", container):
            raise ConfigurationError(
                f"store {parts.masked}: the host is a storage account and the path names a container in it; write "
                f"{_SAMPLE}. Nothing was opened."
            )
        if parts.user not in ("key", "sas") or parts.password is None:
            raise ConfigurationError(
                f"store {parts.masked}: the account's key or a SAS token is missing; write {_SAMPLE}, or sas:<token>@, "
                "with %2F for a '/'; or let SOLOCRON_PASSWORD_COMMAND print it. Nothing was opened."
            )
        endpoint = parts.options.get("endpoint", f"https://{parts.hosts}.blob.core.windows.net")
        return cls(
            http=HttpAddress.of(parts, endpoint, timeout=timeout),
            account=parts.hosts,
            container=container,
            folder=f"{folder.strip('/')}/" if folder.strip("/") else "",
        )

    def signed(
        self, method: str, name: str | None, query: Mapping[str, str], headers: Mapping[str, str], length: int
    ) -> tuple[str, dict[str, str]]:
        """Return path and headers of a call on a blob, or on the container where there is no name."""
        path = f"{self.http.base}/{self.container}" + ("" if name is None else f"/{quote(self.folder + name)}")
        sent = {**headers, "x-ms-date": formatdate(usegmt=True), "x-ms-version": _VERSION}
        password = self.http.parts.password
        assert password is not None
        secret = password.reveal()
        if self.http.parts.user == "sas":
            query = {**query, **dict(parse_qsl(secret.lstrip("?"), keep_blank_values=True))}
        else:
            told = _to_sign(method, f"/{self.account}{path}", query, sent, length)
            signature = hmac.new(self._key(secret), told.encode(), hashlib.sha256).digest()
            sent["Authorization"] = f"SharedKey {self.account}:{base64.b64encode(signature).decode()}"
        return (f"{path}?{urlencode(query, quote_via=quote)}" if query else path), sent

    def _key(self, secret: str) -> bytes:
        try:
            return base64.b64decode(secret, validate=True)
        except binascii.Error:
            raise ConfigurationError(
                f"store {self.http.parts.masked}: the account's key is not base64; copy it whole, with %2F for a '/' "
                "and %2B for a '+'. Nothing was opened."
            ) from None


def _to_sign(method: str, resource: str, query: Mapping[str, str], headers: Mapping[str, str], length: int) -> str:
    """Return the text that is signed with the account's key, as the service builds it from a request."""
    plain = {name.lower(): value for name, value in headers.items()}
    lines = [method, "", "", str(length) if length else "", "", plain.get("content-type", ""), "", "", ""]
    lines += [plain.get("if-none-match", ""), "", ""]
    lines += sorted(f"{name}:{value}" for name, value in plain.items() if name.startswith("x-ms-"))
    lines += [resource, *sorted(f"{name.lower()}:{value}" for name, value in query.items())]
    return "\n".join(lines)
