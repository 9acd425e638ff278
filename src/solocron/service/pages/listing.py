"""Pages that are one table or one list: alarms, limits, locks, calendars, audit, doctor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import ClassVar

from solocron.calendars.views import CalendarView
from solocron.effects.locks.listing import LockView
from solocron.service.pages.links import Links
from solocron.service.pages.parts import Act, Badge, Choice, Choices, Column, Entry, TableCell, TablePart, TableRow
from solocron.service.pages.words import Reading, plural, short_fence
from solocron.stores.contract import Check
from solocron.views import AlarmsView, AlarmView, LimitView

__all__ = [
    *("AlarmsPage", "AuditEntry", "AuditPage", "CalendarsPage", "DoctorPage", "LimitsPage", "ListingPage", "LocksPage"),
    *("alarm_entry", "alarms_page", "audit_page", "calendars_page", "doctor_page", "limits_page", "locks_page"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingPage:
    """A page with a lead, ways to see it, entries, tables, and links to further pages."""

    template: ClassVar[str] = "listing.html"
    section: ClassVar[str] = ""
    title: str
    lead: str
    choices: tuple[Choices, ...] = ()
    entries: tuple[Entry, ...] = ()
    calm: str = ""
    """What stands there when there are no entries."""
    tables: tuple[TablePart, ...] = ()
    acts: tuple[Act, ...] = ()
    older: str | None = None
    newer: str | None = None


class AlarmsPage(ListingPage):
    """The open alarms, what was told of them, and the silences."""

    section: ClassVar[str] = "alarms"


class LimitsPage(ListingPage):
    """Limits across jobs."""

    section: ClassVar[str] = "limits"


class LocksPage(ListingPage):
    """Locks taken by hand."""

    section: ClassVar[str] = "locks"


class CalendarsPage(ListingPage):
    """Business calendars."""

    section: ClassVar[str] = "calendars"


class AuditPage(ListingPage):
    """Acts of people and programs."""

    section: ClassVar[str] = "audit"


class DoctorPage(ListingPage):
    """The checks of the doctor."""

    section: ClassVar[str] = "doctor"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One act: when, by whom, through what, on what, and how it ended."""

    at: datetime
    who: str
    role: str
    via: str
    act: str
    subject: str
    note: str
    result: str
    """`asked` while its outcome is unknown."""


def alarm_entry(alarm: AlarmView, reading: Reading, links: Links) -> Entry:
    """Make the entry of an alarm, with its next step."""
    acts = [Act(label="Open", href=links.to(_subject(alarm.subject, links)))] if alarm.subject else []
    owner = f"; {alarm.owner} answers for it" if alarm.owner else ""
    runbook = f"; runbook: {alarm.runbook}" if alarm.runbook else ""
    silenced = f" · silenced until {reading.stamp(alarm.silenced_until)}" if alarm.silenced_until else ""
    tone = "fail" if alarm.counts else "skip"
    return Entry(
        title=alarm.subject or alarm.kind,
        about=f"{alarm.kind.replace('_', ' ')} since {reading.stamp(alarm.since)}{silenced}",
        words=f"{alarm.detail}{owner}{runbook}",
        tone=tone,
        icon="fail" if alarm.counts else "bell",
        acts=tuple(acts),
    )


def _subject(subject: str, links: Links) -> str:
    # Relative to the base, which `to` puts before it.
    return links.job(subject).removeprefix(links.base)


