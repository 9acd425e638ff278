"""OIDC: a platform proves by a signed token that it may tick. It gives the role `tick` and never another.

Everything is fixed by the configuration and nothing by the token: the issuer, the audience, the caller, the algorithms
and where the keys come from. A token only chooses among the keys that its issuer publishes.
"""

from __future__ import annotations

import http.client
import json
import logging
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from solocron.errors import ConfigurationError, MissingExtra
from solocron.service.identity import KnownCaller, Via
from solocron.service.roles import Identity, Role

__all__ = ["Oidc", "OidcVerifier"]

log = logging.getLogger("solocron.service")

_ALGORITHMS = ("RS256", "ES256")
_LARGEST_TOKEN = 8 * 1024
_LARGEST_ANSWER = 64 * 1024
_PATIENCE = 3.0
_KEPT = 600.0
"""Seconds for which a key set is used. A key that its issuer has withdrawn is accepted for that long."""
_ASKED_AGAIN = 60.0
"""Seconds between two questions to the issuer: tokens with invented keys must not make us ask more often."""
_LEEWAY = 60
_NOTHING = "Nothing is served."


@dataclass(frozen=True, slots=True, kw_only=True)
class Oidc:
    """The tokens that may tick: an issuer, the audience that they are made for, and the caller by subject or email."""

    issuer: str
    audience: str
    subject: str | None = None
    email: str | None = None
    """Compared only if the issuer says that it has verified it."""
    ca_file: str | None = None
    """Certificates of an issuer of one's own; by default those of the machine."""

    def __post_init__(self) -> None:
        parts = _split(self.issuer)
        if parts is None:
            raise ConfigurationError(
                f"OIDC issuer {self.issuer!r:.100} is not an https URL such as https://accounts.google.com. {_NOTHING}"
            )
        if not isinstance(self.audience, str) or not self.audience:
            raise ConfigurationError(f"OIDC needs the audience that tokens are made for. {_NOTHING}")
        if (self.subject is None) == (self.email is None) or not (self.subject or self.email):
            raise ConfigurationError(f"OIDC needs the caller: subject or email, one of them. {_NOTHING}")


class OidcVerifier:
    """Tells whether a token is good. Every doubt is a refusal."""

    def __init__(
        self,
        wanted: Oidc,
        *,
        clock: Callable[[], float] = time.monotonic,
        fetch: Callable[[str], Mapping[str, Any]] | None = None,
    ) -> None:
        try:
            import jwt  # noqa: F401
        except ModuleNotFoundError:
            raise MissingExtra(f"OIDC needs the package 'PyJWT': pip install \"solocron[oidc]\". {_NOTHING}") from None
        self._wanted = wanted
        self._keys = _KeySet(wanted, clock=clock, fetch=fetch or _Fetch(wanted.ca_file))

    def find(self, token: str) -> KnownCaller | None:
        """Return the caller that a token proves; None if it proves nothing. It may ask the issuer for its keys."""
        try:
            return self._verified(token)
        except _Refused as refusal:
            log.warning("an OIDC token is refused: %s", refusal)
        except Exception as error:  # noqa: BLE001 - what a token can do to a parser must not decide
            log.warning("an OIDC token is refused: it cannot be read (%s)", type(error).__name__)
        return None

    def _verified(self, token: str) -> KnownCaller:
        import jwt

        if len(token) > _LARGEST_TOKEN or not token.isascii():
            raise _Refused("it is too long or not a token")
        header = jwt.get_unverified_header(token)
        if header.get("alg") not in _ALGORITHMS:
            raise _Refused("its algorithm is not RS256 or ES256")
        if header.get("crit") is not None:
            raise _Refused("it demands an extension")
        key = self._keys.find(header.get("kid"))
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=[header["alg"]],
                leeway=_LEEWAY,
                options={"require": ["exp", "iat", "iss", "aud", "sub"], "verify_aud": False, "verify_iss": False},
            )
        except jwt.PyJWTError as error:
            raise _Refused(f"its signature or its times are wrong ({type(error).__name__})") from None
        return self._check(claims)

    def _check(self, claims: Mapping[str, Any]) -> KnownCaller:
        wanted = self._wanted
        audience = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
        if claims["iss"] != wanted.issuer:
            raise _Refused("it is of another issuer")
        if audience != [wanted.audience]:
            raise _Refused("it is for another audience")
        if wanted.subject is not None and claims["sub"] != wanted.subject:
            raise _Refused("it is of another subject")
        if wanted.email is not None and (
            claims.get("email") != wanted.email or claims.get("email_verified") is not True
        ):
            raise _Refused("it is of another email, or of one that is not verified")
        return KnownCaller(Identity(wanted.email or wanted.subject or "", Role.TICK), Via.BEARER)


