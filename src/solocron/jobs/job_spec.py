"""`JobSpec`: a job as data, as `add` takes it and as a stored job is read back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Unpack, cast

from solocron.errors import InvalidError
from solocron.jobs.options import DEFAULTS, AddOptions
from solocron.model.documents.definition import CALENDAR_REVISION, Definition
from solocron.model.policy import Backoff, CatchUp, Overlap
from solocron.schedules import Schedule, load

__all__ = ["APART", "JobSpec", "options_of"]


class JobSpec:
    """The arguments of one `add`: name, handler, schedule and options. They are checked when the job is added."""

    def __init__(
        self, name: str, handler: str | Callable[..., Any], schedule: str | Schedule, **options: Unpack[AddOptions]
    ) -> None:
        self.name = name
        self.handler = handler
        self.schedule = schedule
        self.options = options

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobSpec) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # its options may be changed

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"JobSpec({self.name!r}, {self.handler!r}, {self.schedule!r}{given})"

    @classmethod
    def of(cls, name: str, handler: str, spec: Mapping[str, Any] | None, options: Mapping[str, Any]) -> JobSpec:
        """Return the arguments with which `add` makes the job of this stored schedule and these options.

        Options that have their default are left out. A schedule that only code knows is refused.
        """
        if spec is None or spec["kind"] == "custom":
            raise InvalidError(f"{name} has a schedule that only its code knows; it cannot be added as data.")
        defaults: Mapping[str, Any] = DEFAULTS
        usual = {**defaults, "backoff": Backoff(), "overlap": Overlap(), "catch_up": CatchUp(), "on_holiday": "skip"}
        given = {option: value for option, value in options.items() if value not in (defaults[option], usual[option])}
        rule = {key: value for key, value in spec.items() if key not in APART}
        if spec.get("spread_by", name) != name:  # spread by its author's own seed, which no option can express
            rule |= {"spread": spec["spread"], "spread_by": spec["spread_by"]}
            del given["spread"]
        if rule["kind"] == "cron" and rule.get("seed", name) == name and "spread" not in rule:
            return cls(name, handler, rule["expression"], **cast("AddOptions", given))
        schedule = load(rule)
        assert schedule is not None
        for option in ("tz", "dst"):
            given.pop(option, None)
        return cls(name, handler, schedule, **cast("AddOptions", given))


APART = frozenset(("calendar", "on_holiday", CALENDAR_REVISION, "spread", "spread_by", "starts", "ends"))
"""Parts of a stored schedule that are options of their own."""


def options_of(definition: Definition) -> dict[str, Any]:
    """Return every option of a stored job that a store keeps, as a decorator takes it."""
    spec = definition.schedule or {}
    return {
        "tz": str(spec.get("tz", "UTC")),
        "dst": spec.get("dst"),
        "timeout": _span(definition.timeout),
        "retries": definition.retries,
        "backoff": definition.backoff,
        "on_crash": definition.on_crash,
        "on_lost": definition.on_lost,
        "on_stuck": definition.on_stuck,
        "overlap": definition.overlap,
        "catch_up": definition.catch_up,
        "start_within": _span(definition.start_within),
        "pool": definition.pool,
        "run_in": definition.run_in,
        "hand_over": definition.hand_over,
        "memory": definition.memory,
        "cpu": definition.cpu,
        "pause_after": definition.pause_after,
        "calendar": spec.get("calendar"),
        "on_holiday": spec.get("on_holiday"),
        "enabled": definition.enabled,
        "payload": definition.payload,
        "shards": definition.shards,
        "nodes": definition.nodes,
        "prefer": definition.prefer,
        "limit": definition.limit,
        "spread": spec.get("spread"),
        "starts": spec.get("starts"),
        "ends": spec.get("ends"),
        "tags": definition.tags,
        "owner": definition.owner,
        "runbook": definition.runbook,
    }


def _span(us: int | None) -> timedelta | None:
    return None if us is None else timedelta(microseconds=us)
