"""What a child process is told before it begins: names, facts and bounds as JSON, over a pipe of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any

from solocron.clock import to_us
from solocron.dispatch.contract import Away
from solocron.jobs.address import address_of
from solocron.stores.url import Secret

__all__ = ["Home", "order_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """What a child needs of the scheduler it belongs to. Without a `store`, `why` says what the child cannot do."""

    store: Secret | None
    why: str
    namespace: str
    lease: float
    around: Callable[[], Sequence[Callable[..., Any]]]


def order_of(away: Away, home: Home) -> dict[str, Any]:
    """Everything that the child needs; raises for what could not travel."""
    path = [entry or os.getcwd() for entry in sys.path]
    return {
        "function": asdict(address_of(away.handler.function, away.handler.place)),
        "around": [asdict(address_of(one, f"around({one!r:.60})")) for one in home.around()],
        "facts": {name: _packed(value) for name, value in vars(away.run).items() if not name.startswith("_")},
        "zone": away.zone,
        "session": away.session,
        "scope": away.scope,
        "memory": away.memory,
        "cpu": away.cpu,
        "until": away.trusted_until(),
        "store": None if home.store is None else home.store.reveal(),
        "why": home.why,
        "namespace": home.namespace,
        "lease": home.lease,
        "path": path,
        "argv": sys.argv,
        "environ": os.environ.get("PYTHONPATH"),
    }


def _packed(value: Any) -> Any:
    """A fact with the word that says how to unpack it."""
    if isinstance(value, datetime):
        return ["at", to_us(value)]
    if is_dataclass(value) and not isinstance(value, type):
        return ["previous", {field.name: _packed(getattr(value, field.name)) for field in fields(value)}]
    if isinstance(value, tuple):
        return ["tuple", [_packed(each) for each in value]]
    return ["plain", value]
