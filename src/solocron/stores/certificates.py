"""Says of a driver's error whether TLS failed for a reason that stays: that is refused, and not waited for.

Drivers hand these errors on as "cannot connect", without a code; only the words of OpenSSL and libpq tell them apart.
"""

from __future__ import annotations

from solocron.errors import StoreRefused

__all__ = ["refusal"]

_NOT_TRUSTED = (
    *("certificate verify failed", "certificate_verify_failed", "does not match host name", "root certificate file"),
    "host name from server certificate",
)
_NOT_OFFERED = ("server does not support ssl", "ssl is required but the server doesn't support it")
_OURS_NOT_TAKEN = ("alert unknown ca", "alert bad certificate", "alert certificate", "certificate required")


def refusal(where: str, text: str, *, authority: str, own: str) -> StoreRefused | None:
    """Return the error to raise; None if it is about something else. `authority` and `own` are options of the URL."""
    found = text.lower()
    if any(words in found for words in _NOT_TRUSTED):
        return StoreRefused(
            f"{where}: the server's certificate is not trusted ({text}); nothing was written. Name the file of the "
            f"authority that signed it ({authority}), call the server by the name in its certificate, or renew that."
        )
    if any(words in found for words in _NOT_OFFERED):
        return StoreRefused(
            f"{where} offers no TLS, which the URL demands ({text}); nothing was written. Switch it on in the server."
        )
    if any(words in found for words in _OURS_NOT_TAKEN):
        return StoreRefused(
            f"{where} does not accept our certificate ({text}); nothing was written. Name one that it trusts ({own})."
        )
    return None