class _Refused(Exception):
    """Why a token proves nothing; for the log, and never for the caller."""


class _KeySet:
    """The keys of an issuer, kept for some minutes."""

    def __init__(self, wanted: Oidc, *, clock: Callable[[], float], fetch: Callable[[str], Mapping[str, Any]]) -> None:
        self._issuer = wanted.issuer
        self._clock = clock
        self._fetch = fetch
        self._lock = threading.Lock()
        self._keys: dict[str, Any] = {}
        self._read_at: float | None = None
        self._asked_at: float | None = None

    def find(self, kid: object) -> Any:
        """Return the key of an id; a set that is old, or has no such key, is asked for again."""
        if not isinstance(kid, str):
            raise _Refused("it names no key")
        with self._lock:
            now = self._clock()
            if self._read_at is not None and now - self._read_at >= _KEPT:
                self._keys, self._read_at = {}, None
            if kid not in self._keys and (self._asked_at is None or now - self._asked_at >= _ASKED_AGAIN):
                self._asked_at = now
                self._keys, self._read_at = self._ask(), now
            if kid not in self._keys:
                raise _Refused("its key is not one of the issuer's")
            return self._keys[kid]

    def _ask(self) -> dict[str, Any]:
        import jwt

        try:
            place = self._fetch(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
            if place.get("issuer") != self._issuer:
                raise ValueError("it describes another issuer")
            listed = self._fetch(place["jwks_uri"])["keys"]
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
            raise _Refused(f"the issuer's keys cannot be had ({type(error).__name__}: {error!s:.100})") from None
        found: dict[str, Any] = {}
        for one in listed[:100]:
            if not isinstance(one, dict) or one.get("use", "sig") != "sig" or not isinstance(one.get("kid"), str):
                continue
            kind = {"RSA": "RS256", "EC": "ES256"}.get(str(one.get("kty")))
            if kind is None or one.get("alg", kind) != kind:
                continue
            try:
                found[one["kid"]] = jwt.PyJWK(one, algorithm=kind)
            except jwt.PyJWTError:
                continue  # one bad key must not keep the others out
        return found


class _Fetch:
    """Gets a JSON object by HTTPS, with the certificate checked, without redirects, in bounded size and time."""

    def __init__(self, ca_file: str | None) -> None:
        try:
            self._context = ssl.create_default_context(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigurationError(
                f"OIDC ca_file {ca_file} cannot be used ({error.strerror or error}). {_NOTHING}"
            ) from None

    def __call__(self, url: str) -> Mapping[str, Any]:
        parts = _split(url)
        if parts is None:
            raise ValueError("it names keys that are not at an https URL")
        until = time.monotonic() + _PATIENCE
        connection = http.client.HTTPSConnection(parts[0], parts[1], timeout=_PATIENCE, context=self._context)
        try:
            connection.request("GET", parts[2], headers={"Accept": "application/json"})
            body = bytearray()
            with connection.getresponse() as response:
                if response.status != 200:
                    raise ValueError(f"it returned {response.status}")
                while part := response.read1(8 * 1024):
                    body += part
                    if len(body) > _LARGEST_ANSWER or time.monotonic() > until:
                        raise ValueError("its answer is too long or too slow")
        finally:
            connection.close()
        found = json.loads(body)
        if not isinstance(found, dict):
            raise ValueError("its answer is not an object")
        return found


def _split(url: object) -> tuple[str, int, str] | None:
    """Return host, port and path of a plain https URL."""
    try:
        parts = urlsplit(url) if isinstance(url, str) and url.isascii() and url.isprintable() else None
        if parts is None or parts.scheme != "https" or not parts.hostname or parts.username or parts.fragment:
            return None
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return parts.hostname, parts.port or 443, path
    except ValueError:
        return None