def alarms_page(view: AlarmsView, *, closed: bool, reading: Reading, links: Links) -> AlarmsPage:
    """Make the page of alarms."""
    states = Choices(
        label="State",
        choices=tuple(
            _choice(word, links.to("/alarms", state=word), word == ("closed" if closed else "open"))
            for word in ("open", "closed")
        ),
    )
    counts = sum(alarm.counts for alarm in view.alarms)
    messages = TablePart(
        label="Messages",
        columns=(
            Column(title="kind"),
            Column(title="alarms", right=True),
            Column(title="told"),
            Column(title="by"),
            Column(title="delivery"),
        ),
        rows=tuple(
            _row(one.kind, str(one.count), reading.stamp(one.raised_at, seconds=True), one.node, one.delivery)
            for one in view.messages
        ),
        empty="No message is raised.",
    )
    silences = TablePart(
        label="Silences",
        columns=(Column(title="what"), Column(title="until"), Column(title="by"), Column(title="note")),
        rows=tuple(_row(one.what, reading.stamp(one.until), one.by or "–", one.note or "") for one in view.silences),
        empty="Nothing is silenced.",
    )
    return AlarmsPage(
        title="Alarms",
        lead=f"{plural(counts, 'alarm')} that a person wants to know" if view.alarms else "",
        choices=(states,),
        entries=tuple(alarm_entry(alarm, reading, links) for alarm in view.alarms),
        calm="No alarm is open.",
        tables=(messages, silences),
    )


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

    def acts(lock: LockView) -> tuple[Act, ...]:
        may = operates and lock.state in ("held", "orphaned")
        return (Act(label="Release", href=links.lock(lock.name, "release"), dialog=True),) if may else ()

    table = TablePart(
        label="Locks",
        columns=(
            *(Column(title="lock"), Column(title="state"), Column(title="owner"), Column(title="since", narrow=False)),
            *(
                Column(title="until"),
                Column(title="fence", narrow=False),
                Column(title="waiting", right=True),
                Column(title=""),
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
    )
    forced = TablePart(
        label="Released by force",
        columns=(Column(title="lock"), Column(title="when"), Column(title="by"), Column(title="why")),
        rows=tuple(
            _row(lock.name, str(one.get("at", "")), str(one.get("by") or "–"), str(one.get("why", "")))
            for lock in locks
            for one in lock.forced
        ),
        empty="None.",
    )
    tables = (table, forced) if forced.rows else (table,)
    return LocksPage(title="Locks", lead="leases taken by hand, outside any job", tables=tables)


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


def _ahead(holidays: Mapping[date, str], today: date) -> str:
    coming = sorted((day, name) for day, name in holidays.items() if day >= today)[:3]
    return "; ".join(f"{day:%a} {day.day} {day:%b %Y} {name}" for day, name in coming) or "none on record"


def audit_page(
    entries: Iterable[AuditEntry], *, reading: Reading, links: Links, older: str | None = None, newer: str | None = None
) -> AuditPage:
    """Make the page of acts, newest first; one whose outcome was never written is said to be unknown."""
    table = TablePart(
        label="Audit",
        columns=(
            *(Column(title="when"), Column(title="who"), Column(title="act"), Column(title="subject")),
            *(Column(title="result"), Column(title="via", narrow=False), Column(title="note")),
        ),
        rows=tuple(
            TableRow(
                cells=(
                    TableCell(text=reading.stamp(one.at, seconds=True)),
                    TableCell(text=one.who, after=one.role, strong=True),
                    TableCell(text=one.act),
                    TableCell(text=one.subject, href=links.job(one.subject)),
                    _result(one.result),
                    TableCell(text=one.via),
                    TableCell(text=one.note, wide=True, title=one.note or None),
                )
            )
            for one in entries
        ),
        empty="No act is on record.",
    )
    lead = "acts of people and programs, newest first; kept for a year"
    return AuditPage(title="Audit", lead=lead, tables=(table,), older=older, newer=newer)


def _result(result: str) -> TableCell:
    if result == "asked":
        return TableCell(badge=Badge(tone="miss", icon="miss", word="outcome unknown"))
    good = result == "done"
    return TableCell(badge=Badge(tone="ok" if good else "fail", icon="ok" if good else "fail", word=result))


_LEVELS = {"OK": ("ok", "ok"), "WARN": ("miss", "warn"), "FAIL": ("fail", "fail")}


def doctor_page(checks: Sequence[Check], *, links: Links, operates: bool, repairs: int) -> DoctorPage:
    """Make the page of checks, the worst first; `repairs` is how many findings can be repaired."""
    order = ("FAIL", "WARN", "OK")
    entries = tuple(
        Entry(
            title=check.name,
            about=check.level,
            words=check.detail + (f" {check.remedy}" if check.remedy else ""),
            tone=_LEVELS[check.level][0],
            icon=_LEVELS[check.level][1],
        )
        for check in sorted(checks, key=lambda check: order.index(check.level))
    )
    bad = sum(check.level != "OK" for check in checks)
    repair = (Act(label=f"Repair {repairs}", href=links.to("/doctor/repair"), icon="again", dialog=True),)
    return DoctorPage(
        title="Doctor",
        lead=f"{plural(len(checks), 'check')}, {bad} of them not well"
        if bad
        else f"{plural(len(checks), 'check')}, all well",
        entries=entries,
        calm="No check was made.",
        acts=repair if operates and repairs else (),
    )


def _choice(label: str, href: str, chosen: bool) -> Choice:
    return Choice(label=label, href=href, chosen=chosen)


def _row(*texts: str) -> TableRow:
    return TableRow(cells=tuple(TableCell(text=text, strong=not number) for number, text in enumerate(texts)))
