"""Proofs that a caller may tick: a signature with a shared secret, an OIDC token, or a function of yours."""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import cast

from solocron.errors import ConfigurationError
from solocron.service.oidc import Oidc, OidcVerifier
from solocron.stores.url import Secret
from solocron.telemetry.messages import signature

__all__ = ["Proof", "ProofVerdict", "check_proof", "oidc", "signed"]

_WINDOW = 300
"""Seconds that a signature is good for, on both sides of our clock."""
_SHORTEST = 16
_SIGNATURE = re.compile(r"t=([0-9]{1,12}),v1=[0-9a-f]{64}")
_NOTHING = "Nothing is served."


class ProofVerdict(Enum):
    """The judgement of a proof, with its HTTP status."""

    GOOD = 200
    MISSING = 401
    WRONG = 403


Proof = Callable[[Mapping[str, str], bytes], ProofVerdict]
"""Judges the headers, whose names are in lower case, and the body of a request."""


def signed(secret: str) -> Proof:
    """Accept requests with the header `Solocron-Signature`, as the webhooks of alarms have it, for five minutes."""
    if not isinstance(secret, str) or len(secret) < _SHORTEST:
        raise ConfigurationError(f"signed(): the secret needs {_SHORTEST} characters at the least. {_NOTHING}")
    kept = Secret(secret)

    def judge(headers: Mapping[str, str], body: bytes) -> ProofVerdict:
        given = headers.get("solocron-signature")
        if given is None:
            return ProofVerdict.MISSING
        found = _SIGNATURE.fullmatch(given)
        if found is None or abs(time.time() - int(found[1])) > _WINDOW:
            return ProofVerdict.WRONG
        right = signature(kept.reveal(), int(found[1]), body)
        return ProofVerdict.GOOD if hmac.compare_digest(right, given) else ProofVerdict.WRONG

    return judge


def oidc(
    *,
    issuer: str,
    audience: str,
    emails: Iterable[str] = (),
    subject: str | None = None,
    ca_file: str | None = None,
) -> Proof:
    """Accept tokens of an issuer, made for this audience, of a subject or of a verified email."""
    if isinstance(emails, str):
        raise ConfigurationError(f"oidc(): emails= is a list, not a string; did you mean [{emails!r}]? {_NOTHING}")
    callers = [Oidc(issuer=issuer, audience=audience, email=email, ca_file=ca_file) for email in emails]
    if subject is not None:
        callers.append(Oidc(issuer=issuer, audience=audience, subject=subject, ca_file=ca_file))
    if not callers:
        raise ConfigurationError(f"oidc() needs emails= or subject=: whose tokens may tick. {_NOTHING}")
    verifiers = [OidcVerifier(one) for one in callers]

    def judge(headers: Mapping[str, str], body: bytes) -> ProofVerdict:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return ProofVerdict.MISSING
        known = any(one.find(token.strip()) is not None for one in verifiers)
        return ProofVerdict.GOOD if known else ProofVerdict.WRONG

    return judge


def check_proof(verify: object) -> Proof:
    """Return the judge: one of ours, or a function of the headers alone, whose truth is the verdict."""
    if verify is None or not callable(verify):
        raise ConfigurationError(
            "TickEndpoint needs verify=: signed(secret), oidc(...), or a function of the headers. Without a proof "
            f"every caller could run your jobs. {_NOTHING}"
        )
    if getattr(verify, "__module__", None) == __name__:
        return cast("Proof", verify)

    def judge(headers: Mapping[str, str], body: bytes) -> ProofVerdict:
        return ProofVerdict.GOOD if verify(headers) else ProofVerdict.WRONG

    return judge
