"""Identify a caller: by a bearer token, by the cookie of a login, or by the function of the host application.

A cookie is `v1.<issued>.<nonce>.<token>.<mac>`. The MAC is keyed by the token itself, and the token is verified by its
hash as a bearer token is. So every replica with the same token file reads it, taking a token out of the file ends its
logins, and a reader of the file of hashes can make none.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from solocron.clock import SECOND, from_us
from solocron.service.request import RequestHead
from solocron.service.roles import Identity
from solocron.service.tokens import Tokens

__all__ = [
    "LOGIN_LASTS",
    "HostAuth",
    "KnownCaller",
    "Via",
    "bearer",
    "cookie_name",
    "identify",
    "make_login",
    "set_cookie",
]

LOGIN_LASTS = 8 * 3600
_AHEAD = 60
"""Seconds by which the clock of the replica that issued a login may be ahead."""

HostAuth = Callable[[Mapping[str, str], Mapping[str, str]], "Identity | Awaitable[Identity | None] | None"]
"""The `auth=` of a host application: headers and cookies in, the identity out."""


class Via(StrEnum):
    """Ways to identify a caller."""

    BEARER = "bearer"
    COOKIE = "cookie"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class KnownCaller:
    """A caller that is known."""

    identity: Identity
    via: Via
    csrf: str | None = None
    """What a write with this cookie must show."""
    until: datetime | None = None
    """End of the login."""


def identify(head: RequestHead, tokens: Tokens | None, *, now: int) -> KnownCaller | None:
    """Return the caller of a request. One with both a token and a cookie is judged by its token alone."""
    if tokens is None:
        return None
    if head.header("authorization") is not None:
        token = bearer(head)
        found = None if token is None else tokens.identify(token)
        return None if found is None else KnownCaller(found, Via.BEARER)
    cookie = head.cookies.get(cookie_name(head))
    return None if cookie is None else _read_login(cookie, tokens, now=now)


def bearer(head: RequestHead) -> str | None:
    """Return the token of an `Authorization: Bearer` header."""
    scheme, _, token = (head.header("authorization") or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


def make_login(token: str, *, now: int) -> str:
    """Return the cookie of a login that begins now."""
    signed = f"v1.{now // SECOND}.{secrets.token_urlsafe(16)}"
    return f"{signed}.{token}.{_mac(token, 'login', signed)}"


def cookie_name(head: RequestHead) -> str:
    """Return the name of the cookie. The prefixes make browsers refuse one that another host or plain HTTP set."""
    if not head.secure:
        return "solocron_local"
    return "__Secure-solocron" if head.site else "__Host-solocron"


def set_cookie(head: RequestHead, value: str, *, lasts: int = LOGIN_LASTS) -> tuple[str, str]:
    """Return the header that sets the cookie of a login, or ends it with `lasts=0`."""
    secure = "; Secure" if head.secure else ""
    path = head.site or "/"
    return (
        "Set-Cookie",
        f"{cookie_name(head)}={value}; Path={path}; Max-Age={lasts}; HttpOnly; SameSite=Strict{secure}",
    )


def _read_login(cookie: str, tokens: Tokens, *, now: int) -> KnownCaller | None:
    parts = cookie.split(".")
    if len(cookie) > 256 or len(parts) != 5 or parts[0] != "v1" or not re.fullmatch(r"[0-9]{1,12}", parts[1]):
        return None
    signed, token, mac = ".".join(parts[:3]), parts[3], parts[4]
    issued = int(parts[1])
    if not hmac.compare_digest(_mac(token, "login", signed).encode(), mac.encode()):
        return None
    if not issued - _AHEAD <= now // SECOND < issued + LOGIN_LASTS:
        return None
    found = tokens.identify(token)
    if found is None:
        return None
    until = from_us((issued + LOGIN_LASTS) * SECOND)
    return KnownCaller(found, Via.COOKIE, csrf=_mac(token, "csrf", parts[2]), until=until)


def _mac(token: str, purpose: str, text: str) -> str:
    digest = hmac.digest(token.encode(), f"{purpose}\0{text}".encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
