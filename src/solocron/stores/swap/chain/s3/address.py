"""Where a bucket is, from a URL such as `s3://bucket/folder?region=eu-central-1` or `gs://key:secret@bucket/folder`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any
from urllib.parse import quote, urlencode

from solocron.errors import ConfigurationError, MissingExtra, StoreRefused
from solocron.stores.swap.chain.http import HttpAddress
from solocron.stores.swap.chain.s3.signing import AMAZON, GOOGLE, AccessKey, Dialect, signed
from solocron.stores.url import StoreUrl

__all__ = ["BucketAddress"]

_OPTIONS = frozenset({"endpoint", "region", "profile", "ca", "insecure_tls"})
_GOOGLE = "https://storage.googleapis.com"


@dataclass(slots=True, kw_only=True)
class BucketAddress:
    """A bucket, a folder in it, and the access key that opens it."""

    http: HttpAddress
    dialect: Dialect
    region: str
    bucket: str
    folder: str
    """With a slash at its end; empty: the bucket itself."""
    path: str
    """The path of the bucket: empty where the host names it."""
    profile: str | None = None
    _credentials: Any = field(default=None, repr=False)

    @classmethod
    def of(cls, parts: StoreUrl, *, timeout: float) -> BucketAddress:
        """Read a URL; refuse one with unknown options, without a bucket, or without what the vendor needs."""
        google = parts.scheme == "gs"
        parts.refuse_unknown(_OPTIONS - {"profile", "region"} if google else _OPTIONS)
        if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]", parts.hosts):
            raise ConfigurationError(
                f"store {parts.masked}: the host is a bucket; write {parts.scheme}://bucket/folder. Nothing was opened."
            )
        region, endpoint = parts.options.get("region", "auto" if google else ""), parts.options.get("endpoint")
        if not region:
            raise ConfigurationError(
                f"store {parts.masked}: the region of the bucket is missing; write "
                f"s3://{parts.hosts}/folder?region=eu-central-1. Nothing was opened."
            )
        if (parts.user is None) != (parts.password is None) or (google and parts.user is None):
            needed = "an HMAC key of a service account" if google else "an access key"
            rest = "" if google else "; without both, the credentials of the platform are taken"
            raise ConfigurationError(
                f"store {parts.masked}: {needed} comes with its secret, as key:secret@{rest}. Nothing was opened."
            )
        if endpoint is None and not google and "." not in parts.hosts:
            endpoint, path = f"https://{parts.hosts}.s3.{region}.amazonaws.com", ""
        else:
            usual = _GOOGLE if google else f"https://s3.{region}.amazonaws.com"
            endpoint, path = endpoint or usual, f"/{parts.hosts}"
        folder = parts.path.strip("/")
        return cls(
            http=HttpAddress.of(parts, endpoint, timeout=timeout),
            dialect=GOOGLE if google else AMAZON,
            region=region,
            bucket=parts.hosts,
            folder=f"{folder}/" if folder else "",
            path=path,
            profile=parts.options.get("profile"),
        )

    def signed(
        self, method: str, name: str | None, query: Mapping[str, str], headers: Mapping[str, str], body: bytes = b""
    ) -> tuple[str, dict[str, str]]:
        """Return path and headers of a call on an object, or on the bucket where there is no name."""
        path = f"{self.http.base}{self.path}/" + ("" if name is None else quote(self.folder + name, safe="/-_.~"))
        found = signed(
            self.dialect,
            self._key(),
            self.region,
            method=method,
            host=self.http.authority,
            path=path,
            query=query,
            headers=headers,
            body=body,
        )
        asked = urlencode(sorted(query.items()), quote_via=quote, safe="-_.~")
        return (f"{path}?{asked}" if asked else path), found

    def _key(self) -> AccessKey:
        parts = self.http.parts
        if parts.user is not None and parts.password is not None:
            return AccessKey(parts.user, parts.password.reveal())
        if self._credentials is None:
            self._credentials = self._of_platform()
        frozen = self._credentials.get_frozen_credentials()
        return AccessKey(frozen.access_key, frozen.secret_key, frozen.token or "")

    def _of_platform(self) -> Any:
        try:
            session = import_module("botocore.session").Session(profile=self.profile)
        except ModuleNotFoundError:
            raise MissingExtra(
                "an s3 store without an access key in its URL needs the package 'botocore': pip install "
                '"solocron[s3]". Nothing was opened.'
            ) from None
        try:
            found = session.get_credentials()
        except Exception as error:  # noqa: BLE001 - botocore has a dozen errors for a profile that cannot be used
            raise StoreRefused(f"{self.http.parts.masked}: {error}; nothing was done.") from None
        if found is None:
            raise StoreRefused(
                f"{self.http.parts.masked}: no credentials were found; nothing was done. Write key:secret@ into the "
                "URL, set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role."
            )
        return found
