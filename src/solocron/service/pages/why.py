"""Why a slot did or did not run; and which slots are decided and not on record."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from solocron.service.pages.links import Links
from solocron.service.pages.listing import ListingPage
from solocron.service.pages.overview import Sums
from solocron.service.pages.parts import ActLink, Badge, Column, FormField, TableCell, TablePart, TableRow, badge_of
from solocron.service.pages.words import Reading, plural
from solocron.views import WhyView

__all__ = ["UnaccountedPage", "WhyPage", "unaccounted_page", "why_page"]


_INSTANT = re.compile(r"(?<![@\w])\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyPage:
    """The verdict on one slot, and the facts in the order in which one looks."""

    template: ClassVar[str] = "why.html"
    section: ClassVar[str] = "jobs"
    job: str
    job_href: str
    state: Badge
    verdict: str
    fields: tuple[FormField, ...]
    action: str
    facts: TablePart
    acts: tuple[ActLink, ...]

    @property
    def title(self) -> str:
        """The title of the page."""
        return f"Why: {self.job}"


class UnaccountedPage(ListingPage):
    """Slots that do not add up."""

    section: ClassVar[str] = "overview"


def why_page(told: WhyView, *, at: str, reading: Reading, links: Links) -> WhyPage:
    """Make the page of one slot; `at` is what its form shows."""
    slot = (ActLink(label="The slot", href=links.job(told.job, slot=told.slot.isoformat())),) if told.slot else ()
    return WhyPage(
        job=told.job,
        job_href=links.job(told.job),
        state=badge_of(told.status),
        verdict=_told(told.verdict, reading),
        fields=(FormField(name="at", label="Slot, or an instant after it", kind="datetime", value=at),),
        action=links.job(told.job, "why"),
        facts=TablePart(
            label="Facts",
            columns=(Column(title="when"), Column(title="what")),
            rows=tuple(
                TableRow(
                    cells=(
                        TableCell(text=reading.stamp(one.at, seconds=True) if one.at else "–"),
                        TableCell(text=_told(one.what, reading), long=True),
                    )
                )
                for one in told.facts
            ),
            empty="Nothing else is known.",
        ),
        acts=slot,
    )


def _told(sentence: str, reading: Reading) -> str:
    """Return a sentence of the record with its instants on the clocks of the page."""
    return _INSTANT.sub(lambda found: reading.stamp(datetime.fromisoformat(found[0]), seconds=True), sentence)


def unaccounted_page(sums: Sums, *, reading: Reading, links: Links) -> UnaccountedPage:
    """Make the page of slots that are decided and not on record, and of jobs that cannot be compared."""
    missing = TablePart(
        label="Not on record",
        columns=(Column(title="job"), Column(title="slot"), Column(title="")),
        rows=tuple(
            TableRow(
                cells=(
                    TableCell(text=job, href=links.job(job), strong=True),
                    TableCell(text=reading.stamp(slot, seconds=True)),
                    TableCell(acts=(ActLink(label="Why", href=links.job(job, "why", at=slot.isoformat())),)),
                )
            )
            for job, slot in sums.unaccounted
        ),
        empty="Every slot that came due is on record.",
    )
    left = TablePart(
        label="Not compared",
        columns=(Column(title="job"), Column(title="why")),
        rows=tuple(
            TableRow(
                cells=(
                    TableCell(text=job, href=links.job(job), strong=True),
                    TableCell(text=why, long=True),
                )
            )
            for job, why in sums.left_out.items()
        ),
        empty="Every job was compared.",
    )
    return UnaccountedPage(
        title="Accounting",
        lead=f"{plural(sums.due, 'slot')} in the last {sums.hours} hours; "
        f"{sums.checked_jobs} of {plural(sums.of_jobs, 'job')} compared",
        tables=(missing, left),
    )
