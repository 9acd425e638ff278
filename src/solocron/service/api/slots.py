"""What became of each slot of a job, whether they add up, and why one did or did not run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from solocron.schedules import load_zone
from solocron.service.call import ApiCall
from solocron.service.zones import checked_zone
from solocron.views import AccountingView, SlotView, WhyView

__all__ = ["SlotItem", "SlotsAnswer", "accounting", "slots", "why"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotItem(SlotView):
    """One slot of a schedule and what became of it, with the time on the clocks of the zone."""

    local: str
    fold: int
    """1 if that time comes twice on this day and this is the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsAnswer:
    """Every slot of a span."""

    job: str
    slots: tuple[SlotItem, ...]


def slots(call: ApiCall) -> SlotsAnswer:
    """Return every slot of a span by the schedule, at most 2,000, with what became of it."""
    job, given = call.names["job"], call.given
    zone = None if given["tz"] is None else load_zone(checked_zone(given["tz"])).info
    found = []
    for view in call.reads.slots(job, given["from"], given["to"]):
        local = view.slot if zone is None else view.slot.astimezone(zone)
        copied: dict[str, Any] = {field.name: getattr(view, field.name) for field in fields(SlotView)}
        found.append(SlotItem(**copied, local=local.isoformat(), fold=local.fold))
    return SlotsAnswer(job=job, slots=tuple(found))


def why(call: ApiCall) -> WhyView:
    """Return why a slot did or did not run: a verdict, and the facts in the order in which one looks."""
    return call.reads.why(call.names["job"], call.given["at"])


def accounting(call: ApiCall) -> AccountingView:
    """Return the slots that came due in the last hours, by what became of them, and those that are not on record."""
    return call.reads.accounting(call.names["job"], call.given["hours"])
