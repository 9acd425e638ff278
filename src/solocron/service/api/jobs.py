"""`/jobs`: jobs in pages, one job, its next slots, its durations, and previews of what a command would do."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from solocron.client.job_listing import JobState, WantedJobs
from solocron.client.run_listing import WantedRuns
from solocron.clock import to_us
from solocron.errors import EmptyStore, InvalidError, NotFoundError
from solocron.schedules import dst_notes, lint, load_zone
from solocron.service.call import ApiCall
from solocron.service.paging import Listing, bad_cursor, make_cursor, read_cursor
from solocron.service.shown import shown_job
from solocron.service.zones import checked_zone
from solocron.views import BackfillView, JobView, ResumeView

__all__ = [
    *("DurationItem", "DurationsAnswer", "JobAnswer", "NextAnswer", "NextSlot"),
    *("SORTS", "STATES", "backfill", "durations", "following", "job", "jobs", "resume"),
]

STATES = tuple(JobState)
SORTS = ("name", "next", "attention")
_ENDED = frozenset(["succeeded", "handed_over", "failed", "timed_out", "cancelled", "lost"])


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAnswer(JobView):
    """A job, with what is worth knowing about its schedule and its backfills."""

    notes: tuple[str, ...]
    """What is allowed but seldom meant, and what clock changes do to it within a year."""
    backfills: tuple[BackfillView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NextSlot:
    """A slot to come: the instant, and the time on the clocks of the zone."""

    slot: datetime
    local: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NextAnswer:
    """The next slots of a job."""

    job: str
    zone: str
    slots: tuple[NextSlot, ...]
    notes: tuple[str, ...]
    """What clock changes and the calendar do to them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationItem:
    """Lateness and duration of one attempt."""

    run: str
    slot: datetime
    started_at: datetime | None
    late_s: float | None
    took_s: float | None
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationsAnswer:
    """The last attempts of a job, newest first, and how long they took."""

    job: str
    items: tuple[DurationItem, ...]
    p50: float | None
    p95: float | None


def jobs(call: ApiCall) -> Listing[JobView]:
    """Return jobs by name, by their next slot, or those first that need a look."""
    given = call.given
    wanted = WantedJobs(
        match=None if given["q"] is None else f"*{given['q']}*",
        pools=frozenset(() if given["pool"] is None else (given["pool"],)),
        states=frozenset(given["state"]),
        tags=frozenset(given["tag"]),
    )
    after = read_cursor(call.path, given) or ""
    try:
        page = call.reads.jobs(wanted, limit=given["limit"], after=after, order=given["sort"])
    except EmptyStore:
        raise
    except NotFoundError as error:
        raise bad_cursor(str(error)) from error
    following = None if page.next is None else make_cursor(page.next, call.path, given)
    call.watcher.note_shown(page.jobs)
    return Listing(items=tuple(map(shown_job, page.jobs)), next=following, as_of=call.reads.now())


def job(call: ApiCall) -> JobAnswer:
    """Return one job."""
    name = call.names["job"]
    found = call.reads.read_job(name)
    view = shown_job(found.view(), values=call.sees_values and "payload" in call.given["include"])
    call.watcher.note_shown([view])
    copied: dict[str, Any] = {field.name: getattr(view, field.name) for field in fields(JobView)}
    try:
        schedule = found.schedule()
    except InvalidError:  # this release cannot read it, which `schedule` says
        schedule = None
    notes = [] if schedule is None else lint(schedule, to_us(call.reads.now()))
    return JobAnswer(**copied, notes=tuple(notes), backfills=tuple(found.backfills))


def following(call: ApiCall) -> NextAnswer:
    """Return the next slots of a job, in its zone or another."""
    name, given = call.names["job"], call.given
    found = call.reads.read_job(name)
    slots, notes = (
        found.upcoming(given["n"], start=given["from"]),
        found.upcoming_changes(given["n"], start=given["from"]),
    )
    zone = found.zone if given["tz"] is None else checked_zone(given["tz"])
    schedule, start = found.schedule(), given["from"] or call.reads.now()
    if schedule is not None and slots:
        far = min(slots[-1] - start + timedelta(days=1), timedelta(days=4 * 366))
        notes = [*notes, *dst_notes(schedule, to_us(start), far)]
    info = load_zone(zone).info
    return NextAnswer(
        job=name,
        zone=zone,
        slots=tuple(NextSlot(slot=slot, local=slot.astimezone(info).isoformat()) for slot in slots),
        notes=tuple(notes),
    )


def durations(call: ApiCall) -> DurationsAnswer:
    """Return how long the last attempts of a job took."""
    name = call.names["job"]
    page = call.reads.runs(WantedRuns(job=name, statuses=_ENDED), limit=call.given["n"], before=None)
    items = tuple(
        DurationItem(
            run=run.run,
            slot=run.slot,
            started_at=run.started_at,
            late_s=None if run.started_at is None else (run.started_at - run.slot).total_seconds(),
            took_s=None
            if run.started_at is None or run.finished_at is None
            else (run.finished_at - run.started_at).total_seconds(),
            status=run.status,
        )
        for run in page.runs
    )
    took = sorted(item.took_s for item in items if item.took_s is not None)
    return DurationsAnswer(job=name, items=items, p50=_quantile(took, 0.5), p95=_quantile(took, 0.95))


def resume(call: ApiCall) -> ResumeView:
    """Return what a resume would do now."""
    return call.reads.resume_preview(call.names["job"])


def backfill(call: ApiCall) -> BackfillView:
    """Return what a backfill would do now."""
    return call.reads.backfill_preview(call.names["job"], call.given)


def _quantile(ordered: list[float], q: float) -> float | None:
    """Return the smallest value that at least the fraction q of them does not exceed."""
    return ordered[max(0, -(-len(ordered) * round(q * 100) // 100) - 1)] if ordered else None
