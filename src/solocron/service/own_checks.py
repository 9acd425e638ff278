"""Lines of the doctor about the service itself: where it listens, who may ask, and under which names."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from solocron.doctor.line import ok, warn
from solocron.errors import ConfigurationError
from solocron.service.tokens import TokenFile, Tokens
from solocron.stores.contract import Check

if TYPE_CHECKING:
    from solocron.service.server import Listening

__all__ = ["check_callers", "checks_of"]

_OLD = 365 * 86_400
_DAY = 86_400


def checks_of(
    *,
    listening: Listening | None,
    tokens: Tokens | None,
    has_auth: bool = False,
    hosts: Collection[str],
    wall: Callable[[], float] = time.time,
) -> Sequence[Check]:
    """Return the lines; `listening` is None where another application serves it."""
    return (
        *(() if listening is None else (_address(listening), *_base(listening))),
        check_callers(tokens, has_auth=has_auth, now=wall()),
        ok("service hosts", f"it answers as {', '.join(sorted(hosts))}"),
    )


def _address(listening: Listening) -> Check:
    where = f"{listening.host}:{listening.port}" if listening.port else listening.host
    tls = "with TLS of its own" if listening.has_tls else "without TLS"
    if listening.proxies:
        tls = f"{tls}, behind {', '.join(listening.proxies)}"
    return ok("service address", f"{where}, {tls}{'; this machine only' if listening.is_loopback else ''}")


def _base(listening: Listening) -> Sequence[Check]:
    return (ok("service path", f"below {listening.base}"),) if listening.base else ()


def check_callers(tokens: Tokens | None, *, has_auth: bool = False, now: float | None = None) -> Check:
    """Return the line about who is let in: how many tokens of which role, and how old their file is."""
    now = time.time() if now is None else now
    name, host = "service tokens", "the host application knows its users" if has_auth else ""
    if tokens is None:
        return ok(name, host) if host else warn(name, "no caller is let in", "give auth= or tokens=")
    try:
        entries = tokens.entries()
    except ConfigurationError as error:
        return warn(name, f"no token is accepted: {error}", "mend the token file; it is read again at once")
    roles = Counter(str(entry.role) for entry in entries)
    told = ", ".join(f"{number} {role}" for role, number in sorted(roles.items())) or "none"
    age = _age(tokens, now)
    if age is not None:
        told += f"; the file was changed {age // _DAY} days ago" if age >= _DAY else "; the file was changed today"
    told = "; ".join(filter(None, (told, host)))
    if age is not None and age > _OLD:
        return warn(name, told, "give each caller a new token, and take the old lines out")
    return ok(name, told)


def _age(tokens: Tokens, now: float) -> int | None:
    if not isinstance(tokens, TokenFile):
        return None
    try:
        return max(0, int(now - tokens.path.stat().st_mtime))
    except OSError:
        return None
