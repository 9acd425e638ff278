"""Alarms: what is wrong with what, since when, and the next step."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import ClassVar

from solocron.service.pages.links import Links
from solocron.service.pages.listing import ListingPage, plain_row
from solocron.service.pages.parts import ActLink, Column, ListEntry, TablePart, choose
from solocron.service.pages.words import Reading, instants_of, plural
from solocron.views import AlarmsView, AlarmView

__all__ = ["NOT_SUCCEEDED", "AlarmsPage", "alarm_entry", "alarms_page"]

_LOOKS = {
    "failing": ("fail", "fail"),
    "stuck": ("fail", "warn"),
    "no node": ("fail", "node"),
    "set aside": ("fail", "warn"),
    "missed": ("miss", "miss"),
    "late": ("miss", "clock"),
}
"""Tone and icon of each kind; the others are warnings."""
NOT_SUCCEEDED = ("failed", "timed_out", "lost")
"""The statuses among which the error of a failing job is found."""
_OF_A_JOB = frozenset(["failing", "stuck", "set aside", "missed", "late", "orphaned", "two applications"])


class AlarmsPage(ListingPage):
    """The open alarms, what was told of them, and the silences."""

    section: ClassVar[str] = "alarms"


def alarm_entry(alarm: AlarmView, reading: Reading, links: Links, *, operates: bool) -> ListEntry:
    """Make the entry of an alarm, with its next steps."""
    tone, icon = _LOOKS.get(alarm.kind, ("miss", "warn")) if alarm.counts else ("skip", "bell")
    silenced = f", silenced until {reading.stamp(alarm.silenced_until)}" if alarm.silenced_until else ""
    over = f" until {reading.stamp(alarm.until)}" if alarm.until else ""
    owner = f". {alarm.owner} answers for it" if alarm.owner else ""
    runbook = ". Runbook:" if alarm.runbook else ""
    return ListEntry(
        title=alarm.subject or alarm.kind,
        about=f"{alarm.kind.replace('_', ' ')} since {reading.stamp(alarm.since)}{over}{silenced}",
        words=f"{reading.told(alarm.detail)}{owner}{runbook}",
        code=alarm.runbook or "",
        tone=tone,
        icon=icon,
        href=links.job(alarm.subject) if alarm.kind in _OF_A_JOB else None,
        acts=_steps(alarm, links, operates),
    )


def _steps(alarm: AlarmView, links: Links, operates: bool) -> tuple[ActLink, ...]:
    """Return what can be done about an alarm: run what was missed, else look where its cause is."""
    if alarm.kind == "missed" and operates and (slots := instants_of(alarm.detail)):
        # The form of a backfill has whole minutes, and leaves its end out.
        start = min(slots).replace(second=0, microsecond=0)
        end = max(slots).replace(second=0, microsecond=0) + timedelta(minutes=1)
        span = {"start": start.isoformat(), "end": end.isoformat()}
        href = links.job(alarm.subject, "backfill", only="missed", **span)
        return (ActLink(label="Run the missed", href=href, dialog=True),)
    if alarm.kind in ("missed", "late"):
        return (ActLink(label="Why", href=links.job(alarm.subject, "why")),)
    if alarm.kind == "failing":
        return (ActLink(label="See the error", href=links.runs(job=alarm.subject, status=NOT_SUCCEEDED)),)
    if alarm.kind == "no node":
        return (ActLink(label="Nodes", href=links.nodes()),)
    if alarm.kind in ("set aside", "tier"):
        return (ActLink(label="Doctor", href=links.to("/doctor")),)
    return ()


def alarms_page(
    view: AlarmsView,
    *,
    closed: Sequence[AlarmView] | None = None,
    reading: Reading,
    links: Links,
    operates: bool = False,
) -> AlarmsPage:
    """Make the page of the open alarms, or with `closed` of those whose causes are gone."""
    shown = view.alarms if closed is None else tuple(closed)
    state = "open" if closed is None else "closed"
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
        lead=f"{plural(counts, 'alarm')} that a person wants to know" if counts else "nothing that needs a person",
        choices=(choose("State", state, [(one, one, links.to("/alarms", state=one)) for one in ("open", "closed")]),),
        entries=tuple(alarm_entry(alarm, reading, links, operates=operates) for alarm in shown),
        calm="No alarm is open." if closed is None else "No alarm was closed lately.",
        tables=(messages, silences) if closed is None else (),
    )
