"""Pages that are one table or one list: their common form, and that of the doctor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from solocron.service.pages.links import Links
from solocron.service.pages.parts import ActLink, Choices, FormField, ListEntry, TableCell, TablePart, TableRow
from solocron.service.pages.words import plural
from solocron.stores.contract import Check

__all__ = ["DoctorPage", "ListingPage", "doctor_page", "plain_row"]


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


class DoctorPage(ListingPage):
    """The checks of the doctor."""

    section: ClassVar[str] = "doctor"


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


def plain_row(*texts: str) -> TableRow:
    """Return a row of plain texts: the first one is strong, the last one has the room that is left."""
    last = len(texts) - 1
    return TableRow(
        cells=tuple(TableCell(text=text, strong=not place, long=place == last) for place, text in enumerate(texts))
    )
