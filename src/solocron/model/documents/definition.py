"""A job as it was declared: the function to call, when, and under which policies. Pure data: the handler is a name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from solocron.model._fast.json_text import write_sorted
from solocron.model.documents.run import Shards
from solocron.model.policy import Backoff, CatchUp, Overlap

__all__ = ["CALENDAR_REVISION", "TARGET", "Definition"]

CALENDAR_REVISION = "calendar_revision"
"""Key under which a schedule carries the revision of its calendar. The store sets it, not the declaration."""

TARGET = "target"
"""Key under which the options for a carrier name what a forwarded message is for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A job's definition; durations in microseconds.

    The stored definition is authoritative; a node's own is only a proposal.
    """

    handler: str
    schedule: Mapping[str, Any] | None
    """The schedule in its stored form (`solocron.schedules.spec`); None: runs by trigger alone."""
    pool: str = "default"
    payload: Any = None
    timeout: int | None = None
    retries: int = 0
    backoff: Backoff = Backoff()
    on_crash: str = "retry"
    on_lost: str = "cancel"
    on_stuck: str = "hold"
    overlap: Overlap = Overlap()
    catch_up: CatchUp = CatchUp()
    start_within: int | None = None
    run_in: str = "auto"
    """Where its function is called; the name of a carrier if `hand_over` is set."""
    hand_over: Mapping[str, Any] | None = None
    """Options for the carrier that takes its runs to another process; None: they run on the node that claims them."""
    pause_after: int | None = None
    memory: int | None = None
    """Bytes of memory that the job's own process may use; None: no limit."""
    cpu: int | None = None
    """Cores that the job's own process may use."""
    enabled: bool = True
    shards: Shards | None = None
    """Number of shards of each slot, or their names."""
    nodes: int | str | None = None
    """Number of nodes on which each slot runs, or "all"."""
    prefer: str | None = None
    limit: str | None = None
    """Limit that its runs share with those of other jobs, and how many may run at once: `name:number`."""
    tags: tuple[str, ...] = ()
    """Words by which listings find it."""
    owner: str | None = None
    """The team or person that answers for it."""
    runbook: str | None = None
    """A link to what to do when it fails."""
    application: str | None = None
    """Application whose function it calls; None if unknown."""

    @property
    def target(self) -> str | None:
        """What its messages name on the other side of a carrier that only forwards them; None if a worker picks up."""
        return None if self.hand_over is None else self.hand_over.get(TARGET)

    def to_json(self) -> dict[str, Any]:
        """Return only the fields that differ from their defaults: a field added later does not change a fingerprint."""
        out: dict[str, Any] = {"handler": self.handler}
        if self.schedule is not None:
            out["schedule"] = dict(self.schedule)
        for name, default in _DEFAULTS.items():
            value = getattr(self, name)
            if value != default:
                out[name] = value.to_json() if name in _VALUES else value
        return out

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Definition:
        """Return the stored definition. A missing field has its default; an unknown one is ignored."""
        known = {
            name: _VALUES[name].from_json(value[name]) if name in _VALUES else value[name]
            for name in _DEFAULTS
            if name in value
        }
        for name in ("shards", "tags"):
            if isinstance(known.get(name), list):
                known[name] = tuple(known[name])
        return cls(handler=value["handler"], schedule=value.get("schedule"), **known)

    @property
    def fingerprint(self) -> str:
        """Return a digest that is equal for equal definitions.

        It does not depend on the node, on the application, or on the revision of the calendar.
        """
        value = self.to_json()
        value.pop("application", None)
        value.get("schedule", {}).pop(CALENDAR_REVISION, None)
        return hashlib.blake2b(write_sorted(value).encode(), digest_size=8).hexdigest()


_VALUES: dict[str, Any] = {"backoff": Backoff, "overlap": Overlap, "catch_up": CatchUp}
_DEFAULTS: dict[str, Any] = {f.name: f.default for f in fields(Definition) if f.name not in ("handler", "schedule")}
