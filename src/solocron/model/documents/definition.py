"""What was declared of a job: what to call, when, and under which policies. Pure data: the handler is a name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from solocron.model._fast.json_text import write_sorted
from solocron.model.documents.run import Shards
from solocron.model.policy import Backoff, CatchUp, Overlap

__all__ = ["CALENDAR_REVISION", "Definition"]

CALENDAR_REVISION = "calendar_revision"
"""Where a schedule notes the revision of its calendar: the store's business, not the declaration's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """Durations in microseconds. The stored definition is the truth; a node's own is only what it proposes."""

    handler: str
    schedule: Mapping[str, Any] | None
    """How the schedule is written down (`solocron.schedules.spec`); None: runs by trigger alone."""
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
    pause_after: int | None = None
    memory: int | None = None
    """Bytes that a process of its own may use; None: as many as there are."""
    cpu: int | None = None
    """Cores that a process of its own may use."""
    enabled: bool = True
    shards: Shards | None = None
    """Into how many shards each slot is cut, or what they are called."""
    nodes: int | str | None = None
    """On how many nodes each slot runs, or "all"."""
    prefer: str | None = None
    limit: str | None = None
    """The limit that its runs share with those of other jobs, and how many may run: `name:number`."""
    application: str | None = None
    """The application whose function it calls; None: written by a release that did not say."""

    def to_json(self) -> dict[str, Any]:
        """Only what differs from the defaults, so that a field added later does not change a fingerprint."""
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
        """The definition that was written; what it does not name has its default, what we do not know is left out."""
        known = {
            name: _VALUES[name].from_json(value[name]) if name in _VALUES else value[name]
            for name in _DEFAULTS
            if name in value
        }
        if isinstance(known.get("shards"), list):
            known["shards"] = tuple(known["shards"])
        return cls(handler=value["handler"], schedule=value.get("schedule"), **known)

    @property
    def fingerprint(self) -> str:
        """Equal for equal definitions, on every node, in every application, under every revision of their calendar."""
        value = self.to_json()
        value.pop("application", None)
        value.get("schedule", {}).pop(CALENDAR_REVISION, None)
        return hashlib.blake2b(write_sorted(value).encode(), digest_size=8).hexdigest()


_VALUES: dict[str, Any] = {"backoff": Backoff, "overlap": Overlap, "catch_up": CatchUp}
_DEFAULTS: dict[str, Any] = {f.name: f.default for f in fields(Definition) if f.name not in ("handler", "schedule")}
