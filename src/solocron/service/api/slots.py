"""The slots of a job: what became of each, whether they add up, and why one did or did not run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from solocron.clock import from_us
from solocron.errors import StoreUnavailable
from solocron.schedules import load_zone
from solocron.service.board.accounting import BoardSums
from solocron.service.call import ApiCall
from solocron.service.zones import checked_zone
from solocron.views import AccountingView, SlotView, WhyView

__all__ = ["AccountingAnswer", "HourItem", "SlotItem", "SlotsAnswer", "accounting", "all_accounting", "slots", "why"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class HourItem:
    """The records of one hour by status: attempts that ended, and slots that did not run."""

    hour: datetime
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountingAnswer(BoardSums):
    """The slots that came due in the last 24 hours, of all jobs, compared with the schedules in the background."""

    by_hour: tuple[HourItem, ...]
    """The oldest first; the last one is open."""


def all_accounting(call: ApiCall) -> AccountingAnswer:
    """Return the slots of all jobs that came due in the last 24 hours, by what became of them, and which are missing.

    Jobs are compared in the background, a few at a time: `checked_jobs` of `of_jobs` so far.
    """
    call.watcher.look()
    now = call.watcher.now
    if now is None:
        raise StoreUnavailable("the store does not answer; nothing was compared yet.")
    sums = call.watcher.accounting.sums(now)
    hours = call.reads.counts_by_hour(now, sums.hours)
    found = tuple(HourItem(hour=from_us(hour), counts=counts) for hour, counts in hours.items())
    copied: dict[str, Any] = {field.name: getattr(sums, field.name) for field in fields(BoardSums)}
    return AccountingAnswer(**copied, by_hour=found)


def accounting(call: ApiCall) -> AccountingView:
    """Return the slots that came due in the last hours, by what became of them, and those that are not on record."""
    return call.reads.accounting(call.names["job"], call.given["hours"])
