"""Pages that are one table or one list: alarms, doctor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from solocron.service.pages.links import Links
from solocron.service.pages.parts import (
    ActLink,
    Choice,
    Choices,
    Column,
    FormField,
    ListEntry,
    TableCell,
    TablePart,
    TableRow,
)
from solocron.service.pages.words import Reading, plural
from solocron.stores.contract import Check
from solocron.views import AlarmsView, AlarmView

__all__ = [
    *("AlarmsPage", "DoctorPage", "ListingPage"),
    *("alarm_entry", "alarms_page", "doctor_page", "plain_row"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingPage:
    """A page with a lead, ways to see it, entries, tables, and links to further pages."""

    template: ClassVar[str] = "listing.html"
    section: ClassVar[str] = ""
    title: str
    lead: str
    choices: tuple[Choices, ...] = ()
    entries: tuple[ListEntry, ...] = ()
    calm: str = ""
    """What stands there when there are no entries."""
    tables: tuple[TablePart, ...] = ()
    acts: tuple[ActLink, ...] = ()
    filters: tuple[FormField, ...] = ()
    action: str = ""
    older: str | None = None
    newer: str | None = None


class AlarmsPage(ListingPage):
    """The open alarms, what was told of them, and the silences."""

    section: ClassVar[str] = "alarms"


class DoctorPage(ListingPage):
    """The checks of the doctor."""

    section: ClassVar[str] = "doctor"


def alarm_entry(alarm: AlarmView, reading: Reading, links: Links) -> ListEntry:
    """Make the entry of an alarm, with its next step."""
    acts = [ActLink(label="Open", href=links.found(alarm.subject))] if alarm.subject else []
    owner = f"; {alarm.owner} answers for it" if alarm.owner else ""
    runbook = f"; runbook: {alarm.runbook}" if alarm.runbook else ""
    silenced = f" · silenced until {reading.stamp(alarm.silenced_until)}" if alarm.silenced_until else ""
    over = f" until {reading.stamp(alarm.until)}" if alarm.until else ""
    tone = "fail" if alarm.counts else "skip"
    return ListEntry(
        title=alarm.subject or alarm.kind,
        about=f"{alarm.kind.replace('_', ' ')} since {reading.stamp(alarm.since)}{over}{silenced}",
        words=f"{alarm.detail}{owner}{runbook}",
        tone=tone,
        icon="fail" if alarm.counts else "bell",
        acts=tuple(acts),
    )


def alarms_page(
    view: AlarmsView, *, closed: Sequence[AlarmView] | None = None, reading: Reading, links: Links
) -> AlarmsPage:
    """Make the page of the open alarms, or with `closed` of those whose causes are gone."""
    shown = view.alarms if closed is None else tuple(closed)
    states = Choices(
        label="State",
        choices=tuple(
            _choice(word, links.to("/alarms", state=word), word == ("open" if closed is None else "closed"))
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
            plain_row(one.kind, str(one.count), reading.stamp(one.raised_at, seconds=True), one.node, one.delivery)
            for one in view.messages
        ),
        empty="No message is raised.",
    )
    silences = TablePart(
        label="Silences",
        columns=(Column(title="what"), Column(title="until"), Column(title="by"), Column(title="note")),
        rows=tuple(
            plain_row(one.what, reading.stamp(one.until), one.by or "–", one.note or "") for one in view.silences
        ),
        empty="Nothing is silenced.",
    )
    return AlarmsPage(
        title="Alarms",
        lead=f"{plural(counts, 'alarm')} that a person wants to know" if counts else "",
        choices=(states,),
        entries=tuple(alarm_entry(alarm, reading, links) for alarm in shown),
        calm="No alarm is open." if closed is None else "No alarm was closed lately.",
        tables=(messages, silences) if closed is None else (),
    )


_LEVELS = {"OK": ("ok", "ok"), "WARN": ("miss", "warn"), "FAIL": ("fail", "fail")}


def doctor_page(
    checks: Sequence[Check], *, links: Links, operates: bool = False, aside: tuple[ListEntry, ...] = ()
) -> DoctorPage:
    """Make the page of checks, the worst first, below what is `aside`: each of these can be tried again."""
    repair = ActLink(label="Repair", href=links.to("/doctor/repair"), icon="again", dialog=True)
    order = ("FAIL", "WARN", "OK")
    entries = tuple(
        ListEntry(
            title=check.name,
            about=check.level,
            words=check.detail + (f" {check.remedy}" if check.remedy else ""),
            tone=_LEVELS[check.level][0],
            icon=_LEVELS[check.level][1],
        )
        for check in sorted(checks, key=lambda check: order.index(check.level))
    )
    bad = sum(check.level != "OK" for check in checks)
    return DoctorPage(
        title="Doctor",
        lead=f"{plural(len(checks), 'check')}, {bad} of them not well"
        if bad
        else f"{plural(len(checks), 'check')}, all well",
        entries=(*aside, *entries),
        calm="No check was made.",
        acts=(repair,) if operates else (),
    )


def _choice(label: str, href: str, chosen: bool) -> Choice:
    return Choice(label=label, href=href, chosen=chosen)


def plain_row(*texts: str) -> TableRow:
    """Return a row of plain texts, the first one strong."""
    return TableRow(cells=tuple(TableCell(text=text, strong=not number) for number, text in enumerate(texts)))
