"""The audit: who asked for what and what came of it, and what nodes did by themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from solocron.service.pages.links import Links
from solocron.service.pages.listing import ListingPage
from solocron.service.pages.parts import Badge, Column, FormField, ListEntry, TableCell, TablePart, TableRow
from solocron.service.pages.words import Reading
from solocron.views import AuditView

__all__ = ["AuditListPage", "audit_entries", "audit_page"]


class AuditListPage(ListingPage):
    """Acts of people and programs."""

    section: ClassVar[str] = "audit"


def audit_page(
    entries: Iterable[AuditView],
    *,
    who: str = "",
    subject: str = "",
    reading: Reading,
    links: Links,
    older: str | None = None,
    newer: str | None = None,
) -> AuditListPage:
    """Make the page of acts, newest first; one whose outcome was never written is said to be unknown."""
    table = TablePart(
        label="Audit",
        columns=(
            *(Column(title="when"), Column(title="act"), Column(title="subject"), Column(title="result")),
            *(Column(title="who"), Column(title="via", narrow=False), Column(title="note")),
        ),
        rows=tuple(
            TableRow(
                cells=(
                    TableCell(text=reading.stamp(one.at, seconds=True)),
                    TableCell(text=one.act, strong=True),
                    TableCell(text=one.subject, href=_where(one, links)),
                    TableCell(badge=_badge(one.result)),
                    TableCell(text=one.who or ("–" if one.via == "node" else "not told"), after=one.role or ""),
                    TableCell(text=one.via),
                    TableCell(text=one.note or "", long=True),
                )
            )
            for one in entries
        ),
        empty="Nothing of it is on record.",
        stacked=True,
    )
    fields = (FormField(name="who", label="Who", value=who), FormField(name="subject", label="Subject", value=subject))
    lead = "what people, programs and nodes did, newest first; an act is kept for a year"
    return AuditListPage(
        title="Audit", lead=lead, tables=(table,), filters=fields, action=links.to("/audit"), older=older, newer=newer
    )


def _where(one: AuditView, links: Links) -> str:
    """Return where the subject is shown: a name that a caller gave may be a job, a run, a node or a lock."""
    if one.via != "node":
        return links.found(one.subject)
    if one.act == "burial":
        return links.node(one.before["session"])
    return links.job(one.subject) if one.act == "pause" else links.run(one.subject)


def _badge(result: str) -> Badge:
    if result == "outcome unknown":
        return Badge(tone="miss", icon="miss", word=result)
    if result == "not taken over":
        return Badge(tone="lost", icon="lost", word=result)
    good = result == "done"
    return Badge(tone="ok" if good else "fail", icon="ok" if good else "fail", word=result)


def audit_entries(acts: Iterable[AuditView], reading: Reading) -> tuple[ListEntry, ...]:
    """Make the short list of acts on one job, newest first."""
    return tuple(
        ListEntry(
            title=f"{one.who or 'not told'}: {one.act}",
            about=reading.stamp(one.at),
            words=one.note or ("" if one.result == "done" else one.result),
            icon=(badge := _badge(one.result)).icon,
            tone=badge.tone,
        )
        for one in acts
    )
