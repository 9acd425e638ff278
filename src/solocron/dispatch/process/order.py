"""Order for a child process before it begins: names, facts and limits as JSON, over a pipe of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from datetime import datetime, tzinfo
from typing import Any

from solocron.clock import from_us, to_us
from solocron.dispatch.contract import Away
from solocron.jobs.address import FunctionAddress, address_of
from solocron.stores.url import Secret

__all__ = ["Home", "order_of", "unpacked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Scheduler facts that a child needs. Without a `store`, `why` says why the child cannot write."""

    store: Secret | None
    why: str
    namespace: str
    lease: float
    setup: FunctionAddress | None
    """Called before anything else of the user's is imported."""
    around: Callable[[], Sequence[Callable[..., Any]]]
    make_run: Callable[..., Any]
    """Builds the run in the child, from the order; it travels by its address."""
    trace: Callable[[Any], str | None] = lambda run: None
    """Returns the trace of a run, as a W3C `traceparent`."""


def order_of(away: Away, home: Home) -> dict[str, Any]:
    """Return everything that the child needs; raise for what cannot be sent."""
    path = [entry or os.getcwd() for entry in sys.path]
    return {
        "function": asdict(address_of(away.handler.function, away.handler.place)),
        "setup": None if home.setup is None else asdict(home.setup),
        "around": [asdict(address_of(one, f"around({one!r:.60})")) for one in home.around()],
        "make_run": asdict(address_of(home.make_run, f"{home.make_run!r:.60}")),
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
    """Return a fact with the tag that says how to unpack it."""
    if isinstance(value, datetime):
        return ["at", to_us(value)]
    if is_dataclass(value) and not isinstance(value, type):
        return ["record", {field.name: _packed(getattr(value, field.name)) for field in fields(value)}]
    if isinstance(value, tuple):
        return ["tuple", [_packed(each) for each in value]]
    return ["plain", value]


def unpacked(packed: Any, zone: tzinfo, record: Callable[..., Any]) -> Any:
    """Return a fact as it was on the node: instants in the job's zone; `record` makes the one that has fields."""
    kind, value = packed
    if kind == "at":
        return from_us(value).astimezone(zone)
    if kind == "record":
        return record(**{name: unpacked(each, zone, record) for name, each in value.items()})
    if kind == "tuple":
        return tuple(unpacked(each, zone, record) for each in value)
    return value
