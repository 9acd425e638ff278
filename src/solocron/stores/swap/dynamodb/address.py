"""Where a table of DynamoDB is, from a URL such as `dynamodb://eu-central-1/table`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from solocron.errors import ConfigurationError
from solocron.stores.url import StoreUrl

__all__ = ["DynamoAddress"]

_OPTIONS = frozenset({"endpoint", "profile"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoAddress:
    """A region, a table in it, and how to get there. Without a user the credentials are the platform's own."""

    parts: StoreUrl
    region: str
    table: str
    timeout: float
    endpoint: str | None = None
    profile: str | None = None

    @classmethod
    def of(cls, parts: StoreUrl, *, timeout: float) -> DynamoAddress:
        """Read a URL; refuse one with unknown options, without a region or without a table."""
        parts.refuse_unknown(_OPTIONS)
        table = parts.path.strip("/")
        if not re.fullmatch(r"[a-z0-9-]+", parts.hosts):
            raise ConfigurationError(
                f"store {parts.masked}: the host is a region; write dynamodb://eu-central-1/table. Nothing was opened."
            )
        if not re.fullmatch(r"[A-Za-z0-9_.-]{3,255}", table):
            raise ConfigurationError(
                f"store {parts.masked}: the path names the table, 3 to 255 letters, digits, '_', '.' or '-'. "
                "Nothing was opened."
            )
        if (parts.user is None) != (parts.password is None):
            raise ConfigurationError(
                f"store {parts.masked}: an access key comes with its secret, as key:secret@; without both, the "
                "credentials of the platform are taken. Nothing was opened."
            )
        endpoint = parts.options.get("endpoint")
        if endpoint is not None and urlsplit(endpoint).scheme not in ("http", "https"):
            raise ConfigurationError(
                f"store {parts.masked}: endpoint= begins with http:// or https://. Nothing was opened."
            )
        return cls(
            parts=parts,
            region=parts.hosts,
            table=table,
            timeout=timeout,
            endpoint=endpoint,
            profile=parts.options.get("profile"),
        )
