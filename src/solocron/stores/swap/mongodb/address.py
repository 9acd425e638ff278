"""Where a MongoDB is, from a URL as its driver takes it: `mongodb://user:password@h1,h2,h3/database?replicaSet=rs0`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlencode

from pymongo.errors import ConfigurationError as DriverRefuses
from pymongo.errors import InvalidURI
from pymongo.uri_parser import parse_uri

from solocron.errors import ConfigurationError
from solocron.loopback import is_loopback
from solocron.stores.url import StoreUrl

__all__ = ["MongoAddress"]

_COLLECTION = "solocron"


@dataclass(frozen=True, slots=True, kw_only=True)
class MongoAddress:
    """A replica set, a database and a collection in it."""

    parts: StoreUrl
    url: str
    """For the driver, without user and password."""
    database: str
    collection: str
    timeout: float

    @classmethod
    def of(cls, parts: StoreUrl, *, timeout: float) -> MongoAddress:
        """Read a URL; refuse one that the driver refuses."""
        options = dict(parts.options)
        collection = options.pop("collection", _COLLECTION)
        database = parts.path.strip("/") or "solocron"
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,60}", collection) or not re.fullmatch(r"[A-Za-z0-9_-]{1,60}", database):
            raise ConfigurationError(
                f"store {parts.masked}: the path names the database and collection= the collection; take letters, "
                "digits, '_' or '-'. Nothing was opened."
            )
        if not parts.hosts:
            raise ConfigurationError(
                f"store {parts.masked}: no host is named; write mongodb://host1,host2/database. Nothing was opened."
            )
        url = f"{parts.scheme}://{parts.hosts}/{database}" + (f"?{urlencode(options)}" if options else "")
        if parts.scheme == "mongodb":  # the other scheme is looked up in the name service, which is not for here
            try:
                parse_uri(url, validate=True, warn=False)
            except (InvalidURI, DriverRefuses, ValueError) as error:
                raise ConfigurationError(
                    f"store {parts.masked}: the driver refuses the URL ({parts.scrub(str(error))}). Nothing was opened."
                ) from None
        return cls(parts=parts, url=url, database=database, collection=collection, timeout=timeout)

    @property
    def encrypts(self) -> bool:
        options = {name.lower(): value for name, value in self.parts.options.items()}
        wanted = options.get("tls", options.get("ssl", "true" if self.parts.scheme.endswith("srv") else "false"))
        return wanted.lower() == "true"

    @property
    def is_local(self) -> bool:
        return all(is_loopback(host.rpartition(":")[0] or host) for host in self.parts.hosts.split(","))
