"""The list of jobs: which are not well, what is next, what became of the last thirty slots of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from solocron.service.draw.bars import draw_strip
from solocron.service.pages.job import last_badge, state_of
from solocron.service.pages.links import Links
from solocron.service.pages.parts import Column, FormField, TableCell, TablePart, TableRow
from solocron.service.pages.slots import SlotFate, kind_of, said
from solocron.service.pages.words import Reading
from solocron.views import JobView

__all__ = ["JobsPage", "by_attention", "by_next", "is_in", "jobs_table"]

_ATTENTION = ("stuck", "failing", "late", "orphaned", "running")
_NOT_WELL = ("stuck", "failing", "late", "orphaned")


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


def by_attention(jobs: Sequence[JobView], now: datetime) -> list[JobView]:
    """Return the jobs with those first that need a look, then by their next slot."""

    def place(job: JobView) -> tuple[int, bool, float, str]:
        word = state_of(job, now).word.partition(" ")[0]
        rank = _ATTENTION.index(word) if word in _ATTENTION else len(_ATTENTION)
        return rank, job.next is None, job.next.timestamp() if job.next else 0.0, job.name

    return sorted(jobs, key=place)


def by_next(jobs: Sequence[JobView], now: datetime) -> list[JobView]:
    """Return the jobs by their next slot; those without one come last."""
    return sorted(jobs, key=lambda job: (job.next is None, job.next.timestamp() if job.next else 0.0, job.name))


def is_in(job: JobView, state: str, now: datetime) -> bool:
    """Return whether a job is in a state of the filter. It can be in several, such as paused and running."""
    word = state_of(job, now).word.partition(" ")[0]
    match state:
        case "not_well":
            return word in _NOT_WELL
        case "paused":
            return job.paused is not None or bool(job.pauses)
        case "disabled":
            return not job.enabled
        case "running":
            return bool(job.running)
        case "waiting":
            return job.waiting > 0
        case "failing":
            return job.failures > 0
        case "orphaned":
            return job.orphaned
        case "never_ran":
            return job.last_status is None
        case _:
            return word == state


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
        rows=tuple(_row(job, strips.get(job.name, ()), reading, links) for job in jobs),
        empty=empty,
        cards=True,
        picks=picks,
    )


def _row(job: JobView, strip: Sequence[SlotFate], reading: Reading, links: Links) -> TableRow:
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
                picture=draw_strip([(kind_of(fate), said(fate, reading)) for fate in strip]) if strip else None,
                text="" if strip else "–",
            ),
            TableCell(text=held.node or "–", href=links.run(held.run)) if held else TableCell(text="–"),
            TableCell(text=job.schedule, wide=True, title=job.schedule),
        ),
        pick=job.name,
    )
