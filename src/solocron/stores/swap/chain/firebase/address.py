"""Where a database is, from a URL such as `firebase://secret:<database secret>@project.region/path`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from solocron.errors import ConfigurationError
from solocron.stores.swap.chain.http import HttpAddress
from solocron.stores.url import StoreUrl

__all__ = ["FirebaseAddress"]

_OPTIONS = frozenset({"endpoint", "database", "ca", "insecure_tls"})
_SAMPLE = "firebase://secret:<database secret>@project.europe-west1/path"


@dataclass(frozen=True, slots=True, kw_only=True)
class FirebaseAddress:
    """A database, a path in it, and the secret that opens it."""

    http: HttpAddress
    path: str
    database: str
    """The name that a local emulator tells databases apart by; empty: the host does."""

    @classmethod
    def of(cls, parts: StoreUrl, *, timeout: float) -> FirebaseAddress:
        """Read a URL; refuse one with unknown options, without a project or a secret."""
        parts.refuse_unknown(_OPTIONS)
        path = parts.path.strip("/") or "solocron"
        if not re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)?", parts.hosts):
            raise ConfigurationError(
                f"store {parts.masked}: the host is a project and its region; write {_SAMPLE}. Nothing was opened."
            )
        if re.search(r"[.$#\[\]]", path):
            raise ConfigurationError(
                f"store {parts.masked}: a path has no '.', '$', '#', '[' or ']' in Firebase. Nothing was opened."
            )
        if parts.user != "secret" or parts.password is None:
            raise ConfigurationError(
                f"store {parts.masked}: the secret of the database is missing; write {_SAMPLE}, or let "
                "SOLOCRON_PASSWORD_COMMAND print it. Nothing was opened."
            )
        domain = "firebasedatabase.app" if "." in parts.hosts else "firebaseio.com"
        endpoint = parts.options.get("endpoint", f"https://{parts.hosts}.{domain}")
        return cls(
            http=HttpAddress.of(parts, endpoint, timeout=timeout),
            path=path,
            database=parts.options.get("database", ""),
        )

    def place(self, name: str, *, login: bool = True, shallow: bool = False) -> str:
        """Return the path of a call on a string, or on a folder of them; without `login` as any stranger would."""
        assert self.http.parts.password is not None
        asked = {"auth": self.http.parts.password.reveal()} if login else {}
        if shallow:
            asked["shallow"] = "true"
        if self.database:
            asked["ns"] = self.database
        # A key may have no dot, and nothing that Solocron names has a tilde.
        path = quote(f"{self.http.base}/{self.path}/{name.strip('/').replace('.', '~')}.json", safe="/~.")
        return f"{path}?{urlencode(asked)}" if asked else path
