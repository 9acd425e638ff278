"""Why a slot did or did not run; and which slots are decided and not on record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from solocron.service.pages.links import Links
from solocron.service.pages.listing import ListingPage
from solocron.service.pages.overview import Sums
from solocron.service.pages.parts import ActLink, Badge, Column, FormField, TableCell, TablePart, TableRow, badge_of
from solocron.service.pages.words import Reading, plural
from solocron.views import WhyView

__all__ = ["UnaccountedPage", "WhyPage", "unaccounted_page", "why_page"]


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
        verdict=reading.told(told.verdict),
        fields=(FormField(name="at", label="Slot, or an instant after it", kind="datetime", value=at),),
        action=links.job(told.job, "why"),
        facts=TablePart(
            label="Facts",
            columns=(Column(title="when"), Column(title="what")),
            rows=tuple(
                TableRow(
                    cells=(
                        TableCell(text=reading.stamp(one.at, seconds=True) if one.at else "–"),
                        TableCell(text=reading.told(one.what), long=True),
                    )
                )
                for one in told.facts
            ),
            empty="Nothing else is known.",
        ),
        acts=slot,
    )


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
