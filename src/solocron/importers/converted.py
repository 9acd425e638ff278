"""The result of a conversion: a schedule, its options, and notes for its owner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any, TypeVar

from solocron.duration import format_duration
from solocron.errors import InvalidError
from solocron.jobs import decorators
from solocron.model.policy import Overlap
from solocron.schedules import At, Cron, Every

__all__ = ["Converted", "foreign_zone_name"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """A converted job: `declare` is the decorator, `decorator` its source; `notes` say what changes in behaviour."""

    schedule: Cron | Every | At
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def declare(self, **more: Any) -> Callable[[F], F]:
        """Return the decorator for the function; options given here win."""
        options = {**self.options, **more}
        if isinstance(self.schedule, Cron):
            return decorators.cron(self.schedule.expression, tz=self.schedule.zone, **options)
        if isinstance(self.schedule, Every):
            return decorators.every(self.schedule.period, **options)
        return decorators.at(self.schedule.moment, **options)

    def decorator(self) -> str:
        """Return the line to write above the function."""
        if isinstance(self.schedule, Cron):
            zone = "" if self.schedule.zone == "UTC" else f", tz={_text(self.schedule.zone)}"
            head = f"@cron({_text(self.schedule.expression)}{zone}"
        elif isinstance(self.schedule, Every):
            head = f"@every({_text(format_duration(self.schedule.period))}"
        else:
            head = f"@at(datetime.fromisoformat({_text(self.schedule.moment.isoformat())})"
        return head + "".join(f", {name}={_text(value)}" for name, value in self.options.items()) + ")"


def foreign_zone_name(zone: str | tzinfo) -> str:
    """Return the IANA name of a zone object of zoneinfo, pytz or tzlocal."""
    if isinstance(zone, str):
        return zone
    name = getattr(zone, "key", None) or getattr(zone, "zone", None) or str(zone)
    if not isinstance(name, str) or not name:
        raise InvalidError(f"{zone!r:.80} has no IANA name; give one, such as 'Europe/Paris'. Nothing was converted.")
    return name


def _text(value: Any) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, Overlap):
        return f"allow({value.most})"
    return repr(value)
