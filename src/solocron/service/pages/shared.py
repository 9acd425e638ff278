"""Pages of shared things: limits, locks, calendars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import ClassVar

from solocron.calendars.views import CalendarView
from solocron.effects.locks.listing import LockView
from solocron.service.pages.links import Links
from solocron.service.pages.listing import ListingPage, plain_row
from solocron.service.pages.parts import ActLink, Badge, Column, TableCell, TablePart, TableRow
from solocron.service.pages.words import Reading, short_fence
from solocron.views import LimitView

__all__ = [
    *("CalendarsPage", "LimitsPage", "LocksPage"),
    *("calendar_page", "calendars_page", "limits_page", "locks_page"),
]


class LimitsPage(ListingPage):
    """Limits across jobs."""

    section: ClassVar[str] = "limits"


class LocksPage(ListingPage):
    """Locks taken by hand."""

    section: ClassVar[str] = "locks"


class CalendarsPage(ListingPage):
    """Business calendars."""

    section: ClassVar[str] = "calendars"


def limits_page(limits: Sequence[LimitView], *, reading: Reading, links: Links) -> LimitsPage:
    """Make the page of limits: a table of them, and one of the permits that are taken."""
    listed = TablePart(
        label="Limits",
        columns=(
            Column(title="limit"),
            Column(title="taken", right=True),
            Column(title="of", right=True),
            Column(title="waiting", right=True),
            Column(title="jobs"),
        ),
        rows=tuple(
            TableRow(
                cells=(
                    TableCell(text=limit.name, strong=True),
                    TableCell(text=str(len(limit.taken)), tone="miss" if len(limit.taken) >= limit.most else ""),
                    TableCell(text=str(limit.most)),
                    TableCell(text=str(limit.waiting), tone="miss" if limit.waiting else ""),
                    TableCell(text=", ".join(limit.jobs), wide=True),
                )
            )
            for limit in limits
        ),
        empty="No job names a limit.",
    )
    permits = TablePart(
        label="Permits taken",
        columns=(Column(title="permit"), Column(title="node"), Column(title="since"), Column(title="run")),
        rows=tuple(
            TableRow(
                cells=(
                    TableCell(text=permit.permit, mono=True),
                    TableCell(text=permit.node or "–", href=links.node(permit.session)),
                    TableCell(text=reading.stamp(permit.since, seconds=True) if permit.since else "–"),
                    TableCell(text=permit.run or "not claimed yet", href=links.run(permit.run) if permit.run else None),
                )
            )
            for limit in limits
            for permit in limit.taken
        ),
        empty="No permit is taken.",
    )
    return LimitsPage(title="Limits", lead="how many runs of several jobs may run at once", tables=(listed, permits))


_LOCK_STATES = {"held": ("run", "lock"), "kept": ("wait", "clock"), "free": ("ok", "ok"), "orphaned": ("miss", "warn")}


def locks_page(locks: Sequence[LockView], *, reading: Reading, links: Links, operates: bool) -> LocksPage:
    """Make the page of locks; a held one can be released, with a reason."""

    def acts(lock: LockView) -> tuple[ActLink, ...]:
        may = operates and lock.state in ("held", "orphaned")
        return (ActLink(label="Release", href=links.lock(lock.name, "release"), dialog=True),) if may else ()

    table = TablePart(
        label="Locks",
        columns=(
            *(Column(title="lock"), Column(title="state"), Column(title="owner"), Column(title="since")),
            *(
                Column(title="until"),
                Column(title="fence", narrow=False),
                Column(title="waiting", right=True),
                Column(title="", right=True),
            ),
        ),
        rows=tuple(
            TableRow(
                cells=(
                    TableCell(text=lock.name, strong=True),
                    TableCell(
                        badge=Badge(tone=_LOCK_STATES[lock.state][0], icon=_LOCK_STATES[lock.state][1], word=lock.state)
                    ),
                    TableCell(text=lock.owner or "–"),
                    TableCell(text=reading.stamp(lock.since, seconds=True) if lock.since else "–"),
                    TableCell(
                        text=reading.stamp(lock.until, seconds=True)
                        if lock.until
                        else "its session ends"
                        if lock.session
                        else "–"
                    ),
                    TableCell(text=short_fence(lock.fence), title=str(lock.fence), mono=True),
                    TableCell(text=str(lock.waiting), tone="miss" if lock.waiting else ""),
                    TableCell(acts=acts(lock)),
                )
            )
            for lock in locks
        ),
        empty="No lock was ever taken here.",
        stacked=True,
    )
    forced = TablePart(
        label="Released by force",
        columns=(Column(title="lock"), Column(title="when"), Column(title="by"), Column(title="why")),
        rows=tuple(
            plain_row(lock.name, _when(one.get("at"), reading), str(one.get("by") or "–"), str(one.get("why", "")))
            for lock in locks
            for one in lock.forced
        ),
        empty="None.",
    )
    tables = (table, forced) if forced.rows else (table,)
    return LocksPage(title="Locks", lead="leases taken by hand, outside any job", tables=tables)


def _when(at: object, reading: Reading) -> str:
    return reading.stamp(at) if isinstance(at, datetime) else str(at or "–")


def calendars_page(calendars: Sequence[CalendarView], *, reading: Reading, links: Links) -> CalendarsPage:
    """Make the page of calendars, with the days off ahead."""
    today = reading.local(reading.now).date()
    table = TablePart(
        label="Calendars",
        columns=(
            Column(title="calendar"),
            Column(title="revision", right=True),
            Column(title="weekend"),
            Column(title="next days off"),
            Column(title="jobs"),
        ),
        rows=tuple(
            TableRow(
                cells=(
                    TableCell(text=one.name, strong=True, href=links.calendar(one.name)),
                    TableCell(text=str(one.revision)),
                    TableCell(text=", ".join(one.weekend) or "none"),
                    TableCell(text=_ahead(one.holidays, today)),
                    TableCell(text=", ".join(one.jobs) or "–", wide=True),
                )
            )
            for one in calendars
        ),
        empty="No calendar is in the store.",
    )
    return CalendarsPage(title="Calendars", lead="days on which slots are left out or moved", tables=(table,))


def calendar_page(calendar: CalendarView, *, reading: Reading, links: Links) -> CalendarsPage:
    """Make the page of one calendar: its days off and the jobs under it."""
    days = TablePart(
        label="Days off",
        columns=(Column(title="day"), Column(title="name")),
        rows=tuple(
            plain_row(f"{day:%a} {day.day} {day:%b %Y}", name) for day, name in sorted(calendar.holidays.items())
        ),
        empty="It has no days off but its weekend.",
    )
    jobs = TablePart(
        label="Jobs",
        columns=(Column(title="job"),),
        rows=tuple(TableRow(cells=(TableCell(text=job, href=links.job(job), strong=True),)) for job in calendar.jobs),
        empty="No job is under it.",
    )
    weekend = ", ".join(calendar.weekend) or "no day"
    lead = f"revision {calendar.revision}; its weekend is {weekend}"
    return CalendarsPage(title=calendar.name, lead=lead, tables=(days, jobs))


def _ahead(holidays: Mapping[date, str], today: date) -> str:
    coming = sorted((day, name) for day, name in holidays.items() if day >= today)[:3]
    return "; ".join(f"{day:%a} {day.day} {day:%b %Y} {name}" for day, name in coming) or "none on record"
