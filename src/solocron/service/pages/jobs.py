"""The list of jobs: which are not well, what is next, what became of the last thirty slots of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, tzinfo
from functools import lru_cache
from typing import ClassVar

from markupsafe import Markup

from solocron.service.draw.bars import draw_strip
from solocron.service.pages.job import job_acts, last_badge, state_of
from solocron.service.pages.links import Links
from solocron.service.pages.parts import Column, FormField, TableCell, TablePart, TableRow
from solocron.service.pages.slots import SlotFate, kind_of, said
from solocron.service.pages.words import Reading
from solocron.views import JobView

__all__ = ["JobsPage", "jobs_table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsPage:
    """A page of jobs."""

    template: ClassVar[str] = "jobs.html"
    section: ClassVar[str] = "jobs"
    lead: str
    filters: tuple[FormField, ...]
    filtered: bool
    table: TablePart
    older: str | None
    newer: str | None
    bulk: str | None = None
    """Where a selection of jobs goes; None for a reader who may not act."""

    @property
    def title(self) -> str:
        """The title of the page."""
        return "Jobs"


def jobs_table(
    jobs: Sequence[JobView],
    strips: Mapping[str, Sequence[SlotFate]],
    *,
    reading: Reading,
    links: Links,
    empty: str,
    picks: bool = False,
) -> TablePart:
    """Make the table of jobs; `strips` are the last slots of each, oldest first."""
    return TablePart(
        label="Jobs",
        columns=(
            Column(title="state"),
            Column(title="job"),
            Column(title="next"),
            Column(title="last"),
            Column(title="30 slots"),
            Column(title="held by", narrow=False),
            Column(title="schedule", narrow=False),
        ),
        rows=tuple(_row(job, strips.get(job.name, ()), reading, links, acts=picks) for job in jobs),
        empty=empty,
        cards=True,
        picks=picks,
    )


@lru_cache(maxsize=2_000)
def _strip(strip: tuple[SlotFate, ...], zone: tzinfo, today: date) -> Markup:
    """Draw the last slots of a job. A page has three thousand of them, most as a moment before."""
    reading = Reading(now=datetime.combine(today, time(12), zone), zone=zone, zone_name="")
    return draw_strip([(kind_of(fate), said(fate, reading)) for fate in strip])


def _row(job: JobView, strip: Sequence[SlotFate], reading: Reading, links: Links, *, acts: bool) -> TableRow:
    if job.next is not None:
        following = TableCell(text=reading.until(job.next), until=job.next.isoformat(), after=reading.stamp(job.next))
    elif job.paused is not None:
        who = f"by {job.paused.by}" if job.paused.by else "paused"
        until = f" until {reading.stamp(job.paused.until)}" if job.paused.until else ""
        note = f": “{job.paused.note}”" if job.paused.note else ""
        following = TableCell(text=f"{who}{until}{note}", tone="skip", clip=True, title=f"{who}{until}{note}")
    else:
        following = TableCell(text="–", title="it has no next slot")
    badge = last_badge(job)
    error = (job.last_error or "").strip().rpartition("\n")[2]
    last = TableCell(badge=badge, after=reading.stamp(job.last_slot) if job.last_slot else "", title=error or None)
    held = job.running[0] if job.running else None
    return TableRow(
        cells=(
            TableCell(badge=state_of(job, reading.now)),
            TableCell(text=job.name, href=links.job(job.name), strong=True),
            following,
            last if badge else TableCell(text="never ran"),
            TableCell(
                picture=_strip(tuple(strip), reading.zone, reading.local(reading.now).date()) if strip else None,
                text="" if strip else "–",
            ),
            TableCell(text=held.node or "–", href=links.run(held.run)) if held else TableCell(text="–"),
            TableCell(text=job.schedule, wide=True, title=job.schedule),
        ),
        pick=job.name,
        keys=tuple((one.key, one.href) for one in job_acts(job, links) if one.key) if acts else (),
    )
